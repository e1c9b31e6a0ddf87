from collections.abc import Callable
from typing import Any

# Import this first: it makes MXNet importable.
from d2l_compat import mxnet as d2l  # isort: skip
from mxnet import autograd
from mxnet import np as mx

from tools.bench.layers import HEADS, WIDTH, Mask, Step, make_inputs, make_optional_converter

to_array = make_optional_converter(mx.array)


def list_layers(mask: Mask) -> dict[str, Callable[[], Step]]:
    X = mx.array(make_inputs(mask.n))
    X.attach_grad()

    def make_step(layer: Any, *args: Any, **kwargs: Any) -> Step:
        layer.initialize()

        def run() -> None:
            with autograd.record():
                loss = layer(X, X, X, *args, **kwargs).sum()
            loss.backward()
            X.grad.wait_to_read()
            for parameter in layer.collect_params().values():
                parameter.grad().wait_to_read()

        return run

    def prepare_shim() -> Step:
        layer = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        lens, bias = to_array(mask.valid_lens), to_array(mask.score_bias)
        return make_step(layer, lens, causal=mask.causal, score_bias=bias)

    def prepare_upstream() -> Step:
        from d2l import mxnet as upstream

        return make_step(upstream.MultiHeadAttention(WIDTH, HEADS, 0.0), to_array(mask.all_lens))

    if mask.score_bias is not None:
        return {"shim": prepare_shim}
    return {"shim": prepare_shim, "upstream": prepare_upstream}
