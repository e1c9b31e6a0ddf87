from collections.abc import Callable
from typing import Any

import numpy as np

# First: it makes MXNet importable.
from d2l_compat import mxnet as d2l  # isort: skip
from mxnet import autograd
from mxnet import np as mx

from tools.bench.layers import HEADS, WIDTH, Step, inputs


def contenders(n: int, valid_lens: np.ndarray | None) -> dict[str, Callable[[], Step]]:
    X = mx.array(inputs(n))
    X.attach_grad()
    lens = None if valid_lens is None else mx.array(valid_lens)

    def step(layer: Any) -> Step:
        layer.initialize()

        def run() -> None:
            with autograd.record():
                loss = layer(X, X, X, lens).sum()
            loss.backward()
            X.grad.wait_to_read()
            for parameter in layer.collect_params().values():
                parameter.grad().wait_to_read()

        return run

    def shim() -> Step:
        return step(d2l.MultiHeadAttention(WIDTH, HEADS, 0.0))

    def theirs() -> Step:
        from d2l import mxnet as upstream

        return step(upstream.MultiHeadAttention(WIDTH, HEADS, 0.0))

    return {"shim": shim, "upstream": theirs}
