"""Drives d2l_compat.jax; tests/faces/adapters/__init__.py says what each name is for."""

from itertools import count
from typing import Any

import flax.linen as nn
import jax
import jax.experimental
import numpy as np
from numpy.typing import NDArray

from d2l_compat import _checks
from d2l_compat import jax as d2l

FUSED = False
CASTS = "float64"  # with weights of float32: Flax takes the wider
ACCEPTS_NUMPY = True

# Here and there rather than for the whole process: the lesson runs in single precision.
double = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


def tensor(x: NDArray[Any]) -> jax.Array:
    with double(True):
        return jax.numpy.array(x)


class Layer:
    """A layer and its variables: those given, or drawn for the first input."""

    def __init__(self, layer: nn.Module, variables: dict[str, Any] | None = None) -> None:
        self.layer, self.variables = layer, variables
        self.weights: jax.Array | None = None
        self.keys = map(jax.random.key, count())

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        with double(True):
            inputs = tuple(map(_given, inputs))
            if self.variables is None:
                self.variables = self.layer.init(next(self.keys), *inputs, **kwargs)
            rngs = {"dropout": next(self.keys)} if training else None
            output = self.layer.apply(
                self.variables, *inputs, rngs=rngs, training=training, **kwargs
            )
        if isinstance(output, tuple):
            output, self.weights = output
        return np.asarray(output)

    @property
    def attention_weights(self) -> NDArray[Any]:
        if self.weights is None:  # Flax's layers return them and keep nothing
            raise RuntimeError(_checks.NOT_CALLED)
        return np.asarray(self.weights)

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        *floats, valid_lens = map(_given, inputs)

        def output(*floats: jax.Array) -> jax.Array:
            return self.layer.apply(self.variables or {}, *floats, valid_lens)[0]

        with double(True), jax.debug_nans(True):  # NaN on the way is an error as well
            _, pull_back = jax.vjp(output, *floats)
            return [np.asarray(gradient) for gradient in pull_back(tensor(direction))]


class Encoding(Layer):
    def __init__(self, layer: nn.Module, dtype: str) -> None:
        super().__init__(layer)
        self.dtype = dtype

    @property
    def P(self) -> NDArray[Any]:
        with double(self.dtype == "float64"):
            return np.asarray(self.layer.P)


def masked_softmax(X: Any, valid_lens: Any = None) -> NDArray[Any]:
    with double(True):
        return np.asarray(d2l.masked_softmax(_given(X), _given(valid_lens)))


def dot_product(dropout: float = 0.0) -> Layer:
    return Layer(d2l.DotProductAttention(dropout))


def multi_head(
    *args: Any,
    weights: dict[str, NDArray[Any]] | None = None,
    dtype: str = "float64",
    **kwargs: Any,
) -> Layer:
    layer = d2l.MultiHeadAttention(*args, **kwargs)
    if weights is None:
        return Layer(layer)
    names, parameters = {"W": "kernel", "b": "bias"}, {}
    for name, array in weights.items():
        projection = parameters.setdefault(f"W_{name[2]}", {})
        projection[names[name[0]]] = tensor(array)
    return Layer(layer, {"params": parameters})


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    return Encoding(d2l.PositionalEncoding(*args, **kwargs), dtype)


def parameter_shapes(layer: Layer) -> dict[str, tuple[int, ...]]:
    names = {"kernel": "W", "bias": "b"}
    return {
        f"{names[kind]}_{projection[2]}": array.shape
        for projection, arrays in layer.variables["params"].items()
        for kind, array in arrays.items()
    }


def lesson_projections(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    parameters = names["attention_variables"]["params"]
    return {f"W_{i}": np.asarray(parameters[f"W_{i}"]["kernel"]) for i in "qkvo"}


def lesson_encoding(layer: nn.Module, X: NDArray[Any], offset: int) -> NDArray[Any]:
    return np.asarray(layer.apply({}, X, offset=offset))


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x
