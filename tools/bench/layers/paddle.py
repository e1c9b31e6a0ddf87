from collections.abc import Callable
from typing import Any

import numpy as np
import paddle

from d2l_compat import paddle as d2l
from tools.bench.layers import HEADS, WIDTH, Step, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], Step]]:
    X = paddle.to_tensor(inputs(n), stop_gradient=False)
    lens = None if valid_lens is None else paddle.to_tensor(valid_lens)
    keys = None if valid_lens is None else paddle.to_tensor(mask(valid_lens, n)[:, None, None])

    def step(layer: Any, *rest: Any, **named: Any) -> Step:
        def run() -> object:
            layer.clear_gradients()
            X.clear_gradient()
            layer(X, X, X, *rest, **named).sum().backward()
            return np.asarray(X.gradient()).sum()

        return run

    def shim() -> Step:
        return step(d2l.MultiHeadAttention(WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0), lens)

    def own() -> Step:
        layer = paddle.nn.MultiHeadAttention(WIDTH, HEADS, bias_attr=False)
        return step(layer, attn_mask=keys)

    return {"shim": shim, "own": own}
