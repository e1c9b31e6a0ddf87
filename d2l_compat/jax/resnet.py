"""Residual blocks."""

import flax.linen as nn
import jax

from d2l_compat.jax._arrays import Array, arrays
from d2l_compat.jax._checked import CheckedModule

__all__ = ["Residual"]


class Residual(CheckedModule):
    """The residual block of He et al. (2016), section 3.2.

    The output of two 3 x 3 convolutions with batch normalization, the first with ``strides``, is added to the
    input. With ``use_1x1conv`` the input first passes through a 1 x 1 convolution with the same strides. With
    ``training`` a batch is normalized by its own statistics. Raises ValueError or TypeError for arguments of
    the wrong type or range.
    """

    num_channels: int
    use_1x1conv: bool = False
    strides: int | tuple[int, int] = (1, 1)
    training: bool = True

    def setup(self) -> None:
        self.conv1 = nn.Conv(self.num_channels, (3, 3), self.strides, "SAME")
        self.conv2 = nn.Conv(self.num_channels, (3, 3), padding="SAME")
        if self.use_1x1conv:
            self.conv3 = nn.Conv(self.num_channels, (1, 1), self.strides)
        self.bn1 = nn.BatchNorm(not self.training)
        self.bn2 = nn.BatchNorm(not self.training)

    def __call__(self, X: Array) -> jax.Array:
        """Map (batch, height, width, input channels) to (batch, height, width, num_channels).

        Height and width are divided by the strides and rounded up. Raises ValueError if X and the
        output of the convolutions differ in shape.
        """
        arrays.check_rank("X", X, ("examples", "height", "width", "channels"))
        Y = nn.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        if self.use_1x1conv:
            X = self.conv3(X)
        arrays.check_residual(X, Y)
        return nn.relu(Y + X)
