"""Residual blocks, the building blocks of ResNets."""

from typing import Any

from tensorflow import Tensor

from d2l_compat._shared import signatures
from d2l_compat.tensorflow._arrays import layer_inputs
from d2l_compat.tensorflow._keras import keras

__all__ = ["Residual"]


class Residual(keras.Model):
    """The residual block of He et al. (2016), section 3.2; the first input sets the number of input channels.

    The output of two 3 x 3 convolutions with batch normalization, the first with these ``strides``, is added to the
    input; with ``use_1x1conv`` the input first passes through a 1 x 1 convolution with the same strides.
    """

    @signatures.parse_arguments
    def __init__(self, num_channels: int, use_1x1conv: bool = False, strides: int = 1) -> None:
        """Create the block. Raises ValueError or TypeError for arguments of the wrong type or range."""
        super().__init__()
        self.conv1 = keras.layers.Conv2D(num_channels, 3, strides, padding="same")
        self.conv2 = keras.layers.Conv2D(num_channels, 3, padding="same")
        self.conv3 = keras.layers.Conv2D(num_channels, 1, strides) if use_1x1conv else None
        self.bn1 = keras.layers.BatchNormalization()
        self.bn2 = keras.layers.BatchNormalization()

    def call(self, X: Tensor, training: Any = None) -> Tensor:
        """Return the block's output for X (batch, height, width, input channels).

        Its shape is (batch, height / strides, width / strides, num_channels), rounded up. Raises ValueError if X and
        the output of the convolutions differ in shape.
        """
        layer_inputs.check_rank("X", X, ("examples", "height", "width", "channels"))
        Y = keras.activations.relu(self.bn1(self.conv1(X), training=training))
        Y = self.bn2(self.conv2(Y), training=training)
        if self.conv3 is not None:
            X = self.conv3(X)
        layer_inputs.check_residual(X, Y)
        return keras.activations.relu(Y + X)
