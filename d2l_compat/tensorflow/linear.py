"""Linear regression from scratch: data, model, loss and optimizer."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import linear
from d2l_compat._shared.checks import check_instance, format_value, message
from d2l_compat.tensorflow._arrays import Array, arrays
from d2l_compat.tensorflow.training import batches

__all__ = ["evaluate_loss", "linreg", "load_array", "sgd", "squared_loss", "synthetic_data"]


def synthetic_data(w: Array, b: Any, num_examples: int) -> tuple[Tensor, Tensor]:
    """Draw examples y = Xw + b + noise: X (num_examples, features) of variance 1, y (num_examples, 1).

    ``w`` is (features,) or (features, 1), ``b`` one number; the noise's standard deviation is 0.01. Raises
    TypeError or ValueError for other arguments.
    """
    b = linear.check_data_arguments(arrays, w, b, num_examples)
    X = tf.random.normal((num_examples, w.shape[0]), dtype=w.dtype)
    y = X @ tf.reshape(w, (w.shape[0], -1)) + b
    return X, tf.reshape(y + tf.random.normal(y.shape, stddev=0.01, dtype=w.dtype), (-1, 1))


def load_array(
    data_arrays: Sequence[Array], batch_size: int, is_train: bool = True
) -> tf.data.Dataset:
    """Return batches of ``batch_size`` rows of each tensor, shuffled if ``is_train``.

    Raises TypeError or ValueError if there are no rows, tensors differ in length, or ``batch_size`` is below 1.
    """
    linear.check_rows(arrays, data_arrays, batch_size, is_train)
    return batches(data_arrays, batch_size, shuffle=bool(is_train))


def linreg(X: Array, w: Array, b: Any) -> Tensor:
    """Return Xw + b, (..., outputs), for X (..., features) and w (features, outputs).

    Raises TypeError or ValueError if the shapes do not fit each other.
    """
    b = linear.check_product(arrays, X, w, b)
    return tf.linalg.matvec(X, w) + b if len(w.shape) == 1 else X @ w + b


def squared_loss(y_hat: Array, y: Array) -> Tensor:
    """Return half the squared differences, in the shape of ``y_hat``, to which ``y`` is reshaped.

    Raises TypeError or ValueError if the two differ in size.
    """
    linear.check_targets(arrays, y_hat, y)
    return (y_hat - tf.reshape(tf.cast(y, y_hat.dtype), y_hat.shape)) ** 2 / 2


def sgd(params: Iterable[tf.Variable], grads: Iterable[Any], lr: float, batch_size: int) -> None:
    """Take a step of stochastic gradient descent in place, dividing ``grads`` by ``batch_size``.

    Raises TypeError or ValueError if a parameter has no gradient, or ``batch_size`` is below 1.
    """
    linear.check_descent(params, lr, batch_size)
    if not isinstance(grads, Iterable) or isinstance(grads, (str, bytes)):
        raise TypeError(message("grads", format_value(grads), "a list of gradients"))
    params, grads = list(params), list(grads)
    if len(grads) != len(params):
        got = f"{len(grads)} for {len(params)} parameters"
        raise ValueError(message("grads", got, "one for each parameter"))
    for param in params:
        check_instance("params", param, tf.Variable, "variables")
    for param, grad in linear.pair_with_gradients(params, grads):
        param.assign_sub(lr * grad / batch_size)


def evaluate_loss(net: Callable[..., Any], data_iter: Any, loss: Callable[..., Any]) -> float:
    """Return the mean of ``loss(net(X), y)`` over all batches (X, y) of ``data_iter``.

    Raises TypeError or ValueError if ``net`` or ``loss`` is not a function, or there is no batch.
    """
    return linear.mean_loss(net, data_iter, loss)
