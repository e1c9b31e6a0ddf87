"""Models of D2L 1.0's first chapters: linear and softmax regression, LeNet, and ResNeXt's block."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.lazy import LazyModuleMixin

from d2l_compat._shared import linear
from d2l_compat._shared import models as shared
from d2l_compat._shared.checks import real, size
from d2l_compat._shared.oo_design import HyperParameters
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch.linear import squared_loss
from d2l_compat.torch.training import Classifier, DataModule, Module

__all__ = [
    "SGD",
    "LeNet",
    "LinearRegression",
    "LinearRegressionScratch",
    "ResNeXtBlock",
    "SoftmaxRegression",
    "SyntheticRegressionData",
    "init_cnn",
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
        self.X = torch.randn(num_train + num_val, len(w), dtype=w.dtype)
        errors = noise * torch.randn(len(self.X), 1, dtype=w.dtype)
        self.y = self.X @ w.reshape(-1, 1) + b + errors


class SGD(HyperParameters):
    """Minibatch stochastic gradient descent: a step subtracts ``lr`` times the gradient."""

    params: Iterable[Tensor]
    lr: float

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        """Store the parameters. Raises TypeError if ``params`` are not parameters, or ``lr`` is not a number."""
        linear.check_descent(params, lr, 1)
        params = list(params)
        self.save_hyperparameters()

    def step(self) -> None:
        """Update all parameters that have gradients, in place."""
        with torch.no_grad():
            for param in self.params:
                if param.grad is not None:
                    param -= self.lr * param.grad

    def zero_grad(self) -> None:
        """Set the gradients to zero."""
        for param in self.params:
            if param.grad is not None:
                param.grad.zero_()


class LinearRegressionScratch(Module):
    """Linear regression from scratch: weights ``w`` (features, 1) and a bias ``b`` (1,)."""

    def __init__(self, num_inputs: int, lr: float, sigma: float = 0.01) -> None:
        """Draw weights with the standard deviation ``sigma``. Raises TypeError or ValueError for bad sizes."""
        super().__init__()
        self.save_hyperparameters()
        sigma = real("sigma", sigma, "a number")
        self.w = nn.Parameter(sigma * torch.randn(size("num_inputs", num_inputs), 1))
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, X: Tensor) -> Tensor:
        """Return Xw + b, (..., 1), for X (..., features)."""
        return torch.matmul(X, self.w) + self.b

    def loss(self, y_hat: Tensor, y: Tensor) -> Tensor:
        """Return half the mean squared difference."""
        return squared_loss(y_hat, y).mean()

    def configure_optimizers(self) -> Any:
        """Return :class:`SGD` with the learning rate ``self.lr``."""
        return SGD([self.w, self.b], self.lr)


class LinearRegression(Module):
    """Linear regression with PyTorch's layer, which takes its size from the first input."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = LazyLinear(1)

    def loss(self, y_hat: Tensor, y: Tensor) -> Tensor:
        """Return the mean squared difference; in MXNet and JAX it is half of that."""
        return 2 * squared_loss(y_hat, y).mean()

    def get_w_b(self) -> tuple[Tensor, Tensor]:
        """Return the weights (1, features) and the bias (1,)."""
        return self.net.weight.data, self.net.bias.data


class LazyLinear(nn.LazyLinear):
    """A linear layer whose weights are drawn near zero, once the first input sets their shape.

    It has the name of its base class, since ``print(model)`` shows it.
    """

    def reset_parameters(self) -> None:
        if self.in_features:
            nn.init.normal_(self.weight, std=0.01)
            nn.init.zeros_(self.bias)


class SoftmaxRegression(Classifier):
    """Softmax regression: a linear layer on flattened inputs."""

    def __init__(self, num_outputs: int, lr: float) -> None:
        """Create the model. Raises TypeError or ValueError for ``num_outputs`` below 1."""
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Flatten(), nn.LazyLinear(size("num_outputs", num_outputs)))


def init_cnn(module: Any) -> None:
    """Draw Xavier's uniform weights for a linear or convolutional layer of known size, for use in ``net.apply``."""
    has_sizes = not isinstance(module, LazyModuleMixin)
    if isinstance(module, (nn.Linear, nn.Conv2d)) and has_sizes:
        nn.init.xavier_uniform_(module.weight)


class LeNet(Classifier):
    """LeNet-5 (LeCun et al., 1998), for images (examples, channels, height, width)."""

    def __init__(self, lr: float = 0.1, num_classes: int = 10) -> None:
        """Create the model. Raises TypeError or ValueError for ``num_classes`` below 1."""
        super().__init__()
        self.save_hyperparameters()

        def conv_block(channels: int, padding: int) -> list[nn.Module]:
            convolution = nn.LazyConv2d(channels, kernel_size=5, padding=padding)
            return [convolution, nn.Sigmoid(), nn.AvgPool2d(kernel_size=2, stride=2)]

        self.net = nn.Sequential(
            *conv_block(6, padding=2),
            *conv_block(16, padding=0),
            nn.Flatten(),
            nn.LazyLinear(120),
            nn.Sigmoid(),
            nn.LazyLinear(84),
            nn.Sigmoid(),
            nn.LazyLinear(size("num_classes", num_classes)),
        )


class ResNeXtBlock(nn.Module):
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
        self.conv1 = nn.LazyConv2d(width, kernel_size=1)
        self.conv2 = nn.LazyConv2d(width, 3, stride=strides, padding=1, groups=num_groups)
        self.conv3 = nn.LazyConv2d(num_channels, kernel_size=1)
        self.bn1 = nn.LazyBatchNorm2d()
        self.bn2 = nn.LazyBatchNorm2d()
        self.bn3 = nn.LazyBatchNorm2d()
        self.conv4 = nn.LazyConv2d(num_channels, 1, stride=strides) if use_1x1conv else None
        self.bn4 = nn.LazyBatchNorm2d() if use_1x1conv else None

    def forward(self, X: Tensor) -> Tensor:
        """Return the block's output for X (examples, channels, height, width).

        Raises ValueError if X and the output of the convolutions differ in shape.
        """
        arrays.check_rank("X", X, ("examples", "channels", "height", "width"))
        Y = F.relu(self.bn1(self.conv1(X)))
        Y = F.relu(self.bn2(self.conv2(Y)))
        Y = self.bn3(self.conv3(Y))
        if self.conv4 is not None and self.bn4 is not None:
            X = self.bn4(self.conv4(X))
        arrays.check_residual(X, Y)
        return F.relu(Y + X)
