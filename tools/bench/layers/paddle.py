from collections.abc import Callable
from typing import Any

import numpy as np
import paddle

from d2l_compat import paddle as d2l
from tools.bench.layers import HEADS, WIDTH, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], object]]:
    X = paddle.to_tensor(inputs(n), stop_gradient=False)
    lens = None if valid_lens is None else paddle.to_tensor(valid_lens)
    keys = None if valid_lens is None else paddle.to_tensor(mask(valid_lens, n)[:, None, None])
    own = paddle.nn.MultiHeadAttention(WIDTH, HEADS, bias_attr=False)
    shim = d2l.MultiHeadAttention(WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)

    def step(layer: Any, call: Callable[[], Any]) -> Callable[[], object]:
        def run() -> object:
            layer.clear_gradients()
            X.clear_gradient()
            call().sum().backward()
            return np.asarray(X.gradient()).sum()

        return run

    return {
        "shim": step(shim, lambda: shim(X, X, X, lens)),
        "own": step(own, lambda: own(X, X, X, attn_mask=keys)),
    }
