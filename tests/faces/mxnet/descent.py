"""Descent as a reader of D2L's optimization chapter writes it in MXNet."""

from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat import mxnet as d2l  # isort: skip  it makes MXNet importable
from mxnet import autograd, np


def variable(x: Any) -> np.ndarray:
    """One that gets a gradient."""
    made = np.array(x)
    made.attach_grad()
    return made


def sgd(
    params: list[Any], loss: Callable[[], Any], lr: float, batch_size: int, d2l: Any = d2l
) -> None:
    """A step with ``d2l.sgd``, along the gradients of a loss."""
    with autograd.record():
        value = loss()
    value.backward()
    d2l.sgd(params, lr, batch_size)


def trainer(params: Sequence[Any], states: Any, hyperparams: dict[str, Any]) -> None:
    """For ``train_ch11``."""
    for param in params:
        param[:] -= hyperparams["lr"] * param.grad


def concise(lr: float) -> tuple[Any, dict[str, Any]]:
    """For ``train_concise_ch11``, with the factor that its gradients have."""
    return "sgd", {"learning_rate": lr}
