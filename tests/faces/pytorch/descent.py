"""Descent as a reader of D2L's optimization chapter writes it in PyTorch."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from d2l_compat import torch as d2l


def variable(x: Any) -> torch.Tensor:
    """One that gets a gradient."""
    return torch.tensor(x, requires_grad=True)


def sgd(
    params: list[Any], loss: Callable[[], Any], lr: float, batch_size: int, d2l: Any = d2l
) -> None:
    """A step with ``d2l.sgd``, along the gradients of a loss."""
    loss().backward()
    d2l.sgd(params, lr, batch_size)


def trainer(params: Sequence[Any], states: Any, hyperparams: dict[str, Any]) -> None:
    """For ``train_ch11``."""
    for param in params:
        param.data -= hyperparams["lr"] * param.grad
        param.grad.zero_()


def concise(lr: float) -> tuple[Any, dict[str, Any]]:
    """For ``train_concise_ch11``, with the factor that its gradients have; the bias begins with 0."""

    def optimizer(params: Iterable[torch.Tensor], lr: float) -> torch.optim.Optimizer:
        weight, bias = params
        torch.nn.init.zeros_(bias)
        return torch.optim.SGD([weight, bias], lr=lr)

    return optimizer, {"lr": lr / 2}
