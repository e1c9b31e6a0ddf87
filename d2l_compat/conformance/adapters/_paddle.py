"""Ask PaddlePaddle: tensors, and gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle

from d2l_compat.conformance.files import Arrays, Case


def answer(case: Case, function: Callable[[dict[str, paddle.Tensor]], Any]) -> Arrays:
    """Call a function of the case's inputs, which returns the output, or output and weights; differentiate it."""
    tensors = {name: paddle.to_tensor(np.array(x)) for name, x in case.inputs.items()}
    floats = [tensors[name] for name in case.gradients]
    for x in floats:
        x.stop_gradient = False
    result = function(tensors)
    output, weights = result if isinstance(result, tuple) else (result, None)
    answers = {"output": output.numpy()}
    if weights is not None:
        answers["weights"] = weights.numpy()
    if floats:
        total = (output * tensors["direction"]).sum()
        gradients = paddle.grad(total, floats, allow_unused=True)
        for name, x, gradient in zip(case.gradients, floats, gradients, strict=True):
            answers[f"gradient_{name}"] = (
                np.zeros(x.shape) if gradient is None else gradient.numpy()
            )
    return answers
