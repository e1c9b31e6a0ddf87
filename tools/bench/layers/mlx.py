from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn

from d2l_compat import mlx as d2l
from tools.bench.layers import HEADS, WIDTH, Step, inputs, mask


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], Step]]:
    X = mx.array(inputs(n))
    lens = None if valid_lens is None else mx.array(valid_lens)
    keys = None if valid_lens is None else mx.array(mask(valid_lens, n)[:, None, None])

    def step(layer: Any, *rest: Any) -> Step:
        layer.eval()

        def total(parameters: Any, X: mx.array) -> mx.array:
            layer.update(parameters)
            return layer(X, X, X, *rest).sum()

        differentiate = mx.value_and_grad(total, argnums=(0, 1))

        def run() -> object:
            found = differentiate(layer.parameters(), X)
            mx.eval(found)  # nothing is computed before it is asked for
            return found

        return run

    def shim() -> Step:
        return step(d2l.MultiHeadAttention(WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0), lens)

    def own() -> Step:
        return step(nn.MultiHeadAttention(WIDTH, HEADS), keys)

    return {"shim": shim, "own": own}
