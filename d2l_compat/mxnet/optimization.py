"""D2L's optimization chapter: train on the airfoil data, and draw an optimizer's path in two dimensions."""

from collections.abc import Callable
from typing import Any

from mxnet import autograd, gluon, init, np
from mxnet.gluon import nn
from mxnet.optimizer import Optimizer

from d2l_compat._shared import optimization as shared
from d2l_compat._shared.checks import check_callable, format_value, message, size
from d2l_compat._shared.data.airfoil import airfoil
from d2l_compat.mxnet.linear import evaluate_loss, linreg, load_array, squared_loss

__all__ = ["get_data_ch11", "show_trace_2d", "train_ch11", "train_concise_ch11"]


def show_trace_2d(f: Callable[[np.ndarray, np.ndarray], Any], results: Any) -> None:
    """Draw points (x1, x2), as :func:`train_2d` returns them, over the contours of ``f``.

    Raises TypeError or ValueError if ``results`` are not such points, or ``f`` is not a function of two arrays.
    """
    shared.show_trace(f, results, np.array)


def get_data_ch11(batch_size: int = 10, n: int = 1500) -> tuple[gluon.data.DataLoader, int]:
    """Return shuffled batches of the first ``n`` rows of D2L's airfoil data, and the number of features, 5.

    All columns have mean 0 and variance 1. Raises TypeError or ValueError for sizes below 1, and what
    :func:`download` raises.
    """
    X, y = airfoil(batch_size, n)
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
    w = np.random.normal(0, 0.01, (size("feature_dim", feature_dim), 1))
    b = np.zeros(1)
    for param in (w, b):
        param.attach_grad()

    def net(X: np.ndarray) -> np.ndarray:
        return linreg(X, w, b)

    def step(X: np.ndarray, y: np.ndarray) -> None:
        with autograd.record():
            loss = squared_loss(net(X), y).mean()
        loss.backward()
        trainer_fn([w, b], states, hyperparams)

    return shared.train(
        data_iter, num_epochs, step, lambda: evaluate_loss(net, data_iter, squared_loss)
    )


def train_concise_ch11(
    tr_name: str | Optimizer, hyperparams: dict[str, Any], data_iter: Any, num_epochs: int = 2
) -> None:
    """Train a linear layer with ``gluon.Trainer(parameters, tr_name, hyperparams)``.

    Plots the loss and raises errors as :func:`train_ch11` does.
    """
    if not isinstance(tr_name, (str, Optimizer)):
        raise TypeError(
            message(
                "tr_name", format_value(tr_name), "the name of an MXNet optimizer, or an optimizer"
            )
        )
    shared.check_hyperparams(hyperparams)
    net = nn.Dense(1)
    loss = gluon.loss.L2Loss()
    net.initialize(init.Normal(0.01))
    trainer = gluon.Trainer(net.collect_params(), tr_name, hyperparams)

    def step(X: np.ndarray, y: np.ndarray) -> None:
        with autograd.record():
            losses = loss(net(X), y)
        losses.backward()
        trainer.step(len(X))

    shared.train(data_iter, num_epochs, step, lambda: evaluate_loss(net, data_iter, loss))
