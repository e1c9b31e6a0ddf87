"""Dropout, of everything too."""

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat.tensorflow._keras import keras


class Dropout(keras.layers.Dropout):
    """Keras's, and where the rate is 1, zeros: older versions refuse this when they are called."""

    def call(self, inputs: Tensor, training: bool | None = False) -> Any:
        if training and self.rate == 1:
            return tf.zeros_like(inputs)
        return super().call(inputs, training=training)
