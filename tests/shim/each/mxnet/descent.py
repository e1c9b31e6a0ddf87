"""Gradient descent as a reader of D2L writes it in MXNet."""

from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat import mxnet as d2l  # isort: skip  it makes MXNet importable
from mxnet import autograd, gluon, np

from tests.shim.each import descent


class Descent(descent.Descent):
    d2l = d2l
    CPU = d2l.cpu()

    def variable(self, x: Any) -> np.ndarray:
        array = np.array(x)
        array.attach_grad()
        return array

    def sgd(self, params: list[Any], loss: Callable[[], Any], *args: Any, **kwargs: Any) -> None:
        with autograd.record():
            value = loss()
        super().sgd(params, lambda: value, *args, **kwargs)

    def take_step(self, params: Sequence[Any], *args: Any) -> None:
        for param in params:
            param[:] -= args[-1]["lr"] * param.grad

    def concise_optimizer(self, lr: float) -> tuple[Any, dict[str, Any]]:
        return "sgd", {"learning_rate": lr}

    def losses(self, y_hat: np.ndarray, y: np.ndarray) -> np.ndarray:
        return gluon.loss.SoftmaxCrossEntropyLoss()(y_hat, y)

    def optimizer(self, net: gluon.Block, lr: float) -> gluon.Trainer:
        return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr})

    def add_dropout(self, net: gluon.Block, rate: float) -> gluon.Block:
        layers = gluon.nn.Sequential()
        layers.add(net, gluon.nn.Dropout(rate))
        return layers
