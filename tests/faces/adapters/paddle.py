"""Drives d2l_compat.paddle; tests/faces/adapters/__init__.py says what each name is for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat import paddle as d2l  # isort: split

import paddle
from paddle import nn

FUSED = False
CASTS = False
ACCEPTS_NUMPY = False


def tensor(x: NDArray[Any]) -> paddle.Tensor:
    return paddle.to_tensor(np.array(x))


class Layer:
    def __init__(self, layer: nn.Layer) -> None:
        self.layer = layer

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> NDArray[Any]:
        self.layer.train() if training else self.layer.eval()
        return self.layer(*map(_given, inputs), **kwargs).numpy()

    @property
    def attention_weights(self) -> NDArray[Any]:
        return self.layer.attention_weights.numpy()

    @property
    def P(self) -> NDArray[Any]:
        return self.layer.P.numpy()

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        self.layer.eval()
        tensors = [_given(x) for x in inputs]
        floats = [x for x in tensors if x is not None and x.is_floating_point()]
        for x in floats:
            x.stop_gradient = False
        paddle.set_flags({"FLAGS_check_nan_inf": True})  # NaN on the way is an error as well
        try:
            gradients = paddle.grad((self.layer(*tensors) * tensor(direction)).sum(), floats)
        finally:
            paddle.set_flags({"FLAGS_check_nan_inf": False})
        return [gradient.numpy() for gradient in gradients]


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
    layer = d2l.MultiHeadAttention(*args, **kwargs).to(dtype=dtype)
    if weights is not None:
        # The short signature takes its sizes from the first call, and then weights fit.
        sizes = [weights[name].shape[0] for name in ("W_q", "W_k", "W_v")]
        layer(*(paddle.zeros([1, 1, size], dtype) for size in sizes))
        names = {"W": "weight", "b": "bias"}
        missing, unexpected = layer.set_state_dict(
            {f"W_{name[2]}.{names[name[0]]}": tensor(x) for name, x in weights.items()}
        )
        assert not missing
        assert not unexpected
    return Layer(layer)


def encoding(*args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
    return Layer(d2l.PositionalEncoding(*args, **kwargs).to(dtype=dtype))


def parameter_shapes(layer: Layer) -> dict[str, tuple[int, ...]]:
    names = {"weight": "W", "bias": "b"}
    shapes = {}
    for name, parameter in layer.layer.named_parameters():
        projection, kind = name.split(".")
        shapes[f"{names[kind]}_{projection[2]}"] = tuple(parameter.shape)
    return shapes


def lesson_projections(names: dict[str, Any]) -> dict[str, NDArray[Any]]:
    attention = names["attention"]
    return {f"W_{i}": getattr(attention, f"W_{i}").weight.numpy() for i in "qkvo"}


def lesson_encoding(layer: Any, X: NDArray[Any], offset: int) -> NDArray[Any]:
    return layer(tensor(X), offset=offset).numpy()


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x
