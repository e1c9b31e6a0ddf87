"""Linear regression from scratch: data, model, loss and optimizer."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from d2l_compat._shared import linear
from d2l_compat.torch._arrays import arrays

__all__ = ["evaluate_loss", "linreg", "load_array", "sgd", "squared_loss", "synthetic_data"]


def synthetic_data(w: Tensor, b: Any, num_examples: int) -> tuple[Tensor, Tensor]:
    """Draw examples y = Xw + b + noise: X (num_examples, features) of variance 1, y (num_examples, 1).

    ``w`` is (features,) or (features, 1), ``b`` one number; the standard deviation of the noise is 0.01. Raises
    TypeError or ValueError for other arguments.
    """
    b = linear.check_data_arguments(arrays, w, b, num_examples)
    X = torch.normal(0, 1, (num_examples, len(w)), dtype=w.dtype)
    y = X @ w + b
    return X, (y + torch.normal(0, 0.01, y.shape, dtype=w.dtype)).reshape(-1, 1)


def load_array(
    data_arrays: Sequence[Tensor], batch_size: int, is_train: bool = True
) -> DataLoader[Any]:
    """Return batches of ``batch_size`` rows of each tensor, shuffled if ``is_train``.

    Raises TypeError or ValueError if there are no rows, tensors differ in length, or ``batch_size`` is below 1.
    """
    linear.check_rows(arrays, data_arrays, batch_size, is_train)
    return DataLoader(TensorDataset(*data_arrays), batch_size, shuffle=bool(is_train))


def linreg(X: Tensor, w: Tensor, b: Any) -> Tensor:
    """Return Xw + b, (..., outputs), for X (..., features) and w (features, outputs).

    Raises TypeError or ValueError if the shapes do not fit each other.
    """
    b = linear.check_product(arrays, X, w, b)
    return X @ w + b


def squared_loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """Return half the squared differences, in the shape of ``y_hat``, to which ``y`` is reshaped.

    Raises TypeError or ValueError if the two differ in size.
    """
    linear.check_targets(arrays, y_hat, y)
    return (y_hat - y.reshape(y_hat.shape)) ** 2 / 2


def sgd(params: Iterable[Tensor], lr: float, batch_size: int) -> None:
    """Take a step of stochastic gradient descent in place, dividing the gradients by ``batch_size``.

    Afterwards the gradients are set to zero. Raises TypeError or ValueError if a parameter has no gradient, or
    ``batch_size`` is below 1.
    """
    linear.check_descent(params, lr, batch_size)
    params = list(params)
    for param in params:
        arrays.check_instance("params", param)
    with torch.no_grad():
        for param, grad in linear.pair_with_gradients(params, [param.grad for param in params]):
            param -= lr * grad / batch_size
            grad.zero_()


def evaluate_loss(net: Callable[..., Any], data_iter: Any, loss: Callable[..., Any]) -> float:
    """Return the mean of ``loss(net(X), y)`` over ``data_iter``, with ``y`` reshaped like the outputs.

    Raises TypeError or ValueError if ``net`` or ``loss`` is not a function, or there are no batches (X, y).
    """
    with torch.no_grad():
        return linear.mean_loss(net, data_iter, loss, lambda y, outputs: y.reshape(outputs.shape))
