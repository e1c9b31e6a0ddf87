"""Models of D2L 1.0's first chapters: linear and softmax regression, LeNet, ResNeXt's block."""

from collections.abc import Iterable
from typing import Any

from mxnet import init, np, npx
from mxnet.gluon import nn

from d2l_compat._shared import linear
from d2l_compat._shared import models as shared
from d2l_compat._shared.checks import real, size
from d2l_compat._shared.oo_design import HyperParameters
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet.linear import squared_loss
from d2l_compat.mxnet.training import Classifier, DataModule, Module

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
        w: np.ndarray,
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
        shape = num_train + num_val, len(w)
        self.X = np.random.normal(0, 1, shape, dtype=w.dtype)
        epsilon = noise * np.random.normal(0, 1, (len(self.X), 1), dtype=w.dtype)
        self.y = np.dot(self.X, w.reshape(-1, 1)) + b + epsilon


class SGD(HyperParameters):
    """Minibatch stochastic gradient descent: a step subtracts ``lr`` times the gradient."""

    params: Iterable[np.ndarray]
    lr: float

    def __init__(self, params: Iterable[np.ndarray], lr: float) -> None:
        """Store the parameters. Raises TypeError if ``params`` are not parameters, or ``lr`` is not a number."""
        linear.check_descent(params, lr, 1)
        params = list(params)
        self.save_hyperparameters()

    def step(self, batch_size: int) -> None:
        """Update the parameters in place. ``batch_size`` is ignored, since the loss is a mean."""
        for param in self.params:
            param -= self.lr * param.grad


class LinearRegressionScratch(Module):
    """Linear regression from scratch: weights ``w`` (features, 1) and a bias ``b`` (1,)."""

    def __init__(self, num_inputs: int, lr: float, sigma: float = 0.01) -> None:
        """Draw weights with the standard deviation ``sigma``. Raises TypeError or ValueError for bad sizes."""
        super().__init__()
        self.save_hyperparameters()
        sigma = real("sigma", sigma, "a number")
        self.w = sigma * np.random.normal(0, 1, (size("num_inputs", num_inputs), 1))
        self.b = np.zeros(1)
        for param in (self.w, self.b):
            param.attach_grad()

    def forward(self, X: np.ndarray) -> np.ndarray:
        """Return Xw + b, (..., 1), for X (..., features)."""
        return np.dot(X, self.w) + self.b

    def loss(self, y_hat: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return half the mean squared difference."""
        return squared_loss(y_hat, y).mean()

    def configure_optimizers(self) -> Any:
        """Return :class:`SGD` with the learning rate ``self.lr``."""
        return SGD([self.w, self.b], self.lr)


class LinearRegression(Module):
    """Linear regression with Gluon's layer, which takes its size from the first input."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Dense(1)
        self.net.initialize(init.Normal(sigma=0.01))

    def loss(self, y_hat: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return half the mean squared difference; in PyTorch and TensorFlow it is not halved."""
        return squared_loss(y_hat, y).mean()

    def get_w_b(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights (1, features) and the bias (1,)."""
        return self.net.weight.data(), self.net.bias.data()


class SoftmaxRegression(Classifier):
    """Softmax regression: a linear layer on flattened inputs."""

    def __init__(self, num_outputs: int, lr: float) -> None:
        """Create the model. Raises TypeError or ValueError for ``num_outputs`` below 1."""
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Dense(size("num_outputs", num_outputs))  # flattens its input
        self.net.initialize()


class LeNet(Classifier):
    """LeNet-5 (LeCun et al., 1998), for images (examples, channels, height, width)."""

    def __init__(self, lr: float = 0.1, num_classes: int = 10) -> None:
        """Create the model. Raises TypeError or ValueError for ``num_classes`` below 1."""
        super().__init__()
        self.save_hyperparameters()

        def conv_block(channels: int, padding: int) -> list[nn.Block]:
            convolution = nn.Conv2D(channels, 5, padding=padding, activation="sigmoid")
            return [convolution, nn.AvgPool2D(pool_size=2, strides=2)]

        self.net = nn.Sequential()
        self.net.add(
            *conv_block(6, padding=2),
            *conv_block(16, padding=0),
            nn.Dense(120, activation="sigmoid"),
            nn.Dense(84, activation="sigmoid"),
            nn.Dense(size("num_classes", num_classes)),
        )
        self.net.initialize(init.Xavier())


class ResNeXtBlock(nn.Block):
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
        **kwargs: Any,
    ) -> None:
        """Create the block; with ``use_1x1conv``, a 1 x 1 convolution gives the input the output's shape.

        ``kwargs`` are those of any Gluon block. Raises TypeError or ValueError for sizes below 1, and if ``groups``
        does not divide the bottleneck's channels.
        """
        super().__init__(**kwargs)
        width, num_groups = shared.bottleneck_sizes(
            num_channels, groups, bot_mul, use_1x1conv, strides
        )
        self.conv1 = nn.Conv2D(width, kernel_size=1)
        self.conv2 = nn.Conv2D(width, 3, strides=strides, padding=1, groups=num_groups)
        self.conv3 = nn.Conv2D(num_channels, kernel_size=1)
        self.bn1 = nn.BatchNorm()
        self.bn2 = nn.BatchNorm()
        self.bn3 = nn.BatchNorm()
        self.conv4 = nn.Conv2D(num_channels, 1, strides=strides) if use_1x1conv else None
        self.bn4 = nn.BatchNorm() if use_1x1conv else None

    def forward(self, X: np.ndarray) -> np.ndarray:
        """Return the block's output for X (examples, channels, height, width).

        Raises ValueError if X and the output of the convolutions differ in shape.
        """
        arrays.check_rank("X", X, ("examples", "channels", "height", "width"))
        Y = npx.relu(self.bn1(self.conv1(X)))
        Y = npx.relu(self.bn2(self.conv2(Y)))
        Y = self.bn3(self.conv3(Y))
        if self.conv4 is not None and self.bn4 is not None:
            X = self.bn4(self.conv4(X))
        arrays.check_residual(X, Y)
        return npx.relu(Y + X)
