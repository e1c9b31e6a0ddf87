"""Ask MXNet: arrays, and gradients by autograd."""

from collections.abc import Callable
from typing import Any

# First: it makes MXNet importable.
import mxnet
from mxnet import autograd

from d2l_compat.conformance.files import Arrays, Case


def answer(case: Case, function: Callable[[dict[str, Any]], Any]) -> Arrays:
    """Call a function of the case's inputs, which returns the output, or output and weights; differentiate it."""
    arrays = {name: mxnet.np.array(x, dtype=x.dtype) for name, x in case.inputs.items()}
    for name in case.gradients:
        arrays[name].attach_grad()
    with autograd.record(train_mode=False):
        result = function(arrays)
        output, weights = result if isinstance(result, tuple) else (result, None)
    answers = {"output": output}
    if weights is not None:
        answers["weights"] = weights
    if case.gradients:
        output.backward(arrays["direction"])
        answers |= {f"gradient_{name}": arrays[name].grad for name in case.gradients}
    return {name: x.asnumpy() for name, x in answers.items()}
