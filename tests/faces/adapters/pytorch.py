"""Drives d2l_compat.torch; tests/faces/adapters/__init__.py says what each name is for."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from d2l_compat import torch as d2l

FUSED = True
CASTS = False
ACCEPTS_NUMPY = False


def tensor(x: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.array(x))


class Layer:
    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        return self.layer.train(training)(*map(_given, inputs), **kwargs).detach().numpy()

    @property
    def attention_weights(self) -> NDArray[Any]:
        return self.layer.attention_weights.detach().numpy()

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P.numpy()

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        tensors = [_given(x) for x in inputs]
        floats = [x.requires_grad_() for x in tensors if x is not None and x.is_floating_point()]
        with torch.autograd.set_detect_anomaly(True):  # NaN on the way is an error as well
            (self.layer.eval()(*tensors) * tensor(direction)).sum().backward()
        return [x.grad.numpy() for x in floats]


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
    layer = d2l.MultiHeadAttention(*args, **kwargs).to(getattr(torch, dtype))
    names = {"W": "weight", "b": "bias"}
    layer.load_state_dict(
        {f"W_{name[2]}.{names[name[0]]}": tensor(x.T) for name, x in (weights or {}).items()},
        strict=weights is not None,
    )
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    return Layer(d2l.PositionalEncoding(*args, **kwargs).to(getattr(torch, dtype)))


def parameter_shapes(layer: Layer) -> dict[str, tuple[int, ...]]:
    names = {"weight": "W", "bias": "b"}
    shapes = {}
    for name, parameter in layer.layer.named_parameters():
        projection, kind = name.split(".")
        shapes[f"{names[kind]}_{projection[2]}"] = tuple(parameter.shape)[::-1]
    return shapes


def lesson_projections(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    attention = names["attention"]
    return {f"W_{i}": getattr(attention, f"W_{i}").weight.detach().numpy().T for i in "qkvo"}


def lesson_encoding(layer: nn.Module, X: NDArray[Any], offset: int) -> NDArray[Any]:
    return layer(tensor(X), offset=offset).detach().numpy()


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x
