"""Drives d2l_compat.mlx."""

from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx.utils import tree_flatten
from numpy.typing import NDArray

from d2l_compat import mlx as d2l
from tests import reference
from tests.faces import adapter
from tests.faces.mlx.translator import with_functions, with_trainer


def tensor(x: NDArray[Any]) -> mx.array:
    return mx.array(x, getattr(mx, "bool_" if x.dtype == bool else str(x.dtype)))


def plain(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    return np.array(x) if isinstance(x, mx.array) else x


def _given(x: Any) -> Any:
    return tensor(x) if isinstance(x, np.ndarray) else x


class Layer(adapter.Layer):
    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        return plain(self.layer.train(training)(*map(_given, inputs), **kwargs))

    @property
    def attention_weights(self) -> Any:
        return plain(self.layer.attention_weights)

    @property
    def P(self) -> NDArray[Any]:
        return plain(self.layer.P)

    def gradients(self, direction: NDArray[Any], *inputs: Any) -> list[NDArray[Any]]:
        *floats, valid_lens = map(_given, inputs)
        self.layer.eval()

        def output(*floats: mx.array) -> list[mx.array]:
            return [self.layer(*floats, valid_lens)]

        return plain(mx.vjp(output, floats, [tensor(direction)])[1])

    def randomize(self, *inputs: Any) -> None:
        self(*inputs)
        mx.random.seed(0)
        self.layer.apply(lambda array: 0.5 * mx.random.normal(array.shape))

    def parameters(self, path: str) -> dict[str, NDArray[Any]]:
        layer = self.part(path)
        weight = plain(layer.weight)
        if isinstance(layer, nn.Embedding):
            return {"table": weight}
        if isinstance(layer, nn.LayerNorm):
            return {"gamma": weight, "beta": plain(layer.bias)}
        bias = {"bias": plain(layer.bias)} if "bias" in layer else {}
        return {"weight": weight.T, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        def linears(weight: mx.array, *biases: mx.array) -> dict[str, reference.Linear]:
            names = ("reset", "update", "new")
            parts = zip(names, mx.split(weight, 3), biases, strict=True)
            return {name: reference.Linear(plain(w).T, plain(b)) for name, w, b in parts}

        none = mx.array(0.0)
        return [
            reference.Gates(
                linears(layer.Wx, *mx.split(layer.b, 3)), linears(layer.Wh, none, none, layer.bhn)
            )
            for layer in self.part(path)
        ]


class Adapter(adapter.Adapter):
    d2l, layer = d2l, Layer
    tensor, plain = staticmethod(tensor), staticmethod(plain)
    with_trainer, with_functions = staticmethod(with_trainer), staticmethod(with_functions)
    CASTS = "float64"  # MLX takes the wider
    OUTPUT = "output.layers.0", "output.layers.2"

    def multi_head(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.MultiHeadAttention(*args, **kwargs)
        if weights is not None:
            # Of the short signature, a first call makes the parameters.
            inputs = [mx.zeros((1, 1, len(weights[f"W_{role}"]))) for role in "qkv"]
            layer(*inputs)
            names = {"W": "weight", "b": "bias"}
            layer.load_weights(
                [(f"W_{name[2]}.{names[name[0]]}", tensor(x.T)) for name, x in weights.items()]
            )
        layer.set_dtype(getattr(mx, dtype))
        return Layer(layer)

    def parameter_shapes(self, layer: adapter.Layer) -> dict[str, tuple[int, ...]]:
        names = {"weight": "W", "bias": "b"}
        shapes = {}
        for path, parameter in tree_flatten(layer.layer.parameters()):
            projection, kind = path.split(".")
            shapes[f"{names[kind]}_{projection[2]}"] = parameter.shape[::-1]
        return shapes

    def encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        layer = d2l.PositionalEncoding(*args, **kwargs)
        layer.set_dtype(getattr(mx, dtype))
        return Layer(layer)

    def linear(self, inputs: int, start: adapter.Arrays | None) -> nn.Module:
        net = nn.Linear(inputs, 3)
        if start:
            net.weight, net.bias = tensor(start["weight"].T), tensor(start["bias"])
        return net

    def nothing(self) -> nn.Module:
        return nn.Identity()

    def lesson_kept(self, layer: nn.Module) -> list[str]:
        return [path for path, _ in tree_flatten(layer.parameters())]
