"""Descent as a reader of D2L's optimization chapter writes it in Paddle."""

from collections.abc import Callable, Sequence
from typing import Any

import paddle

from d2l_compat import paddle as d2l


def variable(x: Any) -> paddle.Tensor:
    """One that gets a gradient."""
    return paddle.to_tensor(x, stop_gradient=False)


def sgd(
    params: list[Any], loss: Callable[[], Any], lr: float, batch_size: int, d2l: Any = d2l
) -> None:
    """A step with ``d2l.sgd``, along the gradients of a loss."""
    loss().backward()
    d2l.sgd(params, lr, batch_size)


def trainer(params: Sequence[Any], states: Any, hyperparams: dict[str, Any]) -> list[Any]:
    """For ``train_ch11``: as D2L's own, it gives new parameters, and sets gradients to zero in place."""
    new = [variable((param - hyperparams["lr"] * param.grad).numpy()) for param in params]
    for param in params:
        param.grad.zero_()
    return new


def concise(lr: float) -> tuple[Any, dict[str, Any]]:
    """For ``train_concise_ch11``, with the factor that its gradients have."""
    return paddle.optimizer.SGD, {"learning_rate": lr / 2}
