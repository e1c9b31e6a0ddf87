"""The adapter of d2l_compat.mlx."""

from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx.utils import tree_flatten
from numpy.typing import NDArray

from d2l_compat import mlx as d2l
from tests.shim import reference
from tests.shim.each import adapter


def is_floating(x: Any) -> bool:
    return isinstance(x, mx.array) and mx.issubdtype(x.dtype, mx.floating)


class Layer(adapter.Layer):
    @staticmethod
    def tensor(x: NDArray[Any]) -> mx.array:
        return mx.array(x, getattr(mx, "bool_" if x.dtype == bool else str(x.dtype)))

    @staticmethod
    def array(x: Any) -> Any:
        return np.array(x) if isinstance(x, mx.array) else x

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        return self.to_numpy(
            self.layer.train(training)(*self.to_tensors(inputs), **self.kwargs_to_tensors(kwargs))
        )

    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        arrays, kwargs = self.to_tensors(inputs), self.kwargs_to_tensors(kwargs)
        values = [*arrays, *kwargs.values()]
        floats = [x for x in values if is_floating(x)]
        self.layer.eval()

        def call(*floats: mx.array) -> list[mx.array]:
            remaining = iter(floats)
            replaced = [next(remaining) if is_floating(x) else x for x in values]
            keywords = dict(zip(kwargs, replaced[len(arrays) :], strict=True))
            return [self.layer(*replaced[: len(arrays)], **keywords)]

        return self.to_numpy(mx.vjp(call, floats, [self.tensor(direction)])[1])

    def randomize(self, *inputs: Any, **kwargs: Any) -> None:
        self(*inputs, **kwargs)
        mx.random.seed(0)
        self.layer.apply(lambda array: (0.5 * mx.random.normal(array.shape)).astype(array.dtype))

    @property
    def parameter_names(self) -> list[str]:
        return [path for path, _ in tree_flatten(self.layer.parameters())]

    @property
    def num_parameters(self) -> int:
        return sum(array.size for _, array in tree_flatten(self.layer.parameters()))

    def parameters(self, path: str) -> adapter.Arrays:
        layer = self.part(path)
        weight = self.to_numpy(layer.weight)
        if isinstance(layer, nn.Embedding):
            return {"table": weight}
        if isinstance(layer, nn.RMSNorm):
            return {"gamma": weight}
        if isinstance(layer, nn.LayerNorm):
            return {"gamma": weight, "beta": self.to_numpy(layer.bias)}
        bias = {"bias": self.to_numpy(layer.bias)} if "bias" in layer else {}
        return {"weight": weight.T, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        def linears(weight: mx.array, *biases: mx.array) -> dict[str, reference.Linear]:
            names = ("reset", "update", "new")
            parts = zip(names, mx.split(weight, 3), biases, strict=True)
            return {
                name: reference.Linear(self.to_numpy(w).T, self.to_numpy(b)) for name, w, b in parts
            }

        zero = mx.array(0.0)
        return [
            reference.Gates(
                linears(layer.Wx, *mx.split(layer.b, 3)), linears(layer.Wh, zero, zero, layer.bhn)
            )
            for layer in self.part(path)
        ]


tensor, to_numpy = Layer.tensor, Layer.to_numpy


def load_projections(layer: nn.Module, weights: adapter.Arrays) -> None:
    names = {"W": "weight", "b": "bias"}
    layer.load_weights(
        [(f"W_{name[2]}.{names[name[0]]}", tensor(x.T)) for name, x in weights.items()]
    )


class Adapter(adapter.Adapter):
    d2l, layer = d2l, Layer
    Block, Embedding, Linear = nn.Module, nn.Embedding, nn.Linear
    RMSNorm, RMS_EPSILON = nn.RMSNorm, 1e-5
    seed = staticmethod(mx.random.seed)
    CALL_METHOD = "__call__"
    CAST_DTYPE = "float64"  # MLX computes in the wider dtype
    REPEAT_TILES = True
    NORMAL_ARGS = ((2, 3),)
    READER_OUTPUT = "output.layers.0", "output.layers.2"

    def build_multi_head(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.MultiHeadAttention(*args, **kwargs)
        if weights is not None:
            # With the short signature, the first call makes the parameters.
            inputs = [mx.zeros((1, 1, len(weights[f"W_{role}"]))) for role in "qkv"]
            layer(*inputs)
            load_projections(layer, weights)
        layer.set_dtype(getattr(mx, dtype))
        return Layer(layer)

    def build_encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        layer = d2l.PositionalEncoding(*args, **kwargs)
        layer.set_dtype(getattr(mx, dtype))
        return Layer(layer)

    def build_rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.RotaryEncoding(*args, **kwargs))

    def build_causal(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.CausalSelfAttention(*args, **kwargs)
        if weights is not None:
            load_projections(layer, weights)
        layer.set_dtype(getattr(mx, dtype))
        return Layer(layer)

    def with_dtype(self, layer: nn.Module, dtype: str) -> Layer:
        layer.set_dtype(getattr(mx, dtype))
        return Layer(layer)

    def build_linear_attention(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.LinearAttention(*args, **kwargs)
        if weights is not None:
            load_projections(layer, weights)
        layer.set_dtype(getattr(mx, dtype))
        return Layer(layer)

    def build_linear(self, inputs: int, start: adapter.Arrays | None) -> nn.Module:
        net = nn.Linear(inputs, 3)
        if start:
            net.weight, net.bias = tensor(start["weight"].T), tensor(start["bias"])
        return net

    def build_unused(self) -> nn.Module:
        return nn.Identity()

    def native_causal_attention(self, *inputs: NDArray[Any]) -> NDArray[Any]:
        scale = inputs[0].shape[-1] ** -0.5
        tensors = map(self.tensor, inputs)
        return self.to_numpy(
            mx.fast.scaled_dot_product_attention(*tensors, scale=scale, mask="causal")
        )
