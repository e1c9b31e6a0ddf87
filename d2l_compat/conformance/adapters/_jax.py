"""Ask JAX: arrays in either precision, and gradients by vjp."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from d2l_compat.conformance.files import Arrays, Case

jax.config.update("jax_enable_x64", True)


def answer(case: Case, function: Callable[[dict[str, jax.Array]], Any]) -> Arrays:
    """Call a function of the case's inputs, which returns the output, or output and weights; differentiate it."""
    arrays = {name: jax.numpy.asarray(x) for name, x in case.inputs.items()}

    def call(floats: dict[str, jax.Array]) -> Any:
        result = function(arrays | floats)
        return result if isinstance(result, tuple) else (result, None)

    @jax.jit  # faster than to compile each operation by itself
    def compute(floats: dict[str, jax.Array], direction: jax.Array | None) -> Any:
        if not floats:
            return *call({}), {}
        output, pull_back, weights = jax.vjp(call, floats, has_aux=True)
        return output, weights, pull_back(direction)[0]

    floats = {name: arrays[name] for name in case.gradients}
    output, weights, gradients = compute(floats, arrays.get("direction"))
    answers = {"output": output} | {f"gradient_{name}": x for name, x in gradients.items()}
    if weights is not None:
        answers["weights"] = weights
    return {name: np.asarray(x) for name, x in answers.items()}
