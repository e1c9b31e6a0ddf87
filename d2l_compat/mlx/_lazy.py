"""Linear layers that are fast on a CPU and can infer their input size, as MLX's own cannot."""

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx import nn

from d2l_compat.mlx import _blockwise
from d2l_compat.mlx._arrays import arrays


def linear(inputs: int | None, outputs: int, bias: bool = True) -> nn.Linear:
    """Make a linear layer; if ``inputs`` is None, its first call determines the size."""
    return LazyLinear(outputs, bias) if inputs is None else Linear(inputs, outputs, bias)


class Linear(nn.Linear):
    """MLX's linear layer, with a product that is faster on a CPU (see ``matmul_transposed``)."""

    def __call__(self, x: mx.array) -> mx.array:
        if mx.default_device().type != mx.cpu:
            return super().__call__(x)
        rows = x.reshape(1, math.prod(x.shape[:-1]), x.shape[-1])
        y = _blockwise.matmul_transposed(rows, self.weight[None])
        y = y.reshape(*x.shape[:-1], len(self.weight))
        return y + self.bias if "bias" in self else y


class LazyLinear(Linear):
    """A linear layer that has no parameters before its first call.

    That call must not be traced: ``mx.compile`` would draw new weights each time, and
    ``nn.value_and_grad`` reads the parameters before the call.
    """

    def __init__(self, outputs: int, bias: bool) -> None:
        nn.Module.__init__(self)
        self.outputs = outputs
        self.has_bias = bias

    def __call__(self, x: mx.array) -> mx.array:
        if "weight" not in self:
            layer = nn.Linear(x.shape[-1], self.outputs, self.has_bias)
            for name, parameter in layer.parameters().items():
                setattr(self, name, parameter)
        return super().__call__(x)

    def _extra_repr(self) -> str:
        return super()._extra_repr() if "weight" in self else f"output_dims={self.outputs}"


arrays.layer_types += (Linear, LazyLinear)


def infer_sizes(model: nn.Module, call: Callable[[], Any]) -> None:
    """Run ``call``, which calls the model, if one of its layers has no size yet."""
    if any(isinstance(layer, LazyLinear) and "weight" not in layer for layer in model.modules()):
        call()
