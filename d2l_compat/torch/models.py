"""The models of D2L 1.0's first chapters: linear and softmax regression, LeNet, ResNeXt's block."""

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
    """Examples y = Xw + b + noise: X (examples, features) of variance 1, y (examples, 1)."""

    def __init__(
        self,
        w: Tensor,
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
        self.X = torch.randn(num_train + num_val, len(w), dtype=w.dtype)
        errors = noise * torch.randn(len(self.X), 1, dtype=w.dtype)
        self.y = self.X @ w.reshape(-1, 1) + b + errors


class SGD(HyperParameters):
    """Minibatch stochastic gradient descent: a step is ``lr`` times the gradient."""

    params: Iterable[Tensor]
    lr: float

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        """Raises TypeError where ``params`` are no parameters, or ``lr`` no number."""
        linear.check_descent(params, lr, 1)
        params = list(params)
        self.save_hyperparameters()

    def step(self) -> None:
        """Change the parameters, in place, along the gradients that they have."""
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
        """Weights begin with the standard deviation ``sigma``. Raises TypeError or ValueError for bad sizes."""
        super().__init__()
        self.save_hyperparameters()
        sigma = real("sigma", sigma, "a number")
        self.w = nn.Parameter(sigma * torch.randn(size("num_inputs", num_inputs), 1))
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, X: Tensor) -> Tensor:
        """Xw + b, of X (..., features)."""
        return torch.matmul(X, self.w) + self.b

    def loss(self, y_hat: Tensor, y: Tensor) -> Tensor:
        """Half the mean squared difference."""
        return squared_loss(y_hat, y).mean()

    def configure_optimizers(self) -> Any:
        """:class:`SGD`, at the learning rate ``self.lr``."""
        return SGD([self.w, self.b], self.lr)


class LinearRegression(Module):
    """Linear regression with the framework's layer, which takes its size from the first input."""

    def __init__(self, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = _NearZero(1)

    def loss(self, y_hat: Tensor, y: Tensor) -> Tensor:
        """The mean squared difference: not half of it, as in MXNet and JAX."""
        return 2 * squared_loss(y_hat, y).mean()

    def get_w_b(self) -> tuple[Tensor, Tensor]:
        """The weights (1, features) and the bias (1,)."""
        return self.net.weight.data, self.net.bias.data


class _NearZero(nn.LazyLinear):
    """Its weights are drawn near zero, when the first input tells how many they are."""

    def reset_parameters(self) -> None:
        if self.in_features:
            nn.init.normal_(self.weight, std=0.01)
            nn.init.zeros_(self.bias)


class SoftmaxRegression(Classifier):
    """A linear layer for softmax regression, on inputs that are made vectors."""

    def __init__(self, num_outputs: int, lr: float) -> None:
        """Raises TypeError or ValueError for ``num_outputs`` below 1."""
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Flatten(), nn.LazyLinear(size("num_outputs", num_outputs)))


def init_cnn(module: Any) -> None:
    """Xavier's uniform weights for a linear or convolutional layer that has its sizes: for ``net.apply``."""
    is_known = not isinstance(module, LazyModuleMixin)
    if isinstance(module, (nn.Linear, nn.Conv2d)) and is_known:
        nn.init.xavier_uniform_(module.weight)


class LeNet(Classifier):
    """LeNet-5 (LeCun et al., 1998), for pictures (examples, channels, height, width)."""

    def __init__(self, lr: float = 0.1, num_classes: int = 10) -> None:
        """Raises TypeError or ValueError for ``num_classes`` below 1."""
        super().__init__()
        self.save_hyperparameters()

        def pooled(channels: int, padding: int) -> list[nn.Module]:
            convolution = nn.LazyConv2d(channels, kernel_size=5, padding=padding)
            return [convolution, nn.Sigmoid(), nn.AvgPool2d(kernel_size=2, stride=2)]

        self.net = nn.Sequential(
            *pooled(6, padding=2),
            *pooled(16, padding=0),
            nn.Flatten(),
            *(nn.LazyLinear(120), nn.Sigmoid()),
            *(nn.LazyLinear(84), nn.Sigmoid()),
            nn.LazyLinear(size("num_classes", num_classes)),
        )


class ResNeXtBlock(nn.Module):
    """ResNeXt's block (Xie et al., 2017): what it makes of its input is added to it.

    A bottleneck of ``bot_mul`` times ``num_channels`` is convolved in groups of ``groups`` channels each.
    """

    def __init__(
        self,
        num_channels: int,
        groups: int,
        bot_mul: float,
        use_1x1conv: bool = False,
        strides: int = 1,
    ) -> None:
        """``use_1x1conv`` gives the input the output's channels, and its size where ``strides`` is not 1.

        Raises TypeError or ValueError for sizes below 1, and where groups do not divide the bottleneck.
        """
        super().__init__()
        middle, number = shared.bottleneck_sizes(
            num_channels, groups, bot_mul, use_1x1conv, strides
        )
        self.conv1 = nn.LazyConv2d(middle, kernel_size=1)
        self.conv2 = nn.LazyConv2d(middle, 3, stride=strides, padding=1, groups=number)
        self.conv3 = nn.LazyConv2d(num_channels, kernel_size=1)
        self.bn1, self.bn2, self.bn3 = (nn.LazyBatchNorm2d() for _ in range(3))
        self.conv4 = nn.LazyConv2d(num_channels, 1, stride=strides) if use_1x1conv else None
        self.bn4 = nn.LazyBatchNorm2d() if use_1x1conv else None

    def forward(self, X: Tensor) -> Tensor:
        """Of X (examples, channels, height, width). Raises ValueError where the sum has not one shape."""
        arrays.check_rank("X", X, ("examples", "channels", "height", "width"))
        Y = F.relu(self.bn1(self.conv1(X)))
        Y = F.relu(self.bn2(self.conv2(Y)))
        Y = self.bn3(self.conv3(Y))
        if self.conv4 is not None and self.bn4 is not None:
            X = self.bn4(self.conv4(X))
        arrays.check_residual(X, Y)
        return F.relu(Y + X)
