"""Models of D2L 1.0's first chapters: linear and softmax regression, LeNet, ResNeXt's block."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import models as shared
from d2l_compat._shared.checks import real, size
from d2l_compat._shared.oo_design import HyperParameters
from d2l_compat.tensorflow._arrays import arrays, layer_inputs
from d2l_compat.tensorflow._keras import keras
from d2l_compat.tensorflow.linear import squared_loss
from d2l_compat.tensorflow.training import Classifier, DataModule, Module

__all__ = [
    "SGD",
    "LeNet",
    "LinearRegression",
    "LinearRegressionScratch",
    "ResNeXtBlock",
    "SoftmaxRegression",
    "SyntheticRegressionData",
]


class SyntheticRegressionData(shared.RegressionData, DataModule):
    """Synthetic examples y = Xw + b + noise: X (examples, features) of variance 1, y (examples, 1)."""

    def __init__(
        self,
        w: Tensor,
        b: Any,
        noise: float = 0.01,
        num_train: int = 1000,
        num_val: int = 1000,
        batch_size: int = 32,
    ) -> None:
        """Draw the examples.

        ``w`` is (features,) or (features, 1), ``b`` one number, ``noise`` a standard deviation. Raises TypeError or
        ValueError for other arguments.
        """
        super().__init__()
        self.save_hyperparameters()
        b = shared.check_regression_data(arrays, w, b, noise, num_train, num_val, batch_size)
        n = num_train + num_val
        self.X = tf.random.normal((n, w.shape[0]), dtype=w.dtype)
        epsilon = noise * tf.random.normal((n, 1), dtype=w.dtype)
        self.y = self.X @ tf.reshape(w, (-1, 1)) + b + epsilon


class SGD(HyperParameters):
    """Minibatch stochastic gradient descent: a step subtracts ``lr`` times the gradient."""

    lr: float

    def __init__(self, lr: float) -> None:
        """Store the learning rate. Raises TypeError if ``lr`` is not a number."""
        real("lr", lr, "a number")
        self.save_hyperparameters()

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, tf.Variable]]) -> None:
        """Update each variable in place with its gradient."""
        for gradient, variable in grads_and_vars:
            variable.assign_sub(self.lr * gradient)


class LinearRegressionScratch(Module):
    """Linear regression from scratch: weights ``w`` (features, 1) and a bias ``b`` (1,)."""

    def __init__(self, num_inputs: int, lr: float, sigma: float = 0.01) -> None:
        """Draw weights with the standard deviation ``sigma``. Raises TypeError or ValueError for bad sizes."""
        super().__init__()
        self.save_hyperparameters()
        sigma = real("sigma", sigma, "a number")
        w = tf.random.normal((size("num_inputs", num_inputs), 1), stddev=sigma)
        self.w = tf.Variable(w)
        self.b = tf.Variable(tf.zeros(1))

    def forward(self, X: Tensor) -> Tensor:
        """Return Xw + b, (..., 1), for X (..., features)."""
        return tf.matmul(X, self.w) + self.b

    def loss(self, y_hat: Tensor, y: Tensor) -> Tensor:
        """Return half the mean squared difference."""
        return tf.reduce_mean(squared_loss(y_hat, y))

    def configure_optimizers(self) -> Any:
        """Return :class:`SGD` with the learning rate ``self.lr``."""
        return SGD(self.lr)


class LinearRegression(Module):
    """Linear regression with Keras's layer, which takes its size from the first input."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        initializer = keras.initializers.RandomNormal(stddev=0.01)
        self.net = keras.layers.Dense(1, kernel_initializer=initializer)

    def loss(self, y_hat: Tensor, y: Tensor) -> Tensor:
        """Return the mean squared difference; in MXNet and JAX it is half of that."""
        return 2 * tf.reduce_mean(squared_loss(y_hat, y))

    def get_w_b(self) -> tuple[Any, Any]:
        """Return the weights (features, 1) and the bias (1,) as NumPy arrays."""
        w, b = self.net.get_weights()
        return w, b


class SoftmaxRegression(Classifier):
    """Softmax regression: a linear layer on flattened inputs."""

    def __init__(self, num_outputs: int, lr: float) -> None:
        """Create the model. Raises TypeError or ValueError for ``num_outputs`` below 1."""
        super().__init__()
        self.save_hyperparameters()
        num_outputs = size("num_outputs", num_outputs)
        self.net = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(num_outputs)])


class LeNet(Classifier):
    """LeNet-5 (LeCun et al., 1998), for images (examples, height, width, channels)."""

    def __init__(self, lr: float = 0.1, num_classes: int = 10) -> None:
        """Create the model. Raises TypeError or ValueError for ``num_classes`` below 1."""
        super().__init__()
        self.save_hyperparameters()

        def conv_block(channels: int, padding: str) -> list[Any]:
            convolution = keras.layers.Conv2D(channels, 5, activation="sigmoid", padding=padding)
            return [convolution, keras.layers.AveragePooling2D(pool_size=2, strides=2)]

        self.net = keras.Sequential(
            [
                *conv_block(6, "same"),
                *conv_block(16, "valid"),
                keras.layers.Flatten(),
                keras.layers.Dense(120, activation="sigmoid"),
                keras.layers.Dense(84, activation="sigmoid"),
                keras.layers.Dense(size("num_classes", num_classes)),
            ]
        )


class ResNeXtBlock(keras.Model):
    """The residual block of ResNeXt (Xie et al., 2017).

    Its bottleneck has ``bot_mul`` times ``num_channels`` channels, convolved in groups of ``groups`` channels each.
    """

    def __init__(
        self,
        num_channels: int,
        groups: int,
        bot_mul: float,
        use_1x1conv: bool = False,
        strides: int = 1,
    ) -> None:
        """Create the block; with ``use_1x1conv``, a 1 x 1 convolution gives the input the output's shape.

        Raises TypeError or ValueError for sizes below 1, and if ``groups`` does not divide the bottleneck's channels.
        """
        super().__init__()
        width, num_groups = shared.bottleneck_sizes(
            num_channels, groups, bot_mul, use_1x1conv, strides
        )
        self.conv1 = keras.layers.Conv2D(width, 1)
        self.conv2 = keras.layers.Conv2D(
            width, 3, strides=strides, padding="same", groups=num_groups
        )
        self.conv3 = keras.layers.Conv2D(num_channels, 1)
        self.bn1 = keras.layers.BatchNormalization()
        self.bn2 = keras.layers.BatchNormalization()
        self.bn3 = keras.layers.BatchNormalization()
        self.conv4 = keras.layers.Conv2D(num_channels, 1, strides=strides) if use_1x1conv else None
        self.bn4 = keras.layers.BatchNormalization() if use_1x1conv else None

    def call(self, X: Tensor, training: bool | None = None) -> Tensor:
        """Return the block's output for X (examples, height, width, channels).

        Raises ValueError if X and the output of the convolutions differ in shape.
        """
        layer_inputs.check_rank("X", X, ("examples", "height", "width", "channels"))
        Y = keras.activations.relu(self.bn1(self.conv1(X), training=training))
        Y = keras.activations.relu(self.bn2(self.conv2(Y), training=training))
        Y = self.bn3(self.conv3(Y), training=training)
        if self.conv4 is not None and self.bn4 is not None:
            X = self.bn4(self.conv4(X), training=training)
        layer_inputs.check_residual(X, Y)
        return keras.activations.relu(Y + X)
