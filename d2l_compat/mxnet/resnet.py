"""Residual blocks, and the small ResNet-18 of D2L's chapter on computer vision."""

from itertools import pairwise

from mxnet import np, npx
from mxnet.gluon import nn

from d2l_compat._shared import signatures
from d2l_compat._shared.checks import size

__all__ = ["Residual", "resnet18"]


class Residual(nn.Block):
    """The residual block of He et al. (2016), section 3.2; the first input sets the number of input channels.

    The output of two 3 x 3 convolutions with batch normalization, the first with these ``strides``, is added to the
    input; with ``use_1x1conv`` the input first passes through a 1 x 1 convolution with the same strides.
    """

    @signatures.parse_arguments
    def __init__(self, num_channels: int, use_1x1conv: bool = False, strides: int = 1) -> None:
        """Create the block. Raises ValueError or TypeError for arguments of the wrong type or range."""
        super().__init__()
        self.conv1 = _conv(num_channels, 3, strides)
        self.conv2 = _conv(num_channels, 3)
        self.conv3 = _conv(num_channels, 1, strides) if use_1x1conv else None
        self.bn1 = nn.BatchNorm()
        self.bn2 = nn.BatchNorm()

    def forward(self, X: np.ndarray) -> np.ndarray:
        """Return the block's output for X (batch, input channels, height, width).

        Its shape is (batch, num_channels, height / strides, width / strides), rounded up.
        """
        Y = npx.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        return npx.relu(Y + (X if self.conv3 is None else self.conv3(X)))


def resnet18(num_classes: int) -> nn.Sequential:
    """Create a ResNet-18 (He et al., 2016) for small images.

    It begins with a 3 x 3 convolution, and has no pooling before the blocks. It maps (batch, channels, height, width)
    to logits (batch, num_classes). Raises ValueError or TypeError if ``num_classes`` is not a size of at least 1.
    """
    num_classes = size("num_classes", num_classes)
    net = nn.Sequential()
    net.add(_conv(64, 3), nn.BatchNorm(), nn.Activation("relu"))
    for inputs, outputs in pairwise((64, 64, 128, 256, 512)):
        net.add(_stage(inputs, outputs))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(num_classes))
    return net


def _stage(inputs: int, outputs: int) -> nn.Sequential:
    """Create two blocks; if the channels double, height and width are halved."""
    is_same = inputs == outputs
    blocks = nn.Sequential()
    blocks.add(Residual(outputs, not is_same, 1 if is_same else 2), Residual(outputs))
    return blocks


def _conv(outputs: int, kernel_size: int, strides: int | tuple[int, int] = 1) -> nn.Conv2D:
    """Create a convolution that keeps height and width if ``strides`` is 1."""
    return nn.Conv2D(outputs, kernel_size, strides, padding=kernel_size // 2)
