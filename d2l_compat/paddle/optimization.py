"""D2L's optimization chapter: train on the airfoil data, and draw an optimizer's path in two dimensions."""

from collections.abc import Callable
from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.io import DataLoader
from paddle.nn import functional as F

from d2l_compat._shared import optimization as shared
from d2l_compat._shared.checks import check_callable, size
from d2l_compat._shared.data.airfoil import airfoil
from d2l_compat.paddle.linear import evaluate_loss, linreg, load_array, squared_loss

__all__ = ["get_data_ch11", "show_trace_2d", "train_ch11", "train_concise_ch11"]


def show_trace_2d(f: Callable[[Tensor, Tensor], Any], results: Any) -> None:
    """Draw points (x1, x2), as :func:`train_2d` returns them, over the contours of ``f``.

    Raises TypeError or ValueError if ``results`` are not such points, or ``f`` is not a function of two tensors.
    """
    shared.show_trace(f, results, paddle.to_tensor)


def get_data_ch11(batch_size: int = 10, n: int = 1500) -> tuple[DataLoader, int]:
    """Return shuffled batches of the first ``n`` rows of D2L's airfoil data, and the number of features, 5.

    All columns have mean 0 and variance 1. Raises TypeError or ValueError for sizes below 1, and what
    :func:`download` raises.
    """
    X, y = map(paddle.to_tensor, airfoil(batch_size, n))
    return load_array((X, y), batch_size), X.shape[1]


def train_ch11(
    trainer_fn: Callable[..., Any],
    states: Any,
    hyperparams: Any,
    data_iter: Any,
    feature_dim: int,
    num_epochs: int = 2,
) -> tuple[list[float], list[float]]:
    """Train a linear model from scratch; ``trainer_fn([w, b], states, hyperparams)`` returns the next [w, b].

    The loss is plotted after every 200 examples. Returns the seconds elapsed until each point, and the losses. Raises
    TypeError or ValueError if ``trainer_fn`` is not a function, there are no batches, or a size is below 1.
    """
    check_callable("trainer_fn", trainer_fn)
    parameters = [0.01 * paddle.randn([size("feature_dim", feature_dim), 1]), paddle.zeros([1])]
    for parameter in parameters:
        parameter.stop_gradient = False

    def net(X: Tensor) -> Tensor:
        return linreg(X, *parameters)

    def step(X: Tensor, y: Tensor) -> None:
        squared_loss(net(X), y).mean().backward()
        # D2L's optimizers set gradients to zero in place, which Paddle allows only in `no_grad`.
        # Many of them return new parameters instead of changing the given ones.
        with paddle.no_grad():
            parameters[:] = trainer_fn(parameters[:], states, hyperparams) or parameters

    return shared.train(
        data_iter, num_epochs, step, lambda: evaluate_loss(net, data_iter, squared_loss)
    )


def train_concise_ch11(
    trainer_fn: Callable[..., paddle.optimizer.Optimizer],
    hyperparams: dict[str, Any],
    data_iter: Any,
    num_epochs: int = 4,
) -> None:
    """Train a linear layer with Paddle's optimizer ``trainer_fn(parameters=parameters, **hyperparams)``.

    Plots the loss and raises errors as :func:`train_ch11` does.
    """
    check_callable("trainer_fn", trainer_fn)
    shared.check_hyperparams(hyperparams)
    net = nn.Linear(5, 1, nn.initializer.Normal(std=0.01))
    optimizer = trainer_fn(parameters=net.parameters(), **hyperparams)

    def step(X: Tensor, y: Tensor) -> None:
        optimizer.clear_grad()
        F.mse_loss(net(X), y.reshape([-1, 1])).backward()
        optimizer.step()

    shared.train(data_iter, num_epochs, step, lambda: evaluate_loss(net, data_iter, squared_loss))
