"""Descent as a reader of D2L writes it in PyTorch."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from d2l_compat import torch as d2l
from tests.shim.each.boards import Begun

CPU = d2l.cpu()


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


def losses(y_hat: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, one for each example."""
    return torch.nn.functional.cross_entropy(y_hat, y.long(), reduction="none")


def updater(params: list[Any], lr: float) -> Callable[[int], None]:
    """For ``train_epoch_ch3``: of a model from scratch."""
    return lambda batch_size: d2l.sgd(params, lr, batch_size)


def optimizer(net: torch.nn.Module, lr: float) -> torch.optim.Optimizer:
    """For ``train_epoch_ch3``: the framework's own."""
    return torch.optim.SGD(net.parameters(), lr)


def dropped(net: torch.nn.Module, rate: float) -> torch.nn.Module:
    """A layer, and dropout after it."""
    return torch.nn.Sequential(net, torch.nn.Dropout(rate))


def model(make: Callable[[], Any]) -> Any:
    """For ``train_ch6``: a layer."""
    return make()


def train_ch6(
    make: Callable[[], Any], first: Callable[[Any], None], batches: Any, *args: Any, d2l: Any = d2l
) -> Any:
    """With ``d2l.train_ch6``: the model, which ``first`` was given before the first step."""
    net = model(make)
    assert d2l.train_ch6(net, Begun(batches, lambda: first(net)), *args, CPU) is None
    return net
