"""A table of positions in a layer."""

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow import Tensor

from d2l_compat.tensorflow._arrays import Array, layer_inputs
from d2l_compat.tensorflow._keras import keras


class Tabulated(keras.layers.Layer):
    """Has a table ``P``, a constant in the dtype in which the layer computes: neither trained nor saved."""

    num_hiddens: int
    max_len: int

    def tabulate(self, exact: NDArray[np.float64]) -> None:
        """Take this table, of no dtype's rounding yet."""
        self.supports_masking = True
        with tf.init_scope():  # of no graph, should the layer be made while one is traced
            self._table = tf.constant(exact, self.compute_dtype)

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
