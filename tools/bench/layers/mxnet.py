from collections.abc import Callable
from typing import Any

# Import this first: it makes MXNet importable.
from d2l_compat import mxnet as d2l  # isort: skip
from mxnet import autograd
from mxnet import np as mx

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
    X.attach_grad()

    def make_step(layer: Any, *args: Any, num_inputs: int = 3, **kwargs: Any) -> Step:
        layer.initialize()

        def run() -> None:
            with autograd.record():
                loss = layer(*[X] * num_inputs, *args, **kwargs).sum()
            loss.backward()
            X.grad.wait_to_read()
            for parameter in layer.collect_params().values():
                parameter.grad().wait_to_read()

        return run

    def prepare_shim() -> Step:
        if mask.is_linear:
            return make_step(d2l.LinearAttention(WIDTH, HEADS), num_inputs=1)
        layer = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        lens, bias = to_array(mask.valid_lens), to_array(mask.score_bias)
        return make_step(layer, lens, causal=mask.causal, score_bias=bias, window=mask.window)

    def prepare_upstream() -> Step:
        from d2l import mxnet as upstream

        return make_step(upstream.MultiHeadAttention(WIDTH, HEADS, 0.0), to_array(mask.all_lens))

    return {"shim": prepare_shim, "upstream": prepare_upstream}


def list_token_steps(n: int) -> dict[str, Callable[[], Step]]:
    X = mx.array(make_text(n + 1))
    last = X[:, n:]

    def prepare_cached() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        layer.initialize()
        cache = layer.make_cache(1, n + 1)
        layer(X[:, :n], None, cache)
        lengths = cache.lengths

        def run() -> object:
            cache.lengths = lengths
            return layer(last, None, cache).wait_to_read()

        return run

    def prepare_recomputed() -> Step:
        layer = d2l.CausalSelfAttention(WIDTH, HEADS)
        layer.initialize()
        return lambda: layer(X).wait_to_read()

    return {"cached": prepare_cached, "recomputed": prepare_recomputed}
