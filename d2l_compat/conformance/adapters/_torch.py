"""Ask PyTorch: tensors, and gradients by autograd."""

from collections.abc import Callable
from typing import Any

import torch

from d2l_compat.conformance.files import Arrays, Case


def answer(
    case: Case,
    function: Callable[[dict[str, torch.Tensor]], Any],
    *,
    has_gradients: bool = True,
) -> Arrays:
    """Call a function of the case's inputs, which returns the output, or output and weights; differentiate it."""
    tensors = {name: torch.tensor(x) for name, x in case.inputs.items()}
    names = case.gradients if has_gradients else []
    for name in names:
        tensors[name].requires_grad_()
    output, weights = split_result(function(tensors))
    answers = {"output": output.detach().numpy()}
    if weights is not None:
        answers["weights"] = weights.detach().numpy()
    if names:
        (output * tensors["direction"]).sum().backward()
        for name in names:
            gradient = tensors[name].grad
            answers[f"gradient_{name}"] = (
                torch.zeros_like(tensors[name]) if gradient is None else gradient
            ).numpy()
    return answers


def split_result(result: Any) -> tuple[Any, Any]:
    """Split a result into output and weights, which may be missing."""
    return result if isinstance(result, tuple) else (result, None)
