"""Gradient descent as a reader of D2L writes it in Paddle."""

from collections.abc import Sequence
from typing import Any

import paddle

from d2l_compat import paddle as d2l
from tests.shim.each import descent


class Descent(descent.Descent):
    d2l = d2l
    CPU = d2l.cpu()

    def variable(self, x: Any) -> paddle.Tensor:
        return paddle.to_tensor(x, stop_gradient=False)

    def take_step(self, params: Sequence[Any], *args: Any) -> list[Any]:
        """Return new parameters, and set gradients to zero in place, as D2L's own code does."""
        new = [self.variable((param - args[-1]["lr"] * param.grad).numpy()) for param in params]
        with paddle.no_grad():
            for param in params:
                param.grad.zero_()
        return new

    def concise_optimizer(self, lr: float) -> tuple[Any, dict[str, Any]]:
        return paddle.optimizer.SGD, {"learning_rate": lr / 2}

    def losses(self, y_hat: paddle.Tensor, y: paddle.Tensor) -> paddle.Tensor:
        return paddle.nn.functional.cross_entropy(y_hat, y, reduction="none")

    def optimizer(self, net: paddle.nn.Layer, lr: float) -> paddle.optimizer.Optimizer:
        return paddle.optimizer.SGD(lr, net.parameters())

    def add_dropout(self, net: paddle.nn.Layer, rate: float) -> paddle.nn.Layer:
        return paddle.nn.Sequential(net, paddle.nn.Dropout(rate))
