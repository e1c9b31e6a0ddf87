from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx import nn

from d2l_compat import mlx as d2l
from tools.bench.layers import HEADS, WIDTH, Mask, Step, make_inputs, make_optional_converter

to_array = make_optional_converter(mx.array)


def list_layers(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = mx.array(make_inputs(mask.n))

    def make_step(layer: Any, *args: Any, **kwargs: Any) -> Step:
        layer.eval()

        def compute_loss(parameters: Any, X: mx.array) -> mx.array:
            layer.update(parameters)
            return layer(X, X, X, *args, **kwargs).sum()

        differentiate = mx.value_and_grad(compute_loss, argnums=(0, 1))

        def run() -> object:
            result = differentiate(layer.parameters(), X)
            mx.eval(result)  # MLX is lazy
            return result

        return run

    def prepare_shim() -> Step:
        layer = d2l.MultiHeadAttention(WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)
        lens, bias = to_array(mask.valid_lens), to_array(mask.score_bias)
        return make_step(layer, lens, causal=mask.causal, score_bias=bias)

    def prepare_own() -> Step:
        return make_step(nn.MultiHeadAttention(WIDTH, HEADS), to_array(mask.additive_mask))

    return {"shim": prepare_shim, "own": prepare_own}
