"""Gradient descent as a reader of D2L writes it in PyTorch."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from d2l_compat import torch as d2l
from tests.shim.each import descent


class Descent(descent.Descent):
    d2l = d2l
    CPU = d2l.cpu()

    def variable(self, x: Any) -> torch.Tensor:
        return torch.tensor(x, requires_grad=True)

    def take_step(self, params: Sequence[Any], *args: Any) -> None:
        for param in params:
            param.data -= args[-1]["lr"] * param.grad
            param.grad.zero_()

    def concise_optimizer(self, lr: float) -> tuple[Any, dict[str, Any]]:
        def optimizer(params: Iterable[torch.Tensor], lr: float) -> torch.optim.Optimizer:
            weight, bias = params
            torch.nn.init.zeros_(bias)  # as in the other frameworks
            return torch.optim.SGD([weight, bias], lr=lr)

        return optimizer, {"lr": lr / 2}

    def losses(self, y_hat: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(y_hat, y.long(), reduction="none")

    def optimizer(self, net: torch.nn.Module, lr: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(net.parameters(), lr)

    def add_dropout(self, net: torch.nn.Module, rate: float) -> torch.nn.Module:
        return torch.nn.Sequential(net, torch.nn.Dropout(rate))
