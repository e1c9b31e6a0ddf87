"""Drives d2l_compat.mxnet; tests/faces/adapters/__init__.py says what each name is for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# First: it makes MXNet importable.
from d2l_compat import mxnet as d2l  # isort: skip
import mxnet
from mxnet import autograd, init
from mxnet.gluon import nn

FUSED = False
CASTS = False
ACCEPTS_NUMPY = False


def tensor(x: NDArray[Any]) -> mxnet.np.ndarray:
    return mxnet.np.array(x, dtype=x.dtype)


class Layer:
    def __init__(self, layer: nn.Block) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        with autograd.train_mode() if training else autograd.predict_mode():
            return self.layer(*map(_given, inputs), **kwargs).asnumpy()

    @property
    def attention_weights(self) -> NDArray[Any]:
        return self.layer.attention_weights.asnumpy()

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P.asnumpy()

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        tensors = [_given(x) for x in inputs]
        floats = [x for x in tensors if x is not None and np.dtype(x.dtype).kind == "f"]
        for x in floats:
            x.attach_grad()
        with autograd.record(train_mode=False):
            output = self.layer(*tensors)
        output.backward(tensor(direction))
        return [x.grad.asnumpy() for x in floats]


def masked_softmax(X: Any, valid_lens: Any = None) -> NDArray[Any]:
    return d2l.masked_softmax(_given(X), _given(valid_lens)).asnumpy()


def dot_product(dropout: float = 0.0) -> Layer:
    return Layer(d2l.DotProductAttention(dropout))


def multi_head(
    *args: Any,
    weights: dict[str, NDArray[Any]] | None = None,
    dtype: str = "float64",
    **kwargs: Any,
) -> Layer:
    layer = d2l.MultiHeadAttention(*args, **kwargs)
    layer.cast(dtype)
    # MXNet's other initial weights come in single precision only.
    layer.initialize(init.Orthogonal())
    kinds = {"W": "weight", "b": "bias"}
    for name, array in (weights or {}).items():
        getattr(getattr(layer, f"W_{name[2]}"), kinds[name[0]]).set_data(tensor(array.T))
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    layer = d2l.PositionalEncoding(*args, **kwargs)
    layer.cast(dtype)
    return Layer(layer)


def parameter_shapes(layer: Layer) -> dict[str, tuple[int, ...]]:
    projections = {role: getattr(layer.layer, f"W_{role}") for role in "qkvo"}
    shapes = {f"W_{role}": W.weight.shape[::-1] for role, W in projections.items()}
    biases = {f"b_{role}": W.bias.shape for role, W in projections.items() if W.bias is not None}
    return shapes | biases


def lesson_projections(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    attention = names["attention"]
    return {f"W_{i}": getattr(attention, f"W_{i}").weight.data().asnumpy().T for i in "qkvo"}


def lesson_encoding(layer: nn.Block, X: NDArray[Any], offset: int) -> NDArray[Any]:
    return layer(tensor(X), offset).asnumpy()


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x
