from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx import nn

from d2l_compat import mlx as d2l
from tools.bench.layers import HEADS, WIDTH, Mask, Step, make_inputs, optional_converter

array = optional_converter(mx.array)


def contenders(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = mx.array(make_inputs(mask.n))

    def step(layer: Any, *args: Any, **kwargs: Any) -> Step:
        layer.eval()

        def total(parameters: Any, X: mx.array) -> mx.array:
            layer.update(parameters)
            return layer(X, X, X, *args, **kwargs).sum()

        differentiate = mx.value_and_grad(total, argnums=(0, 1))

        def run() -> object:
            result = differentiate(layer.parameters(), X)
            mx.eval(result)  # MLX is lazy
            return result

        return run

    def shim() -> Step:
        layer = d2l.MultiHeadAttention(WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)
        lens, bias = array(mask.valid_lens), array(mask.score_bias)
        return step(layer, lens, causal=mask.causal, score_bias=bias)

    def own() -> Step:
        return step(nn.MultiHeadAttention(WIDTH, HEADS), array(mask.added))

    return {"shim": shim, "own": own}
