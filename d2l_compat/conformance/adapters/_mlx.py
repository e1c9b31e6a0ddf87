"""Ask MLX: arrays, and gradients by vjp; float64 is computed on the CPU."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from d2l_compat.conformance.files import Array, Arrays, Case

mx.set_default_device(mx.cpu)


def tensor(x: Array) -> mx.array:
    return mx.array(x, getattr(mx, "bool_" if x.dtype == bool else str(x.dtype)))


def answer(case: Case, function: Callable[[dict[str, mx.array]], Any]) -> Arrays:
    """Call a function of the case's inputs, which returns the output, or output and weights; differentiate it."""
    arrays = {name: tensor(x) for name, x in case.inputs.items()}
    names = case.gradients

    def call(*floats: mx.array) -> list[mx.array]:
        result = function(arrays | dict(zip(names, floats, strict=True)))
        return [result[0] if isinstance(result, tuple) else result]

    result = function(arrays)
    output, weights = result if isinstance(result, tuple) else (result, None)
    answers = {"output": output}
    if weights is not None:
        answers["weights"] = weights
    if names:
        _, gradients = mx.vjp(call, [arrays[name] for name in names], [arrays["direction"]])
        answers |= {f"gradient_{name}": x for name, x in zip(names, gradients, strict=True)}
    return {name: np.array(x) for name, x in answers.items()}
