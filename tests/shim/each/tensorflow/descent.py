"""Descent as a reader of D2L writes it in TensorFlow."""

from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat import tensorflow as d2l  # isort: skip  it chooses Keras's backend
import tensorflow as tf

from d2l_compat.tensorflow._keras import keras

CPU = d2l.cpu()


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


def losses(y_hat: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Cross-entropy, one for each example."""
    return keras.losses.sparse_categorical_crossentropy(y, y_hat, from_logits=True)


def updater(params: list[Any], lr: float) -> d2l.Updater:
    """For ``train_epoch_ch3``: of a model from scratch."""
    return d2l.Updater(params, lr)


class Mean(keras.losses.Loss):
    """Cross-entropy, and its mean."""

    def call(self, y: tf.Tensor, y_hat: tf.Tensor) -> tf.Tensor:
        return losses(y_hat, y)


def optimizer(net: keras.layers.Layer, lr: float) -> keras.optimizers.Optimizer:
    """For ``train_epoch_ch3``: the framework's own."""
    return keras.optimizers.SGD(lr)


def dropped(net: keras.layers.Layer, rate: float) -> keras.layers.Layer:
    """A layer, and dropout after it."""
    return keras.Sequential([net, keras.layers.Dropout(rate)])


def model(make: Callable[[], Any]) -> Any:
    """For ``train_ch6``: a function that makes a model."""
    return lambda: keras.Sequential([make()])


def train_ch6(
    make: Callable[[], Any], first: Callable[[Any], None], batches: Any, *args: Any, d2l: Any = d2l
) -> Any:
    """With ``d2l.train_ch6``: the model, which ``first`` was given before the first step."""

    def net_fn() -> Any:
        net = model(make)()
        first(net)
        return net

    return d2l.train_ch6(net_fn, batches, *args, CPU)
