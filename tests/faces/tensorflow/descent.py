"""Descent as a reader of D2L's optimization chapter writes it in TensorFlow."""

from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat import tensorflow as d2l  # isort: skip  it chooses Keras's backend
import keras
import tensorflow as tf


def variable(x: Any) -> tf.Variable:
    """One that gets a gradient."""
    return tf.Variable(x)


def sgd(
    params: list[Any], loss: Callable[[], Any], lr: float, batch_size: int, d2l: Any = d2l
) -> None:
    """A step with ``d2l.sgd``, along the gradients of a loss."""
    with tf.GradientTape() as tape:
        value = loss()
    d2l.sgd(params, tape.gradient(value, params), lr, batch_size)


def trainer(
    params: Sequence[Any], grads: Sequence[Any], states: Any, hyperparams: dict[str, Any]
) -> None:
    """For ``train_ch11``."""
    for param, grad in zip(params, grads, strict=True):
        param.assign_sub(hyperparams["lr"] * grad)


def concise(lr: float) -> tuple[Any, dict[str, Any]]:
    """For ``train_concise_ch11``, with the factor that its gradients have."""
    return keras.optimizers.SGD, {"learning_rate": lr / 2}
