from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx import nn

from d2l_compat import mlx as d2l
from tools.bench.layers import (
    HEADS,
    WIDTH,
    Mask,
    Step,
    make_inputs,
    make_optional_converter,
    make_text,
)

to_array = make_optional_converter(mx.array)


def list_layers(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = mx.array(make_inputs(mask.n))

    def make_step(layer: Any, *args: Any, num_inputs: int = 3, **kwargs: Any) -> Step:
        layer.eval()

        def compute_loss(parameters: Any, X: mx.array) -> mx.array:
            layer.update(parameters)
            return layer(*[X] * num_inputs, *args, **kwargs).sum()

        differentiate = mx.value_and_grad(compute_loss, argnums=(0, 1))

        def run() -> object:
            result = differentiate(layer.parameters(), X)
            mx.eval(result)  # MLX is lazy
            return result

        return run

    def prepare_shim() -> Step:
        if mask.is_linear:
            return make_step(d2l.LinearAttention(WIDTH, HEADS), num_inputs=1)
        layer = d2l.MultiHeadAttention(WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)
        lens, bias = to_array(mask.valid_lens), to_array(mask.score_bias)
        return make_step(layer, lens, causal=mask.causal, score_bias=bias, window=mask.window)

    def prepare_own() -> Step:
        return make_step(nn.MultiHeadAttention(WIDTH, HEADS), to_array(mask.additive_mask))

    return {"shim": prepare_shim, "own": prepare_own}


def list_token_steps(n: int) -> dict[str, Callable[[], Step]]:
    X = mx.array(make_text(n + 1))
    last = X[:, n:]

    def prepare_cached() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        cache = layer.make_cache(1, n + 1)
        layer(X[:, :n], cache=cache)
        lengths = cache.lengths

        def run() -> None:
            cache.lengths = lengths
            output = layer(last, cache=cache)
            mx.eval(output, cache.keys, cache.values)

        return run

    def prepare_recomputed() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        return lambda: mx.eval(layer(X))

    def prepare_own() -> Step:
        """Keep keys and values by hand, for MLX's function."""
        W_q, W_k, W_v, W_o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        keys, values = mx.ones((2, 1, HEADS, n + 1, WIDTH // HEADS))

        def split(x: mx.array) -> mx.array:
            return x.reshape(1, 1, HEADS, -1).swapaxes(1, 2)

        def run() -> None:
            keys[:, :, n:] = split(W_k(last))
            values[:, :, n:] = split(W_v(last))
            query, scale = split(W_q(last)), (WIDTH // HEADS) ** -0.5
            pooled = mx.fast.scaled_dot_product_attention(query, keys, values, scale=scale)
            mx.eval(W_o(pooled.swapaxes(1, 2).flatten(2)), keys, values)

        return run

    return {"cached": prepare_cached, "recomputed": prepare_recomputed, "own": prepare_own}
