"""A layer with a table of positions."""

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow import Tensor

from d2l_compat.tensorflow._arrays import Array, layer_inputs
from d2l_compat.tensorflow._keras import keras


class PositionTable(keras.layers.Layer):
    """A layer with a table ``P``, a constant in the layer's compute dtype: neither trained nor saved."""

    num_hiddens: int
    max_len: int

    def create_table(self, exact_table: NDArray[np.float64]) -> None:
        """Round the table to the layer's dtype, and store it."""
        self.supports_masking = True
        with tf.init_scope():  # not in a graph that is being traced
            self._table = tf.constant(exact_table, self.compute_dtype)

    @property
    def P(self) -> NDArray[Any]:
        """The table as a NumPy array in the layer's dtype."""
        return self._table.numpy()

    def __call__(self, X: Array, offset: int = 0, **kwargs: Any) -> Tensor:
        layer_inputs.check_encoding(X, self.num_hiddens)
        if not tf.is_symbolic_tensor(offset):
            layer_inputs.check_positions(offset, X, self.max_len)
            offset = int(offset)
        return super().__call__(X, offset=offset, **kwargs)
