"""The tensor functions that D2L's code calls on ``d2l``: PyTorch's own, under D2L's names."""

from typing import Any

import torch
from torch import Tensor

from d2l_compat.torch._arrays import arrays

# fmt: off
__all__ = [
    "abs", "arange", "argmax", "astype", "batch_matmul", "check_shape", "concat", "cos", "cosh",
    "exp", "expand_dims", "eye", "float32", "int32", "int64", "linspace", "log", "matmul",
    "meshgrid", "normal", "numpy", "ones", "ones_like", "rand", "randn", "reduce_mean",
    "reduce_sum", "repeat", "reshape", "sigmoid", "sin", "sinh", "size", "stack", "swapaxes",
    "tanh", "tensor", "to", "transpose", "zeros", "zeros_like",
]
# fmt: on

arange = torch.arange
eye = torch.eye
linspace = torch.linspace
meshgrid = torch.meshgrid
normal = torch.normal
ones = torch.ones
ones_like = torch.ones_like
rand = torch.rand
randn = torch.randn
tensor = torch.tensor
zeros = torch.zeros
zeros_like = torch.zeros_like

abs = torch.abs
argmax = torch.argmax
cos = torch.cos
cosh = torch.cosh
exp = torch.exp
log = torch.log
reduce_mean = torch.mean
reduce_sum = torch.sum
sigmoid = torch.sigmoid
sin = torch.sin
sinh = torch.sinh
tanh = torch.tanh

batch_matmul = torch.bmm
concat = torch.cat
expand_dims = torch.unsqueeze
matmul = torch.matmul
size = torch.numel
stack = torch.stack
swapaxes = torch.swapaxes
transpose = torch.t

float32 = torch.float32
int32 = torch.int32
int64 = torch.int64


def astype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert ``x`` to another dtype."""
    return x.type(dtype)


def numpy(x: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Convert ``x``, which must be on the CPU, to a NumPy array of its shape and dtype, without its gradient."""
    return x.detach().numpy(*args, **kwargs)


def repeat(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Repeat ``x`` a given number of times along each dimension: ``Tensor.repeat``."""
    return x.repeat(*args, **kwargs)


def reshape(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Reshape ``x``; one of the sizes may be -1: ``Tensor.reshape``."""
    return x.reshape(*args, **kwargs)


def to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Move ``x`` to another device, or convert it to another dtype: ``Tensor.to``."""
    return x.to(*args, **kwargs)


def check_shape(x: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``x`` has exactly this ``shape``, TypeError if it is not a tensor."""
    arrays.check_shape(x, shape)
