from collections.abc import Callable
from typing import Any

import numpy as np
import paddle

from d2l_compat import paddle as d2l
from tools.bench.layers import (
    HEADS,
    WIDTH,
    Mask,
    Step,
    make_inputs,
    make_optional_converter,
    make_text,
)

to_tensor = make_optional_converter(paddle.to_tensor)


def list_layers(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = paddle.to_tensor(make_inputs(mask.n), stop_gradient=False)

    def make_step(layer: Any, *args: Any, num_inputs: int = 3, **kwargs: Any) -> Step:
        def run() -> object:
            layer.clear_gradients()
            X.clear_gradient()
            layer(*[X] * num_inputs, *args, **kwargs).sum().backward()
            return np.asarray(X.gradient()).sum()

        return run

    def prepare_shim() -> Step:
        if mask.is_linear:
            return make_step(d2l.LinearAttention(WIDTH, HEADS), num_inputs=1)
        layer = d2l.MultiHeadAttention(WIDTH, WIDTH, WIDTH, WIDTH, HEADS, 0.0)
        lens, bias = to_tensor(mask.valid_lens), to_tensor(mask.score_bias)
        return make_step(layer, lens, causal=mask.causal, score_bias=bias, window=mask.window)

    def prepare_own() -> Step:
        layer = paddle.nn.MultiHeadAttention(WIDTH, HEADS, bias_attr=False)
        return make_step(layer, attn_mask=to_tensor(mask.additive_mask))

    return {"shim": prepare_shim, "own": prepare_own}


def list_token_steps(n: int) -> dict[str, Callable[[], Step]]:
    X = paddle.to_tensor(make_text(n + 1))
    last = X[:, n:]

    def prepare_cached() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        cache = layer.make_cache(1, n + 1)
        layer(X[:, :n], cache=cache)
        lengths = cache.lengths

        @paddle.no_grad()
        def run() -> object:
            cache.lengths = lengths
            return np.asarray(layer(last, cache=cache))

        return run

    def prepare_recomputed() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        return paddle.no_grad()(lambda: np.asarray(layer(X)))

    def prepare_own() -> Step:
        layer = paddle.nn.MultiHeadAttention(WIDTH, HEADS, bias_attr=False)
        empty = layer.gen_cache(X)
        _, cache = layer(X[:, :n], cache=empty)
        return paddle.no_grad()(lambda: np.asarray(layer(last, cache=cache)[0]))

    return {"cached": prepare_cached, "recomputed": prepare_recomputed, "own": prepare_own}
