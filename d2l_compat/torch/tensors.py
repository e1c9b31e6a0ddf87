"""The tensor functions D2L code calls on ``d2l``: PyTorch's own, under D2L's names."""

from typing import Any

import torch
from torch import Tensor

from d2l_compat import _checks

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
cos = torch.cos
cosh = torch.cosh
exp = torch.exp
log = torch.log
sigmoid = torch.sigmoid
sin = torch.sin
sinh = torch.sinh
tanh = torch.tanh

batch_matmul = torch.bmm
concat = torch.cat
expand_dims = torch.unsqueeze
matmul = torch.matmul
stack = torch.stack
swapaxes = torch.swapaxes

float32 = torch.float32
int32 = torch.int32
int64 = torch.int64


def argmax(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.argmax(*args, **kwargs)


def astype(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.type(dtype)


def numpy(x: Tensor, *args: Any, **kwargs: Any) -> Any:
    return x.detach().numpy(*args, **kwargs)


def reduce_mean(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.mean(*args, **kwargs)


def reduce_sum(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.sum(*args, **kwargs)


def repeat(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.repeat(*args, **kwargs)


def reshape(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.reshape(*args, **kwargs)


def size(x: Tensor, *args: Any, **kwargs: Any) -> int:
    """The number of elements."""
    return x.numel(*args, **kwargs)


def to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return x.to(*args, **kwargs)


def transpose(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A matrix with rows and columns exchanged."""
    return x.t(*args, **kwargs)


def check_shape(x: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``x`` has exactly this ``shape``."""
    if not isinstance(x, Tensor):
        raise TypeError(_checks.fault("x", type(x).__name__, "a tensor"))
    _checks.same_shape(x.shape, shape)


__all__ = [
    "abs",
    "arange",
    "argmax",
    "astype",
    "batch_matmul",
    "check_shape",
    "concat",
    "cos",
    "cosh",
    "exp",
    "expand_dims",
    "eye",
    "float32",
    "int32",
    "int64",
    "linspace",
    "log",
    "matmul",
    "meshgrid",
    "normal",
    "numpy",
    "ones",
    "ones_like",
    "rand",
    "randn",
    "reduce_mean",
    "reduce_sum",
    "repeat",
    "reshape",
    "sigmoid",
    "sin",
    "sinh",
    "size",
    "stack",
    "swapaxes",
    "tanh",
    "tensor",
    "to",
    "transpose",
    "zeros",
    "zeros_like",
]
