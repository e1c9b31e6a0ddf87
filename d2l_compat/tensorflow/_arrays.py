"""Access to TensorFlow's tensors, and to NumPy's arrays, for the shared checks."""

from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow import Tensor

from d2l_compat._shared.checks import Arrays, Unknown
from d2l_compat.tensorflow._keras import IS_KERAS_2, KerasTensor, keras

Array: TypeAlias = Tensor | NDArray[Any]


class _Arrays(Arrays):
    layer_types = (keras.layers.Dense,)

    def __init__(self, *types: type) -> None:
        self.types = types

    def shape(self, x: Array) -> tuple[Any, ...]:
        return tuple(Unknown("None") if size is None else size for size in x.shape)

    def dtype(self, x: Array) -> str:
        return tf.as_dtype(x.dtype).name

    def cast(self, x: Array, dtype: str) -> Tensor:
        return tf.cast(x, dtype)

    def value_range(self, x: Array) -> tuple[float, float] | None:
        if isinstance(x, KerasTensor) or tf.is_symbolic_tensor(x):
            return None  # a graph is traced
        values = np.asarray(x)
        return (values.min(), values.max()) if values.size else None

    def check_valid_lens(
        self, valid_lens: Any, queries: Any, keys: Any, in_range: bool = True
    ) -> Any:
        """Check as the base class does, and return integers: Keras would round floats to the layer's dtype."""
        lens = super().check_valid_lens(valid_lens, queries, keys, in_range)
        if lens is None or "float" not in self.dtype(lens):
            return lens
        return tf.cast(lens, tf.int64) if IS_KERAS_2 else keras.ops.cast(lens, "int64")

    def expected_input(
        self, projection: keras.layers.Dense, inputs: Array
    ) -> tuple[int | None, None]:
        return projection.kernel.shape[0] if projection.built else None, None


arrays = _Arrays(Tensor, tf.Variable, np.ndarray)
# Layers also accept the symbolic tensors from which models are built.
layer_inputs = _Arrays(*arrays.types, KerasTensor)
