"""Residual blocks, and the small ResNet-18 of D2L's chapter on computer vision."""

from itertools import pairwise
from typing import overload

from torch import Tensor, nn
from torch.nn import functional as F

from d2l_compat._shared import signatures
from d2l_compat._shared.checks import size
from d2l_compat._shared.version import is_0_17

__all__ = ["Residual", "resnet18"]


class Residual(nn.Module):
    """The residual block of He et al. (2016), section 3.2, with both of D2L's signatures.

    ``Residual(num_channels, use_1x1conv=False, strides=1)`` takes the number of input channels from its first input;
    ``Residual(input_channels, num_channels, use_1x1conv=False, strides=1)`` specifies it. The output of two 3 x 3
    convolutions with batch normalization, the first with these ``strides``, is added to the input; with ``use_1x1conv``
    the input first passes through a 1 x 1 convolution with the same strides.
    """

    @overload
    def __init__(self, num_channels: int, use_1x1conv: bool = False, strides: int = 1) -> None: ...
    @overload
    def __init__(
        self, input_channels: int, num_channels: int, use_1x1conv: bool = False, strides: int = 1
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(
        self,
        *,
        num_channels: int,
        use_1x1conv: bool,
        strides: int,
        input_channels: int | None = None,
    ) -> None:
        """Create the block. Raises ValueError or TypeError for arguments of the wrong type or range."""
        super().__init__()
        hidden_channels = input_channels and num_channels
        self.conv1 = _conv(input_channels, num_channels, 3, strides)
        self.conv2 = _conv(hidden_channels, num_channels, 3)
        self.conv3 = _conv(input_channels, num_channels, 1, strides) if use_1x1conv else None
        self.bn1 = _norm(hidden_channels)
        self.bn2 = _norm(hidden_channels)

    def forward(self, X: Tensor) -> Tensor:
        """Return the block's output for X (batch, input channels, height, width).

        Its shape is (batch, num_channels, height / strides, width / strides), rounded up.
        """
        Y = F.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        return F.relu(Y + (X if self.conv3 is None else self.conv3(X)))


def resnet18(num_classes: int, in_channels: int = 1) -> nn.Sequential:
    """Create a ResNet-18 (He et al., 2016) for small images.

    It begins with a 3 x 3 convolution, and has no pooling before the blocks. It maps (batch, in_channels, height,
    width) to logits (batch, num_classes). Raises ValueError or TypeError if an argument is not a size of at least 1.
    """
    num_classes, in_channels = size("num_classes", num_classes), size("in_channels", in_channels)
    net = nn.Sequential(_conv(in_channels, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
    for number, (inputs, outputs) in enumerate(pairwise((64, 64, 128, 256, 512)), 1):
        net.add_module(f"resnet_block{number}", _stage(inputs, outputs))
    net.add_module("global_avg_pool", nn.AdaptiveAvgPool2d((1, 1)))
    net.add_module("fc", nn.Sequential(nn.Flatten(), nn.Linear(512, num_classes)))
    return net


def _stage(inputs: int, outputs: int) -> nn.Sequential:
    """Create two blocks; if the channels double, height and width are halved.

    In D2L 1.0, their first call sets their input channels, and draws their weights.
    """
    is_same = inputs == outputs
    strides = 1 if is_same else 2
    if not is_0_17():
        return nn.Sequential(Residual(outputs, not is_same, strides), Residual(outputs))
    first = Residual(inputs, outputs, not is_same, strides)
    return nn.Sequential(first, Residual(outputs, outputs))


def _conv(inputs: int | None, outputs: int, kernel_size: int, strides: int = 1) -> nn.Conv2d:
    """Create a convolution that keeps height and width if ``strides`` is 1; the first call sets missing ``inputs``."""
    if inputs is None:
        return nn.LazyConv2d(outputs, kernel_size, strides, padding=kernel_size // 2)
    return nn.Conv2d(inputs, outputs, kernel_size, strides, padding=kernel_size // 2)


def _norm(channels: int | None) -> nn.Module:
    return nn.LazyBatchNorm2d() if channels is None else nn.BatchNorm2d(channels)
