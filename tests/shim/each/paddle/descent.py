"""Descent as a reader of D2L writes it in Paddle."""

from collections.abc import Callable, Sequence
from typing import Any

import paddle

from d2l_compat import paddle as d2l
from tests.shim.each.boards import Begun

CPU = d2l.cpu()


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
    with paddle.no_grad():
        for param in params:
            param.grad.zero_()
    return new


def concise(lr: float) -> tuple[Any, dict[str, Any]]:
    """For ``train_concise_ch11``, with the factor that its gradients have."""
    return paddle.optimizer.SGD, {"learning_rate": lr / 2}


def losses(y_hat: paddle.Tensor, y: paddle.Tensor) -> paddle.Tensor:
    """Cross-entropy, one for each example."""
    return paddle.nn.functional.cross_entropy(y_hat, y, reduction="none")


def updater(params: list[Any], lr: float) -> Callable[[int], None]:
    """For ``train_epoch_ch3``: of a model from scratch."""
    return lambda batch_size: d2l.sgd(params, lr, batch_size)


def optimizer(net: paddle.nn.Layer, lr: float) -> paddle.optimizer.Optimizer:
    """For ``train_epoch_ch3``: the framework's own."""
    return paddle.optimizer.SGD(lr, net.parameters())


def dropped(net: paddle.nn.Layer, rate: float) -> paddle.nn.Layer:
    """A layer, and dropout after it."""
    return paddle.nn.Sequential(net, paddle.nn.Dropout(rate))


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
