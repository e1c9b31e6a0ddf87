"""Drives d2l_compat.tensorflow; tests/faces/adapters/__init__.py says what each name is for."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from d2l_compat import tensorflow as d2l

FUSED = False
CASTS = "float32"
ACCEPTS_NUMPY = True


def tensor(x: NDArray[Any]) -> tf.Tensor:
    return tf.constant(x)


class Layer:
    def __init__(self, layer: keras.layers.Layer) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        return self.layer(*map(_given, inputs), training=training, **kwargs).numpy()

    @property
    def attention_weights(self) -> NDArray[Any]:
        return self.layer.attention_weights.numpy()

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        tensors = [_given(x) for x in inputs]
        floats = [x for x in tensors if x is not None and x.dtype.is_floating]
        tf.debugging.enable_check_numerics()  # NaN on the way is an error as well
        try:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(floats)
                output = self.layer(*tensors)
            return [g.numpy() for g in tape.gradient(output, floats, tensor(direction))]
        finally:
            tf.debugging.disable_check_numerics()


def masked_softmax(X: Any, valid_lens: Any = None) -> NDArray[Any]:
    return d2l.masked_softmax(_given(X), _given(valid_lens)).numpy()


def dot_product(dropout: float = 0.0) -> Layer:
    return Layer(d2l.DotProductAttention(dropout))


def multi_head(
    *args: Any,
    weights: dict[str, NDArray[Any]] | None = None,
    dtype: str = "float64",
    **kwargs: Any,
) -> Layer:
    layer = d2l.MultiHeadAttention(*args, dtype=dtype, **kwargs)
    if weights is not None:
        if not layer.built:
            layer.build(*((None, None, len(weights[f"W_{role}"])) for role in "qkv"))
        for role in "qkvo":
            arrays = [weights[name] for name in (f"W_{role}", f"b_{role}") if name in weights]
            getattr(layer, f"W_{role}").set_weights(arrays)
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    return Layer(d2l.PositionalEncoding(*args, dtype=dtype, **kwargs))


def parameter_shapes(layer: Layer) -> dict[str, tuple[int, ...]]:
    names = {"kernel": "W", "bias": "b"}
    return {
        f"{names[weight.name]}_{role}": tuple(weight.shape)
        for role in "qkvo"
        for weight in getattr(layer.layer, f"W_{role}").weights
    }


def lesson_projections(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    attention = names["attention"]
    return {f"W_{role}": getattr(attention, f"W_{role}").kernel.numpy() for role in "qkvo"}


def lesson_encoding(layer: keras.layers.Layer, X: NDArray[Any], offset: int) -> NDArray[Any]:
    return layer(X, offset=offset).numpy()


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x
