"""The parts of linear regression from scratch that are the same in every framework."""

from collections.abc import Callable, Iterable, Sized
from typing import Any

import numpy as np

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import (
    Arrays,
    check_callable,
    check_instance,
    check_representable,
    format_value,
    message,
    real,
    size,
)


def check_rows(arrays: Arrays, data_arrays: Any, batch_size: Any, is_train: Any) -> None:
    """Check arrays with the same number of rows, at least one, the batch size and ``is_train``."""
    need = "a tuple or a list of tensors"
    if not isinstance(data_arrays, (tuple, list)) or not data_arrays:
        raise TypeError(message("data_arrays", format_value(data_arrays), need))
    for array in data_arrays:
        arrays.check_instance("data_arrays", array, need)
    shapes = [tuple(arrays.shape(array)) for array in data_arrays]
    if any(shape[:1] != shapes[0][:1] or not shape or shape[0] == 0 for shape in shapes):
        got = f"shapes {', '.join(map(str, shapes))}"
        raise ValueError(
            message("data_arrays", got, "the same number of rows in each, at least one")
        )
    size("batch_size", batch_size)
    check_instance("is_train", is_train, (bool, int), "True or False")


def check_product(arrays: Arrays, X: Any, w: Any, b: Any) -> Any:
    """Check inputs (..., features), weights (features, outputs) or (features,), and a bias for the outputs.

    Return the bias in a floating-point dtype.
    """
    arrays.check_instance("X", X)
    check_weights(arrays, w)
    if not arrays.shape(X):
        raise ValueError(message("X", "shape ()", "shape (..., features)"))
    arrays.check_last_dimension("X", X, arrays.shape(w)[0])
    if not isinstance(b, arrays.types):
        arrays.check_floating("X and w", X, w)
        return _bias_number(arrays, b, X)
    _, b = arrays.cast_integers(X, b)
    arrays.check_floating("X, w and b", X, w, b)
    outputs = (*arrays.shape(X)[:-1], *arrays.shape(w)[1:])
    try:
        fits = np.broadcast_shapes(tuple(arrays.shape(b)), outputs) == outputs
    except ValueError:
        fits = False
    if not fits:
        got = f"shape {tuple(arrays.shape(b))} for outputs of shape {outputs}"
        raise ValueError(message("b", got, "one number for each output, or one for all"))
    return b


def _bias_number(arrays: Arrays, b: Any, x: Any) -> float:
    check_representable("b", b, arrays.dtype(x))
    return float(b)


def check_weights(arrays: Arrays, w: Any) -> None:
    arrays.check_instance("w", w)
    if len(arrays.shape(w)) not in (1, 2):
        need = "shape (features,) or (features, outputs)"
        raise ValueError(message("w", f"shape {tuple(arrays.shape(w))}", need))


def check_data_arguments(arrays: Arrays, w: Any, b: Any, num_examples: Any) -> Any:
    """Check the arguments of synthetic data: weights, a bias, a number of examples. Return the bias."""
    check_weights(arrays, w)
    arrays.check_floating("w", w)
    if tuple(arrays.shape(w)[1:]) not in ((), (1,)):
        need = "shape (features,) or (features, 1)"
        raise ValueError(message("w", f"shape {tuple(arrays.shape(w))}", need))
    size("num_examples", num_examples)
    if not isinstance(b, arrays.types):
        return _bias_number(arrays, b, w)
    _, b = arrays.cast_integers(w, b)
    arrays.check_floating("w and b", w, b)
    if np.prod(arrays.shape(b)) != 1:
        raise ValueError(message("b", f"shape {tuple(arrays.shape(b))}", "one number"))
    return b


def check_targets(arrays: Arrays, y_hat: Any, y: Any) -> None:
    """Check predictions, and equally many targets."""
    arrays.check_instance("y_hat", y_hat)
    arrays.check_instance("y", y)
    arrays.check_floating("y_hat", y_hat)
    predictions_shape, shape = tuple(arrays.shape(y_hat)), tuple(arrays.shape(y))
    if np.prod(predictions_shape) != np.prod(shape):
        got = f"shape {shape} for predictions of shape {predictions_shape}"
        raise ValueError(message("y", got, "one number for each prediction"))
    if arrays.dtype(y).startswith(("bool", "complex")):
        raise TypeError(message("y", f"dtype {arrays.dtype(y)}", "a dtype of numbers"))


def check_descent(params: Any, lr: Any, batch_size: Any) -> None:
    """Check parameters, a learning rate, and the number of examples whose gradients were summed."""
    if not isinstance(params, Iterable) or isinstance(params, (str, bytes)):
        raise TypeError(message("params", format_value(params), "a list of parameters"))
    real("lr", lr, "a number")
    size("batch_size", batch_size)


def pair_with_gradients(params: Iterable[Any], gradients: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return pairs of a parameter and its gradient; raise ValueError if one has no gradient."""
    pairs = [*zip(params, gradients, strict=True)]
    if any(gradient is None for _, gradient in pairs):
        need = "a gradient for each; call backward first"
        raise ValueError(message("params", "a parameter without a gradient", need))
    return pairs


def mean_loss(
    net: Any, data_iter: Any, loss: Any, as_outputs: Callable[[Any, Any], Any] = lambda y, _: y
) -> float:
    """Return the mean of all numbers in ``loss(net(X), y)``, over all batches.

    ``as_outputs(y, outputs)`` reshapes labels like outputs, for losses that need it.
    """
    check_callable("net", net)
    check_callable("loss", loss)
    total, count = 0.0, 0
    for X, y in batches(data_iter):
        outputs = net(X)
        losses = to_numpy("loss", loss(outputs, as_outputs(y, outputs)))
        total += float(losses.sum())
        count += losses.size
    if not count:
        raise no_examples_error("data_iter")
    return total / count


def batches(data_iter: Any, what: str = "data_iter") -> Iterable[tuple[Any, Any]]:
    """Yield each batch of ``data_iter``, inputs and labels; ``what`` is its name in messages."""
    need = "batches (inputs, labels)"
    if not isinstance(data_iter, Iterable) or isinstance(data_iter, (str, bytes, dict)):
        raise TypeError(message(what, format_value(data_iter), need))
    for batch in data_iter:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise TypeError(message(what, f"a batch that is {format_value(batch)}", need))
        yield batch[0], batch[1]


def count_batches(what: str, data_iter: Any) -> int:
    """Return the number of batches, at least one."""
    # Scalars of a framework have __len__, which raises.
    is_scalar = getattr(data_iter, "ndim", 1) == 0
    count = len(data_iter) if isinstance(data_iter, Sized) and not is_scalar else 0
    if not count:
        raise TypeError(message(what, format_value(data_iter), "batches, at least one"))
    return count


def no_examples_error(what: str) -> ValueError:
    """Return the error for a loop that found no batches."""
    return ValueError(message(what, "no examples", "at least one batch"))
