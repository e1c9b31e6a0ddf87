"""Linear layers, quick on a CPU, that may take their size from their first input: MLX itself has none such."""

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx import nn

from d2l_compat.mlx import _blockwise


def linear(inputs: int | None, outputs: int, bias: bool = True) -> nn.Linear:
    """A projection; of ``inputs`` that are None, the first call tells the size."""
    return LazyLinear(outputs, bias) if inputs is None else Linear(inputs, outputs, bias)


class Linear(nn.Linear):
    """MLX's linear layer, whose products are quicker on a CPU (see ``product_across``)."""

    def __call__(self, x: mx.array) -> mx.array:
        if mx.default_device().type != mx.cpu:
            return super().__call__(x)
        rows = x.reshape(1, math.prod(x.shape[:-1]), x.shape[-1])
        y = _blockwise.product_across(rows, self.weight[None])
        y = y.reshape(*x.shape[:-1], len(self.weight))
        return y + self.bias if "bias" in self else y


class LazyLinear(Linear):
    """MLX's linear layer, which has no parameters before its first call.

    That call must not be traced: ``mx.compile`` would draw the weights anew each time, and
    ``nn.value_and_grad`` asks for the parameters before it calls.
    """

    def __init__(self, outputs: int, bias: bool) -> None:
        nn.Module.__init__(self)
        self.outputs, self.has_bias = outputs, bias

    def __call__(self, x: mx.array) -> mx.array:
        if "weight" not in self:
            drawn = nn.Linear(x.shape[-1], self.outputs, self.has_bias)
            for name, parameter in drawn.parameters().items():
                setattr(self, name, parameter)
        return super().__call__(x)

    def _extra_repr(self) -> str:
        return super()._extra_repr() if "weight" in self else f"output_dims={self.outputs}"


def take_sizes(model: nn.Module, call: Callable[[], Any]) -> None:
    """``call`` the model once, where a layer in it has no size yet."""
    if any(isinstance(layer, LazyLinear) and "weight" not in layer for layer in model.modules()):
        call()
