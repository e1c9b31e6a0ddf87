"""Keras as ``tf.keras`` has it: Keras 3 or, where TF_USE_LEGACY_KERAS asks TensorFlow for it, Keras 2.

D2L's pages were written for Keras 2, which lives on as ``tf_keras``; code of both runs on this face.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from d2l_compat._shared.require import import_package
from d2l_compat.frameworks import Package

# Its versions go with TensorFlow's.
KERAS_2 = Package("tf_keras", "tf-keras", "2.17", note=" TF_USE_LEGACY_KERAS asks for it.")
IS_KERAS_2 = os.getenv("TF_USE_LEGACY_KERAS") in ("1", "true", "True")  # as TensorFlow reads it

if TYPE_CHECKING:
    import keras as keras  # noqa: PLC0414  for the other modules
else:
    keras = import_package(KERAS_2) if IS_KERAS_2 else import_module("keras")

KerasTensor: Any = (keras.__internal__ if IS_KERAS_2 else keras).KerasTensor


def sizes(x: Any) -> tuple[Any, ...]:
    """Of a tensor; tensors themselves where they are not known to a graph's trace."""
    if not IS_KERAS_2:
        return tuple(keras.ops.shape(x))
    traced = tf.shape(x)
    return tuple(traced[axis] if size is None else size for axis, size in enumerate(x.shape))


def prepared(layer: keras.layers.Layer, *inputs: Any) -> tuple[Any, ...]:
    """What a layer is to be called with: Keras 2 would build it for the first of them alone."""
    inputs = tuple(converted(layer, x) for x in inputs)
    if IS_KERAS_2 and not layer.built and type(layer).build is not keras.layers.Layer.build:
        with tf.init_scope():  # outside of a graph that is traced
            layer.build(*(x.shape for x in inputs))
    return inputs


def converted(layer: keras.layers.Layer, x: Any) -> Any:
    """A tensor of the layer's dtype: Keras 2 would make one of the first input alone."""
    if not IS_KERAS_2 or x is None or isinstance(x, KerasTensor):
        return x
    x = tf.convert_to_tensor(x)
    return tf.cast(x, layer.compute_dtype) if layer._autocast and x.dtype.is_floating else x


def named_for_keras_2(kwargs: dict[str, Any]) -> None:
    """Name ``training`` among the arguments: it would take one of ``*args`` for it."""
    if IS_KERAS_2:
        kwargs.setdefault("training", None)
