"""D2L's optimization chapter: train on the airfoil data, and draw an optimizer's path in two dimensions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from d2l_compat._shared import optimization as shared
from d2l_compat._shared.checks import check_callable, size
from d2l_compat._shared.data.airfoil import airfoil
from d2l_compat.torch.linear import evaluate_loss, linreg, load_array, squared_loss

__all__ = ["get_data_ch11", "show_trace_2d", "train_ch11", "train_concise_ch11"]


def show_trace_2d(f: Callable[[Tensor, Tensor], Any], results: Any) -> None:
    """Draw points (x1, x2), as :func:`train_2d` returns them, over the contours of ``f``.

    Raises TypeError or ValueError if ``results`` are not such points, or ``f`` is not a function of two tensors.
    """
    shared.show_trace(f, results, torch.from_numpy)


def get_data_ch11(batch_size: int = 10, n: int = 1500) -> tuple[DataLoader[Any], int]:
    """Return shuffled batches of the first ``n`` rows of D2L's airfoil data, and the number of features, 5.

    All columns have mean 0 and variance 1. Raises TypeError or ValueError for sizes below 1, and what
    :func:`download` raises.
    """
    X, y = map(torch.from_numpy, airfoil(batch_size, n))
    return load_array((X, y), batch_size), X.shape[1]


def train_ch11(
    trainer_fn: Callable[..., Any],
    states: Any,
    hyperparams: Any,
    data_iter: Any,
    feature_dim: int,
    num_epochs: int = 2,
) -> tuple[list[float], list[float]]:
    """Train a linear model from scratch; ``trainer_fn([w, b], states, hyperparams)`` takes a step.

    The loss is plotted after every 200 examples. Returns the seconds elapsed until each point, and the losses. Raises
    TypeError or ValueError if ``trainer_fn`` is not a function, there are no batches, or a size is below 1.
    """
    check_callable("trainer_fn", trainer_fn)
    w = torch.normal(0, 0.01, (size("feature_dim", feature_dim), 1), requires_grad=True)
    b = torch.zeros(1, requires_grad=True)

    def net(X: Tensor) -> Tensor:
        return linreg(X, w, b)

    def step(X: Tensor, y: Tensor) -> None:
        squared_loss(net(X), y).mean().backward()
        trainer_fn([w, b], states, hyperparams)

    return shared.train(
        data_iter, num_epochs, step, lambda: evaluate_loss(net, data_iter, squared_loss)
    )


def train_concise_ch11(
    trainer_fn: Callable[..., torch.optim.Optimizer],
    hyperparams: dict[str, Any],
    data_iter: Any,
    num_epochs: int = 4,
) -> None:
    """Train a linear layer with PyTorch's optimizer ``trainer_fn(parameters, **hyperparams)``.

    Plots the loss and raises errors as :func:`train_ch11` does.
    """
    check_callable("trainer_fn", trainer_fn)
    shared.check_hyperparams(hyperparams)
    net = nn.Linear(5, 1)
    nn.init.normal_(net.weight, std=0.01)
    optimizer = trainer_fn(net.parameters(), **hyperparams)

    def step(X: Tensor, y: Tensor) -> None:
        optimizer.zero_grad()
        F.mse_loss(net(X), y.reshape(-1, 1)).backward()
        optimizer.step()

    shared.train(data_iter, num_epochs, step, lambda: evaluate_loss(net, data_iter, squared_loss))
