"""Linear regression from scratch: data, model, loss and optimizer."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as onp
from mxnet import gluon, np

from d2l_compat._shared import linear
from d2l_compat.mxnet._arrays import arrays

__all__ = ["evaluate_loss", "linreg", "load_array", "sgd", "squared_loss", "synthetic_data"]


def synthetic_data(w: np.ndarray, b: Any, num_examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw examples y = Xw + b + noise: X (num_examples, features) of variance 1, y (num_examples, 1).

    ``w`` is (features,) or (features, 1), ``b`` one number; the noise's standard deviation is 0.01. Raises
    TypeError or ValueError for other arguments.
    """
    b = linear.check_data_arguments(arrays, w, b, num_examples)
    X = np.random.normal(0, 1, (num_examples, len(w)), dtype=w.dtype)
    y = np.dot(X, w) + b
    return X, (y + np.random.normal(0, 0.01, y.shape, dtype=w.dtype)).reshape(-1, 1)


def load_array(
    data_arrays: Sequence[np.ndarray], batch_size: int, is_train: bool = True
) -> gluon.data.DataLoader:
    """Return batches of ``batch_size`` rows of each array, shuffled if ``is_train``.

    Arrays may also be NumPy's, or lists of numbers. Raises TypeError or ValueError if there are no rows, arrays differ
    in length, or ``batch_size`` is below 1.
    """
    if isinstance(data_arrays, (tuple, list)):
        data_arrays = [*map(_to_tensor, data_arrays)]
    linear.check_rows(arrays, data_arrays, batch_size, is_train)
    dataset = gluon.data.ArrayDataset(*data_arrays)
    return gluon.data.DataLoader(dataset, batch_size, shuffle=bool(is_train))


def _to_tensor(rows: Any) -> Any:
    if isinstance(rows, list) and onp.asarray(rows).dtype.kind in "iuf":
        rows = onp.asarray(rows)
    return np.array(rows, dtype=rows.dtype) if isinstance(rows, onp.ndarray) else rows


def linreg(X: np.ndarray, w: np.ndarray, b: Any) -> np.ndarray:
    """Return Xw + b, (..., outputs), for X (..., features) and w (features, outputs).

    Raises TypeError or ValueError if the shapes do not fit each other.
    """
    b = linear.check_product(arrays, X, w, b)
    return np.dot(X, w) + b


def squared_loss(y_hat: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return half the squared differences, in the shape of ``y_hat``, to which ``y`` is reshaped.

    Raises TypeError or ValueError if the two differ in size.
    """
    linear.check_targets(arrays, y_hat, y)
    return (y_hat - y.astype(y_hat.dtype).reshape(y_hat.shape)) ** 2 / 2


def sgd(params: Iterable[np.ndarray], lr: float, batch_size: int) -> None:
    """Take a step of stochastic gradient descent in place, dividing the gradients by ``batch_size``.

    Raises TypeError or ValueError if a parameter has no gradient, or ``batch_size`` is below 1.
    """
    linear.check_descent(params, lr, batch_size)
    params = list(params)
    for param in params:
        arrays.check_instance("params", param)
    for param, grad in linear.pair_with_gradients(params, [param.grad for param in params]):
        param[:] = param - lr * grad / batch_size


def evaluate_loss(net: Callable[..., Any], data_iter: Any, loss: Callable[..., Any]) -> float:
    """Return the mean of ``loss(net(X), y)`` over all batches (X, y) of ``data_iter``.

    Raises TypeError or ValueError if ``net`` or ``loss`` is not a function, or there is no batch.
    """
    return linear.mean_loss(net, data_iter, loss)
