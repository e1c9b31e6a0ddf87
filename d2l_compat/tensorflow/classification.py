"""Training of classifiers as in D2L 0.17: ``train_ch3`` from scratch, ``train_ch6`` for convolutional networks."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import classification as shared
from d2l_compat._shared.checks import check_callable, check_instance, real, size
from d2l_compat._shared.data import images
from d2l_compat._shared.linear import batches, count_batches
from d2l_compat._shared.measuring import Timer
from d2l_compat.common import accuracy
from d2l_compat.tensorflow._keras import keras
from d2l_compat.tensorflow.datasets import FashionMNIST
from d2l_compat.tensorflow.devices import try_gpu
from d2l_compat.tensorflow.linear import sgd

__all__ = [
    "TrainCallback",
    "Updater",
    "evaluate_accuracy",
    "load_data_fashion_mnist",
    "train_ch3",
    "train_ch6",
    "train_epoch_ch3",
]


def load_data_fashion_mnist(
    batch_size: int, resize: int | tuple[int, int] | None = None
) -> tuple[tf.data.Dataset, tf.data.Dataset]:
    """Return Fashion-MNIST in batches as :class:`FashionMNIST` makes them: training batches, shuffled, and test batches.

    Images are ``resize`` pixels wide and high, or (height, width); the default is 28. Raises TypeError or ValueError
    for sizes below 1, and what :func:`download` raises.
    """
    data = FashionMNIST(batch_size, images.image_size(resize))
    return data.train_dataloader(), data.val_dataloader()


def evaluate_accuracy(net: Callable[[Any], Any], data_iter: Any) -> float:
    """Return the accuracy of ``net`` over all batches (X, y).

    Raises TypeError or ValueError if ``net`` is not callable, or there is no batch.
    """
    return shared.mean_accuracy(net, data_iter)


class Updater:
    """Stochastic gradient descent on ``params``: ``updater(batch_size, grads)`` takes a step."""

    def __init__(self, params: Sequence[tf.Variable], lr: float) -> None:
        self.params, self.lr = params, lr

    def __call__(self, batch_size: int, grads: Sequence[Any]) -> None:
        """Take a step with ``grads``, summed over ``batch_size`` examples. Raises what :func:`sgd` raises."""
        sgd(self.params, grads, self.lr, batch_size)


def train_epoch_ch3(
    net: Callable[..., Tensor],
    train_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    updater: Any,
) -> tuple[float, float]:
    """Train for one epoch; return the mean loss and the accuracy.

    ``loss(y_hat, y)`` returns one number per example, or is a Keras loss; ``updater`` is a Keras optimizer, or is
    called like an :class:`Updater`. A Keras layer is called with ``training=True``. Raises TypeError or ValueError if
    ``net``, ``loss`` or ``updater`` has the wrong type, or there is no batch (X, y).
    """
    is_optimizer = isinstance(updater, keras.optimizers.Optimizer)
    for name, function in ("net", net), ("loss", loss):
        check_callable(name, function)
    if not is_optimizer:
        check_callable("updater", updater)

    def step(X: Tensor, y: Tensor) -> tuple[Tensor, float]:
        with tf.GradientTape() as tape:
            y_hat = net(X, training=True) if isinstance(net, keras.layers.Layer) else net(X)
            # Keras's losses take the labels first, and return a mean.
            is_keras_loss = isinstance(loss, keras.losses.Loss)
            losses = loss(y, y_hat) if is_keras_loss else loss(y_hat, y)
        if is_optimizer:
            params = net.trainable_variables  # type: ignore[attr-defined]
            updater.apply_gradients(zip(tape.gradient(losses, params), params, strict=True))
        else:
            updater(len(X), tape.gradient(losses, updater.params))
        return losses * len(X) if is_keras_loss else tf.reduce_sum(losses), accuracy(y_hat, y)

    return shared.train_epoch(train_iter, step)


def train_ch3(
    net: Callable[..., Tensor],
    train_iter: Any,
    test_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    num_epochs: int,
    updater: Any,
) -> None:
    """Train with :func:`train_epoch_ch3`, and draw loss and accuracy after every epoch."""
    shared.train_ch3(
        num_epochs,
        lambda: train_epoch_ch3(net, train_iter, loss, updater),
        lambda: evaluate_accuracy(net, shared.yield_test_batches(test_iter)),
    )


class TrainCallback(keras.callbacks.Callback):
    """A callback that draws loss and accuracy after each epoch of ``net.fit``, and prints them after the last."""

    def __init__(
        self, net: keras.Model, train_iter: Any, test_iter: Any, num_epochs: int, device_name: str
    ) -> None:
        """Create the callback for a ``net`` compiled with the metric ``accuracy``; ``device_name`` is printed.

        Raises TypeError or ValueError if ``net`` is not a Keras model, ``num_epochs`` is below 1, or there are no
        batches.
        """
        super().__init__()
        check_instance("net", net, keras.Model, "a Keras model")
        count_batches("train_iter", train_iter)
        next(shared.yield_test_batches(test_iter))  # or Keras would fail after the first epoch
        self.timer = Timer()
        self.animator = shared.make_animator(size("num_epochs", num_epochs))
        self.net, self.train_iter, self.test_iter = net, train_iter, test_iter
        self.num_epochs, self.device_name = num_epochs, device_name

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Start the timer."""
        self.timer.start()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Draw the metrics; after the last epoch, print them."""
        self.timer.stop()
        test_metrics = self.net.evaluate(self.test_iter, verbose=0, return_dict=True)
        metrics = logs["loss"], logs["accuracy"], test_metrics["accuracy"]
        self.animator.add(epoch + 1, metrics)
        if epoch == self.num_epochs - 1:
            num_examples = sum(len(y) for _, y in batches(self.train_iter))
            shared.print_results(*metrics, num_examples / self.timer.avg(), self.device_name)


def train_ch6(
    net_fn: Callable[[], keras.Model],
    train_iter: Any,
    test_iter: Any,
    num_epochs: int,
    lr: float,
    device: Any = None,
) -> keras.Model:
    """Train the model ``net_fn()`` with stochastic gradient descent and cross-entropy on ``device``, and return it.

    The default device is the first GPU, or the CPU if there is none. Loss and accuracy are plotted, and printed at the
    end. Raises TypeError or ValueError if ``net_fn`` does not return a Keras model, ``num_epochs`` is below 1, or there
    is no batch.
    """
    check_callable("net_fn", net_fn)
    lr = real("lr", lr, "a number")
    device = try_gpu() if device is None else device
    device_name = device._device_name
    with tf.distribute.OneDeviceStrategy(device_name).scope():
        net = net_fn()
        callback = TrainCallback(net, train_iter, test_iter, num_epochs, device_name)
        net.compile(
            optimizer=keras.optimizers.SGD(learning_rate=lr),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    # The data set shuffles itself.
    net.fit(train_iter, epochs=num_epochs, verbose=0, shuffle=False, callbacks=[callback])
    return net
