"""Models of D2L 1.0's first chapters: linear and softmax regression, LeNet, ResNeXt's block."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat._shared import linear
from d2l_compat._shared import models as shared
from d2l_compat._shared.checks import real, size
from d2l_compat._shared.oo_design import HyperParameters
from d2l_compat.jax._arrays import Array, arrays
from d2l_compat.jax.training import Classifier, DataModule, Module

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
    """Examples y = Xw + b + noise: X (examples, features) of variance 1, y (examples, 1).

    They are the same each time, as in D2L: the random key is 0.
    """

    def __init__(
        self,
        w: Array,
        b: Any,
        noise: float = 0.01,
        num_train: int = 1000,
        num_val: int = 1000,
        batch_size: int = 32,
    ) -> None:
        """Draw the examples; ``w`` is (features,) or (features, 1), ``noise`` a standard deviation.

        Raises TypeError or ValueError for an argument of the wrong type, shape or range.
        """
        super().__init__()
        self.save_hyperparameters()
        b = shared.check_regression_data(arrays, w, b, noise, num_train, num_val, batch_size)
        n = num_train + num_val
        X_key, noise_key = jax.random.split(jax.random.PRNGKey(0))
        self.X = jax.random.normal(X_key, (n, len(w)), w.dtype)
        errors = noise * jax.random.normal(noise_key, (n, 1), w.dtype)
        self.y = self.X @ w.reshape(-1, 1) + b + errors


class SGD(HyperParameters):
    """Minibatch stochastic gradient descent, with the methods of an Optax transformation."""

    lr: float

    def __init__(self, lr: float) -> None:
        """Set the learning rate. Raises TypeError if ``lr`` is not a number."""
        real("lr", lr, "a number")
        self.save_hyperparameters()

    def init(self, params: Any) -> Any:
        """Return the initial state, which is empty."""
        import optax  # type: ignore[import-untyped]

        return optax.EmptyState()

    def update(self, updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        """Map gradients to updates, to be added to the parameters; also return the state."""
        return jax.tree.map(lambda gradient: -self.lr * gradient, updates), state

    def __call__(self) -> Any:
        """Return the optimizer as an ``optax.GradientTransformation``."""
        import optax

        return optax.GradientTransformation(self.init, self.update)


def _squared_loss(params: Any, X: Any, y: Any, state: Any) -> jax.Array:
    """Return half the mean squared difference between ``y`` and the model's output for the inputs ``X``, a tuple."""
    y_hat = state.apply_fn({"params": params}, *X)
    linear.check_targets(arrays, y_hat, y)
    return jnp.mean((y_hat - y.reshape(y_hat.shape)) ** 2) / 2


class LinearRegressionScratch(Module):
    """Linear regression from scratch.

    The parameters are ``w`` (num_inputs, 1), drawn with the standard deviation ``sigma``, and
    ``b`` (1,). The first use raises TypeError or ValueError for bad sizes.
    """

    num_inputs: int
    lr: float
    sigma: float = 0.01

    def setup(self) -> None:
        shape = size("num_inputs", self.num_inputs), 1
        sigma = real("sigma", self.sigma, "a number")
        self.w = self.param("w", nn.initializers.normal(sigma), shape)
        self.b = self.param("b", nn.initializers.zeros, (1,))

    def forward(self, X: Array) -> jax.Array:
        """Compute Xw + b, for X (..., features)."""
        return jnp.matmul(X, self.w) + self.b

    def loss(  # type: ignore[override]
        self, params: Any, X: Any, y: Any, state: Any
    ) -> jax.Array:
        """Return half the mean squared difference."""
        return _squared_loss(params, X, y, state)

    def configure_optimizers(self) -> Any:
        """Return :class:`SGD` with the learning rate ``self.lr``."""
        return SGD(self.lr)


