"""The models of D2L 1.0's first chapters: linear and softmax regression, LeNet, ResNeXt's block."""

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

    They are the same each time, as in D2L: drawn from the key 0.
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
        """``w`` is (features,) or (features, 1), ``b`` one number, ``noise`` a standard deviation.

        Raises TypeError or ValueError for others.
        """
        super().__init__()
        self.save_hyperparameters()
        given = w, b, noise, num_train, num_val, batch_size
        b = shared.check_regression_data(arrays, *given)
        n = num_train + num_val
        of_X, of_noise = jax.random.split(jax.random.PRNGKey(0))
        self.X = jax.random.normal(of_X, (n, len(w)), w.dtype)
        errors = noise * jax.random.normal(of_noise, (n, 1), w.dtype)
        self.y = self.X @ w.reshape(-1, 1) + b + errors


class SGD(HyperParameters):
    """Minibatch stochastic gradient descent, as a transformation of Optax's: ``lr`` times the gradient."""

    lr: float

    def __init__(self, lr: float) -> None:
        """Raises TypeError where ``lr`` is no number."""
        real("lr", lr, "a number")
        self.save_hyperparameters()

    def init(self, params: Any) -> Any:
        """The state of descent, which has none."""
        import optax  # type: ignore[import-untyped]

        return optax.EmptyState()

    def update(self, updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        """What is to be added to the parameters, of their gradients; and the state."""
        return jax.tree.map(lambda gradient: -self.lr * gradient, updates), state

    def __call__(self) -> Any:
        """The same, in Optax's own form."""
        import optax

        return optax.GradientTransformation(self.init, self.update)


def _squared_loss(params: Any, X: Any, y: Any, state: Any) -> jax.Array:
    """Half the mean squared difference of what the state's model makes of ``X``, a tuple, and ``y``."""
    y_hat = state.apply_fn({"params": params}, *X)
    linear.check_targets(arrays, y_hat, y)
    return jnp.mean((y_hat - y.reshape(y_hat.shape)) ** 2) / 2


class LinearRegressionScratch(Module):
    """Linear regression from scratch: parameters ``w`` (num_inputs, 1), of standard deviation ``sigma``, and
    ``b`` (1,). Their first use raises TypeError or ValueError for bad sizes."""

    num_inputs: int
    lr: float
    sigma: float = 0.01

    def setup(self) -> None:
        shape = size("num_inputs", self.num_inputs), 1
        sigma = real("sigma", self.sigma, "a number")
        self.w = self.param("w", nn.initializers.normal(sigma), shape)
        self.b = self.param("b", nn.initializers.zeros, (1,))

    def forward(self, X: Array) -> jax.Array:
        """Xw + b, of X (..., features)."""
        return jnp.matmul(X, self.w) + self.b

    def loss(  # type: ignore[override]
        self, params: Any, X: Any, y: Any, state: Any
    ) -> jax.Array:
        """Half the mean squared difference."""
        return _squared_loss(params, X, y, state)

    def configure_optimizers(self) -> Any:
        """:class:`SGD`, at the learning rate ``self.lr``."""
        return SGD(self.lr)


class LinearRegression(Module):
    """Linear regression with Flax's layer."""

    lr: float

    def setup(self) -> None:
        self.net = nn.Dense(1, kernel_init=nn.initializers.normal(0.01))

    def loss(  # type: ignore[override]
        self, params: Any, X: Any, y: Any, state: Any
    ) -> jax.Array:
        """Half the mean squared difference: in PyTorch and TensorFlow it is not half."""
        return _squared_loss(params, X, y, state)

    def get_w_b(self, state: Any) -> tuple[jax.Array, jax.Array]:
        """The weights (features, 1) and the bias (1,) in the trainer's ``state``."""
        net = state.params["net"]
        return net["kernel"], net["bias"]


class SoftmaxRegression(Classifier):
    """A linear layer for softmax regression, on inputs that are made vectors.

    Its first use raises TypeError or ValueError for ``num_outputs`` below 1.
    """

    num_outputs: int
    lr: float

    @nn.compact
    def __call__(self, X: Array) -> jax.Array:
        """Logits (examples, num_outputs)."""
        return nn.Dense(size("num_outputs", self.num_outputs))(X.reshape(len(X), -1))


class LeNet(Classifier):
    """LeNet-5 (LeCun et al., 1998), for pictures (examples, height, width, channels).

    ``kernel_init()`` gives the weights' initializer. The first use raises TypeError or ValueError for
    ``num_classes`` below 1.
    """

    lr: float = 0.1
    num_classes: int = 10
    kernel_init: Callable[[], Any] = nn.initializers.xavier_uniform

    def setup(self) -> None:
        init = self.kernel_init()

        def pooled(channels: int, padding: str) -> list[Any]:
            convolution = nn.Conv(channels, (5, 5), padding=padding, kernel_init=init)
            return [convolution, nn.sigmoid, lambda X: nn.avg_pool(X, (2, 2), strides=(2, 2))]

        self.net = nn.Sequential(
            [
                *pooled(6, "SAME"),
                *pooled(16, "VALID"),
                lambda X: X.reshape(len(X), -1),
                *(nn.Dense(120, kernel_init=init), nn.sigmoid),
                *(nn.Dense(84, kernel_init=init), nn.sigmoid),
                nn.Dense(size("num_classes", self.num_classes), kernel_init=init),
            ]
        )


class ResNeXtBlock(nn.Module):
    """ResNeXt's block (Xie et al., 2017): what it makes of its input is added to it.

    A bottleneck of ``bot_mul`` times ``num_channels`` is convolved in groups of ``groups`` channels each;
    ``use_1x1conv`` gives the input the output's channels, and its size where ``strides`` are not 1. The
    first use raises TypeError or ValueError for sizes below 1, and where groups do not divide the bottleneck.
    """

    num_channels: int
    groups: int
    bot_mul: float
    use_1x1conv: bool = False
    strides: int | tuple[int, int] = (1, 1)
    training: bool = True

    def setup(self) -> None:
        sizes = self.num_channels, self.groups, self.bot_mul, self.use_1x1conv, self.strides
        middle, number = shared.bottleneck_sizes(*sizes)
        strides = (self.strides,) * 2 if isinstance(self.strides, int) else self.strides
        self.conv1 = nn.Conv(middle, (1, 1))
        self.conv2 = nn.Conv(middle, (3, 3), strides, "SAME", feature_group_count=number)
        self.conv3 = nn.Conv(self.num_channels, (1, 1))
        self.bn1, self.bn2, self.bn3 = (nn.BatchNorm(not self.training) for _ in range(3))
        if self.use_1x1conv:
            self.conv4 = nn.Conv(self.num_channels, (1, 1), strides)
            self.bn4 = nn.BatchNorm(not self.training)

    def __call__(self, X: Array) -> jax.Array:
        """Of X (examples, height, width, channels). Raises ValueError where the sum has not one shape."""
        arrays.check_rank("X", X, ("examples", "height", "width", "channels"))
        Y = nn.relu(self.bn1(self.conv1(X)))
        Y = nn.relu(self.bn2(self.conv2(Y)))
        Y = self.bn3(self.conv3(Y))
        if self.use_1x1conv:
            X = self.bn4(self.conv4(X))
        arrays.check_residual(X, Y)
        return nn.relu(Y + X)
