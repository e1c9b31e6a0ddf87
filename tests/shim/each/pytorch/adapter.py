"""The adapter of d2l_compat.torch."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from d2l_compat import torch as d2l
from tests.shim import reference
from tests.shim.each import adapter
from tests.shim.each.pytorch.descent import Descent


class Layer(adapter.Layer):
    @staticmethod
    def tensor(x: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.array(x))

    @staticmethod
    def array(x: Any) -> Any:
        return x.detach().numpy() if isinstance(x, torch.Tensor) else x

    def __call__(self, *inputs: Any, training: bool = False, **kwargs: Any) -> Any:
        return self.to_numpy(
            self.layer.train(training)(*self.to_tensors(inputs), **self.kwargs_to_tensors(kwargs))
        )

    def gradients(self, direction: NDArray[Any], *inputs: Any, **kwargs: Any) -> list[NDArray[Any]]:
        tensors, kwargs = self.to_tensors(inputs), self.kwargs_to_tensors(kwargs)
        arguments = (*tensors, *kwargs.values())
        floats = [
            x.requires_grad_()
            for x in arguments
            if isinstance(x, torch.Tensor) and x.is_floating_point()
        ]
        with torch.autograd.set_detect_anomaly(True):  # an intermediate NaN is an error as well
            output = self.layer.eval()(*tensors, **kwargs)
            (output * self.tensor(direction)).sum().backward()
        return [x.grad.numpy() for x in floats]

    def randomize(self, *inputs: Any, **kwargs: Any) -> None:
        self(*inputs, **kwargs)
        torch.manual_seed(0)
        for parameter in self.layer.parameters():
            nn.init.normal_(parameter, std=0.5)

    @property
    def parameter_names(self) -> list[str]:
        return [*dict(self.layer.named_parameters())]

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.layer.parameters())

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
        return {"weight": weight.T, **bias}

    def gates(self, path: str) -> list[reference.Gates]:
        layer = self.part(path)

        def linears(weight: torch.Tensor, bias: torch.Tensor) -> dict[str, reference.Linear]:
            parts = zip(("reset", "update", "new"), weight.chunk(3), bias.chunk(3), strict=True)
            return {
                name: reference.Linear(self.to_numpy(w).T, self.to_numpy(b)) for name, w, b in parts
            }

        return [
            reference.Gates(linears(w_i, b_i), linears(w_h, b_h))
            for w_i, w_h, b_i, b_h in layer.all_weights
        ]


tensor, to_numpy = Layer.tensor, Layer.to_numpy


def load_projections(layer: nn.Module, weights: adapter.Arrays | None) -> Layer:
    names = {"W": "weight", "b": "bias"}
    layer.load_state_dict(
        {f"W_{name[2]}.{names[name[0]]}": tensor(x.T) for name, x in (weights or {}).items()},
        strict=weights is not None,
    )
    return Layer(layer)


class Adapter(adapter.Adapter):
    d2l, layer, descent = d2l, Layer, Descent()
    Block, Embedding, Linear = nn.Module, nn.Embedding, nn.Linear
    RMSNorm = nn.RMSNorm
    seed = staticmethod(torch.manual_seed)
    INTEGER_DTYPE = "int64"
    REPEAT_TILES, MESHGRID_INDEXING = True, "ij"

    def build_multi_head(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.MultiHeadAttention(*args, **kwargs).to(getattr(torch, dtype))
        return load_projections(layer, weights)

    def build_encoding(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.PositionalEncoding(*args, **kwargs).to(getattr(torch, dtype)))

    def build_rotary(self, *args: Any, dtype: str = "float64", **kwargs: Any) -> Layer:
        return Layer(d2l.RotaryEncoding(*args, **kwargs).to(getattr(torch, dtype)))

    def build_causal(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.CausalSelfAttention(*args, **kwargs).to(getattr(torch, dtype))
        return load_projections(layer, weights)

    def with_dtype(self, layer: nn.Module, dtype: str) -> Layer:
        return Layer(layer.to(getattr(torch, dtype)))

    def build_linear_attention(
        self,
        *args: Any,
        weights: adapter.Arrays | None = None,
        dtype: str = "float64",
        **kwargs: Any,
    ) -> Layer:
        layer = d2l.LinearAttention(*args, **kwargs).to(getattr(torch, dtype))
        return load_projections(layer, weights)

    def build_linear(self, inputs: int, start: adapter.Arrays | None) -> nn.Module:
        net = nn.Linear(inputs, 3)
        if start:
            net.load_state_dict(
                {"weight": tensor(start["weight"].T), "bias": tensor(start["bias"])}
            )
        return net

    def build_unused(self) -> nn.Module:
        return nn.Identity()

    def label_tensor(self, Y: NDArray[Any]) -> torch.Tensor:
        return tensor(Y.astype("int64"))

    def native_causal_attention(self, *inputs: NDArray[Any]) -> NDArray[Any]:
        tensors = map(self.tensor, inputs)
        return self.to_numpy(nn.functional.scaled_dot_product_attention(*tensors, is_causal=True))

    def lesson_state_names(self, layer: nn.Module) -> list[str]:
        return [*super().lesson_state_names(layer), *layer.state_dict()]