class LinearRegression(Module):
    """Linear regression with Flax's layer."""

    lr: float

    def setup(self) -> None:
        self.net = nn.Dense(1, kernel_init=nn.initializers.normal(0.01))

    def loss(  # type: ignore[override]
        self, params: Any, X: Any, y: Any, state: Any
    ) -> jax.Array:
        """Return half the mean squared difference; in PyTorch and TensorFlow it is not halved."""
        return _squared_loss(params, X, y, state)

    def get_w_b(self, state: Any) -> tuple[jax.Array, jax.Array]:
        """Return the weights (features, 1) and the bias (1,) in the trainer's ``state``."""
        net = state.params["net"]
        return net["kernel"], net["bias"]


class SoftmaxRegression(Classifier):
    """Softmax regression: a linear layer on flattened inputs.

    The first use raises TypeError or ValueError for ``num_outputs`` below 1.
    """

    num_outputs: int
    lr: float

    @nn.compact
    def __call__(self, X: Array) -> jax.Array:
        """Return logits (examples, num_outputs)."""
        return nn.Dense(size("num_outputs", self.num_outputs))(X.reshape(len(X), -1))


class LeNet(Classifier):
    """LeNet-5 (LeCun et al., 1998), for images (examples, height, width, channels).

    ``kernel_init()`` returns the weights' initializer. The first use raises TypeError or ValueError
    for ``num_classes`` below 1.
    """

    lr: float = 0.1
    num_classes: int = 10
    kernel_init: Callable[[], Any] = nn.initializers.xavier_uniform

    def setup(self) -> None:
        init = self.kernel_init()

        def pool(X: Array) -> jax.Array:
            return nn.avg_pool(X, (2, 2), strides=(2, 2))

        self.net = nn.Sequential(
            [
                nn.Conv(6, (5, 5), padding="SAME", kernel_init=init),
                nn.sigmoid,
                pool,
                nn.Conv(16, (5, 5), padding="VALID", kernel_init=init),
                nn.sigmoid,
                pool,
                lambda X: X.reshape(len(X), -1),
                nn.Dense(120, kernel_init=init),
                nn.sigmoid,
                nn.Dense(84, kernel_init=init),
                nn.sigmoid,
                nn.Dense(size("num_classes", self.num_classes), kernel_init=init),
            ]
        )


class ResNeXtBlock(nn.Module):
    """The residual block of ResNeXt (Xie et al., 2017).

    Its bottleneck has ``bot_mul`` times ``num_channels`` channels, convolved in groups of ``groups``
    channels each. With ``use_1x1conv``, a 1 x 1 convolution gives the input the output's shape. The
    first use raises TypeError or ValueError for sizes below 1, and ValueError if ``groups`` does not
    divide the bottleneck's channels.
    """

    num_channels: int
    groups: int
    bot_mul: float
    use_1x1conv: bool = False
    strides: int | tuple[int, int] = (1, 1)
    training: bool = True

    def setup(self) -> None:
        channels, num_groups = shared.bottleneck_sizes(
            self.num_channels, self.groups, self.bot_mul, self.use_1x1conv, self.strides
        )
        strides = (self.strides,) * 2 if isinstance(self.strides, int) else self.strides
        self.conv1 = nn.Conv(channels, (1, 1))
        self.conv2 = nn.Conv(channels, (3, 3), strides, "SAME", feature_group_count=num_groups)
        self.conv3 = nn.Conv(self.num_channels, (1, 1))
        self.bn1 = nn.BatchNorm(not self.training)
        self.bn2 = nn.BatchNorm(not self.training)
        self.bn3 = nn.BatchNorm(not self.training)
        if self.use_1x1conv:
            self.conv4 = nn.Conv(self.num_channels, (1, 1), strides)
            self.bn4 = nn.BatchNorm(not self.training)

    def __call__(self, X: Array) -> jax.Array:
        """Apply the block to X (examples, height, width, channels).

        Raises ValueError if X and the output of the convolutions differ in shape.
        """
        arrays.check_rank("X", X, ("examples", "height", "width", "channels"))
        Y = nn.relu(self.bn1(self.conv1(X)))
        Y = nn.relu(self.bn2(self.conv2(Y)))
        Y = self.bn3(self.conv3(Y))
        if self.use_1x1conv:
            X = self.bn4(self.conv4(X))
        arrays.check_residual(X, Y)
        return nn.relu(Y + X)
