"""Dropout that also handles the rate 1."""

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat.tensorflow._keras import keras


class Dropout(keras.layers.Dropout):
    """Keras's dropout, with zeros at rate 1, which older versions of Keras reject when called."""

    def call(self, inputs: Tensor, training: bool | None = False) -> Any:
        if training and self.rate == 1:
            return tf.zeros_like(inputs)
        return super().call(inputs, training=training)
