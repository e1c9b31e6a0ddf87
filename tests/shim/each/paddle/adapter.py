"""The adapter of d2l_compat.paddle."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat import paddle as d2l  # isort: split

import paddle
from paddle import nn

from tests.shim import reference
from tests.shim.each import adapter
from tests.shim.each.paddle.descent import Descent


class Layer(adapter.Layer):
    @staticmethod
    def tensor(x: NDArray[Any]) -> paddle.Tensor:
        return paddle.to_tensor(np.array(x))

    @staticmethod
    def array(x: Any) -> Any:
        if isinstance(x, (paddle.CPUPlace, paddle.CUDAPlace)):
            return str(x).removeprefix("Place(").removesuffix(")")  # as this project's d2l names it
        return x.numpy() if isinstance(x, paddle.Tensor) else x

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        self.layer.train() if training else self.layer.eval()
        return self.to_numpy(self.layer(*self.to_tensors(inputs), **self.kwargs_to_tensors(kwargs)))

    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        self.layer.eval()
        tensors, kwargs = self.to_tensors(inputs), self.kwargs_to_tensors(kwargs)
        arguments = (*tensors, *kwargs.values())
        floats = [x for x in arguments if isinstance(x, paddle.Tensor) and x.is_floating_point()]
        for x in floats:
            x.stop_gradient = False
        try:  # also reject NaN and infinity in intermediate results; only a bias may be infinite
            is_biased = "score_bias" in kwargs or "table" in kwargs  # `table` becomes a bias
            paddle.set_flags({"FLAGS_check_nan_inf": not is_biased})
            output = self.layer(*tensors, **kwargs)
            paddle.set_flags({"FLAGS_check_nan_inf": True})
            gradients = paddle.grad((output * self.tensor(direction)).sum(), floats)
        finally:
            paddle.set_flags({"FLAGS_check_nan_inf": False})
        return [gradient.numpy() for gradient in gradients]

    def randomize(self, *inputs: Any, **kwargs: Any) -> None:
        self(*inputs, **kwargs)
        paddle.seed(0)
        for parameter in self.layer.parameters():
            parameter.set_value(paddle.randn(parameter.shape, parameter.dtype) * 0.5)

    @property
    def parameter_names(self) -> list[str]:
        return [*dict(self.layer.named_parameters())]

    @property
    def num_parameters(self) -> int:
        return sum(parameter.size for parameter in self.layer.parameters())

    def parameters(self, path: str) -> adapter.Arrays:
        layer = self.part(path)
        weight = self.to_numpy(layer.weight)
        if isinstance(layer, nn.Embedding):
            return {"table": weight}
        if not hasattr(layer, "bias"):  # an RMSNorm
            return {"gamma": weight}
        if isinstance(layer, nn.LayerNorm):
            return {"gamma": weight, "beta": self.to_numpy(layer.bias)}
        bias = {} if layer.bias is None else {"bias": self.to_numpy(layer.bias)}
        return {"weight": weight, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        layer = self.part(path)

        def linears(kind: str, number: int) -> dict[str, reference.Linear]:
            weight, bias = (
                np.split(self.to_numpy(getattr(layer, f"{what}_{kind}_l{number}")), 3)
                for what in ("weight", "bias")
            )
            parts = zip(("reset", "update", "new"), weight, bias, strict=True)
            return {name: reference.Linear(w.T, b) for name, w, b in parts}

        return [
            reference.Gates(linears("ih", number), linears("hh", number))
            for number in range(layer.num_layers)
        ]


tensor, to_numpy = Layer.tensor, Layer.to_numpy


def seed(number: int) -> None:
    paddle.seed(number)
    nn.initializer.set_global_initializer(None)  # the lesson sets one


def load_projections(layer: nn.Layer, weights: adapter.Arrays) -> None:
    names = {"W": "weight", "b": "bias"}
    missing, unexpected = layer.set_state_dict(
        {f"W_{name[2]}.{names[name[0]]}": tensor(x) for name, x in weights.items()}
    )
    assert not missing
    assert not unexpected


class Adapter(adapter.Adapter):
    d2l, layer, descent = d2l, Layer, Descent()
    Block, Embedding, Linear = nn.Layer, nn.Embedding, nn.Linear
    seed = staticmethod(seed)
    INTEGER_DTYPE = "int64"
    REPEAT_TILES, MESHGRID_INDEXING = True, "ij"

    def build_multi_head(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.MultiHeadAttention(*args, **kwargs).to(dtype=dtype)
        if weights is not None:
            # With the short signature, the first call determines the sizes.
            sizes = [weights[name].shape[0] for name in ("W_q", "W_k", "W_v")]
            layer(*(paddle.zeros([1, 1, size], dtype) for size in sizes))
            load_projections(layer, weights)
        return Layer(layer)

    def build_encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.PositionalEncoding(*args, **kwargs).to(dtype=dtype))

    def build_rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.RotaryEncoding(*args, **kwargs).to(dtype=dtype))

    def build_causal(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.CausalSelfAttention(*args, **kwargs).to(dtype=dtype)
        if weights is not None:
            load_projections(layer, weights)
        return Layer(layer)

    def with_dtype(self, layer: nn.Layer, dtype: str) -> Layer:
        return Layer(layer.to(dtype=dtype))

    def build_linear_attention(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.LinearAttention(*args, **kwargs).to(dtype=dtype)
        if weights is not None:
            load_projections(layer, weights)
        return Layer(layer)

    def build_linear(self, inputs: int, start: adapter.Arrays | None) -> nn.Layer:
        net = nn.Linear(inputs, 3)
        if start:
            net.set_state_dict({name: tensor(array) for name, array in start.items()})
        return net

    def build_unused(self) -> nn.Layer:
        return nn.Identity()

    def lesson_state_names(self, layer: nn.Layer) -> list[str]:
        return [*super().lesson_state_names(layer), *layer.state_dict()]
