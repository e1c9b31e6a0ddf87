"""The Keras that ``tf.keras`` uses: Keras 3, or Keras 2 if TF_USE_LEGACY_KERAS is set.

D2L's pages were written for Keras 2, now the package ``tf_keras``; this package supports both.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from d2l_compat._shared.require import import_package
from d2l_compat.frameworks import Package

# It has the same version numbers as TensorFlow.
KERAS_2 = Package("tf_keras", "tf-keras", "2.17", note=" TF_USE_LEGACY_KERAS requires it.")
IS_KERAS_2 = os.getenv("TF_USE_LEGACY_KERAS") in ("1", "true", "True")  # as TensorFlow reads it

if TYPE_CHECKING:
    import keras as keras  # noqa: PLC0414  re-exported to the other modules
else:
    keras = import_package(KERAS_2) if IS_KERAS_2 else import_module("keras")

KerasTensor: Any = (keras.__internal__ if IS_KERAS_2 else keras).KerasTensor


def dynamic_shape(x: Any) -> tuple[Any, ...]:
    """Return a tensor's shape; sizes that are unknown while a graph is traced are tensors."""
    if not IS_KERAS_2:
        return tuple(keras.ops.shape(x))
    runtime_shape = tf.shape(x)
    return tuple(runtime_shape[axis] if size is None else size for axis, size in enumerate(x.shape))


def prepare_inputs(layer: keras.layers.Layer, *inputs: Any) -> tuple[Any, ...]:
    """Convert a layer's inputs, and build the layer for all of them: Keras 2 would consider only the first."""
    inputs = tuple(convert_input(layer, x) for x in inputs)
    if IS_KERAS_2 and not layer.built and type(layer).build is not keras.layers.Layer.build:
        with tf.init_scope():  # not in a graph that is being traced
            layer.build(*(x.shape for x in inputs))
    return inputs


def convert_input(layer: keras.layers.Layer, x: Any) -> Any:
    """Convert ``x`` to a tensor of the layer's dtype: Keras 2 would convert only the first input."""
    if not IS_KERAS_2 or x is None or isinstance(x, KerasTensor):
        return x
    x = tf.convert_to_tensor(x)
    return tf.cast(x, layer.compute_dtype) if layer._autocast and x.dtype.is_floating else x


def name_training_for_keras_2(kwargs: dict[str, Any]) -> None:
    """Add ``training`` to the keyword arguments: Keras 2 would otherwise read it from ``*args``."""
    if IS_KERAS_2:
        kwargs.setdefault("training", None)
