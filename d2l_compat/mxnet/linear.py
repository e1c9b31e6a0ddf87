"""Linear regression from scratch: examples, model, loss and descent."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as onp
from mxnet import gluon, np

from d2l_compat._shared import linear
from d2l_compat.mxnet._arrays import arrays

__all__ = ["evaluate_loss", "linreg", "load_array", "sgd", "squared_loss", "synthetic_data"]


def synthetic_data(w: np.ndarray, b: Any, num_examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples y = Xw + b + noise: X (num_examples, features) of variance 1, y (num_examples, 1).

    ``w`` is (features,) or (features, 1), ``b`` one number; the noise's standard deviation is 0.01. Raises
    TypeError or ValueError for others.
    """
    b = linear.check_data_arguments(arrays, w, b, num_examples)
    X = np.random.normal(0, 1, (num_examples, len(w)), dtype=w.dtype)
    y = np.dot(X, w) + b
    return X, (y + np.random.normal(0, 0.01, y.shape, dtype=w.dtype)).reshape(-1, 1)


def load_array(
    data_arrays: Sequence[np.ndarray], batch_size: int, is_train: bool = True
) -> gluon.data.DataLoader:
    """Batches of ``batch_size`` rows of each array, shuffled where ``is_train``; NumPy's may be among them, and lists of numbers.

    Raises TypeError or ValueError where there are no rows, or not equally many, or for a size below 1.
    """
    if isinstance(data_arrays, (tuple, list)):
        data_arrays = [*map(_array, data_arrays)]
    linear.check_rows(arrays, data_arrays, batch_size, is_train)
    dataset = gluon.data.ArrayDataset(*data_arrays)
    return gluon.data.DataLoader(dataset, batch_size, shuffle=bool(is_train))


def _array(rows: Any) -> Any:
    if isinstance(rows, list) and onp.asarray(rows).dtype.kind in "iuf":
        rows = onp.asarray(rows)
    return np.array(rows, dtype=rows.dtype) if isinstance(rows, onp.ndarray) else rows


def linreg(X: np.ndarray, w: np.ndarray, b: Any) -> np.ndarray:
    """Xw + b: of X (..., features) and w (features, outputs) it is (..., outputs).

    Raises TypeError or ValueError where these do not fit each other.
    """
    b = linear.check_product(arrays, X, w, b)
    return np.dot(X, w) + b


def squared_loss(y_hat: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Half the squared differences, in the shape of ``y_hat``, which ``y`` is given as well.

    Raises TypeError or ValueError where they have not equally many numbers.
    """
    linear.check_targets(arrays, y_hat, y)
    return (y_hat - y.astype(y_hat.dtype).reshape(y_hat.shape)) ** 2 / 2


def sgd(params: Iterable[np.ndarray], lr: float, batch_size: int) -> None:
    """A step of stochastic gradient descent, in place: the gradients are sums over ``batch_size`` examples.

    Raises TypeError or ValueError where there is none, or for a size below 1.
    """
    linear.check_descent(params, lr, batch_size)
    params = list(params)
    for param in params:
        arrays.check_instance("params", param)
    for param, grad in linear.pair_with_gradients(params, [param.grad for param in params]):
        param[:] = param - lr * grad / batch_size


def evaluate_loss(net: Callable[..., Any], data_iter: Any, loss: Callable[..., Any]) -> float:
    """The mean of ``loss(net(X), y)`` over ``data_iter``.

    Raises TypeError or ValueError where these are no functions, or no batches (X, y).
    """
    return linear.mean_loss(net, data_iter, loss)
