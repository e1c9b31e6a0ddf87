"""Gradient descent as a reader of D2L writes it in TensorFlow."""

from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat import tensorflow as d2l  # isort: skip  importing it chooses Keras's backend
import tensorflow as tf

from d2l_compat.tensorflow._keras import keras
from tests.shim.each import descent


class Descent(descent.Descent):
    d2l = d2l
    CPU = d2l.cpu()

    def variable(self, x: Any) -> tf.Variable:
        return tf.Variable(x)

    def sgd(
        self, params: list[Any], loss: Callable[[], Any], lr: float, batch_size: int, d2l: Any = d2l
    ) -> None:
        with tf.GradientTape() as tape:
            value = loss()
        d2l.sgd(params, tape.gradient(value, params), lr, batch_size)

    def take_step(self, params: Sequence[Any], *args: Any) -> None:
        """Take a step; ``args[0]`` are the gradients."""
        for param, grad in zip(params, args[0], strict=True):
            param.assign_sub(args[-1]["lr"] * grad)

    def concise_optimizer(self, lr: float) -> tuple[Any, dict[str, Any]]:
        return keras.optimizers.SGD, {"learning_rate": lr / 2}

    def losses(self, y_hat: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return keras.losses.sparse_categorical_crossentropy(y, y_hat, from_logits=True)

    def updater(self, params: list[Any], lr: float) -> d2l.Updater:
        return d2l.Updater(params, lr)

    def mean_loss(self) -> keras.losses.Loss:
        """Return Keras's mean of the cross-entropy."""
        losses = self.losses

        class Mean(keras.losses.Loss):
            def call(self, y: tf.Tensor, y_hat: tf.Tensor) -> tf.Tensor:
                return losses(y_hat, y)

        return Mean()

    def optimizer(self, net: keras.layers.Layer, lr: float) -> keras.optimizers.Optimizer:
        return keras.optimizers.SGD(lr)

    def add_dropout(self, net: keras.layers.Layer, rate: float) -> keras.layers.Layer:
        return keras.Sequential([net, keras.layers.Dropout(rate)])

    def prepare_model(self, make: Callable[[], Any]) -> Any:
        return lambda: keras.Sequential([make()])

    def train_ch6(
        self,
        make: Callable[[], Any],
        hook: Callable[[Any], None],
        batches: Any,
        *args: Any,
        d2l: Any = d2l,
    ) -> Any:
        def net_fn() -> Any:
            net = self.prepare_model(make)()
            hook(net)
            return net

        return d2l.train_ch6(net_fn, batches, *args, self.CPU)
