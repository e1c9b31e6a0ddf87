"""The tensor functions that D2L code calls on ``d2l``: MLX's own, under D2L's names."""

from typing import Any

import mlx.core as mx
import numpy as np

from d2l_compat.mlx._arrays import arrays

# fmt: off
__all__ = [
    "abs", "arange", "argmax", "astype", "batch_matmul", "check_shape", "concat", "cos", "cosh",
    "exp", "expand_dims", "eye", "float32", "int32", "int64", "linspace", "log", "matmul",
    "meshgrid", "normal", "numpy", "ones", "ones_like", "rand", "randn", "reduce_mean",
    "reduce_sum", "repeat", "reshape", "sigmoid", "sin", "sinh", "size", "stack", "swapaxes",
    "tanh", "tensor", "to", "transpose", "zeros", "zeros_like",
]
# fmt: on

arange = mx.arange
eye = mx.eye
linspace = mx.linspace
meshgrid = mx.meshgrid
normal = mx.random.normal
ones = mx.ones
ones_like = mx.ones_like
tensor = mx.array
zeros = mx.zeros
zeros_like = mx.zeros_like

abs = mx.abs
argmax = mx.argmax
cos = mx.cos
cosh = mx.cosh
exp = mx.exp
log = mx.log
reduce_mean = mx.mean
reduce_sum = mx.sum
sigmoid = mx.sigmoid
sin = mx.sin
sinh = mx.sinh
tanh = mx.tanh

batch_matmul = mx.matmul
concat = mx.concatenate
expand_dims = mx.expand_dims
matmul = mx.matmul
repeat = mx.tile
stack = mx.stack
swapaxes = mx.swapaxes
transpose = mx.transpose

float32 = mx.float32
int32 = mx.int32
int64 = mx.int64


def astype(x: mx.array, dtype: mx.Dtype) -> mx.array:
    """Convert ``x`` to another dtype."""
    return x.astype(dtype)


def numpy(x: mx.array) -> Any:
    """Compute ``x``, and return it as a NumPy array of the same shape and dtype."""
    return np.array(x)


def rand(*shape: Any, **kwargs: Any) -> mx.array:
    """Draw numbers uniformly from 0 to 1; the shape is one tuple, or an argument per dimension."""
    return mx.random.uniform(shape=_shape(shape), **kwargs)


def randn(*shape: Any, **kwargs: Any) -> mx.array:
    """Draw numbers from the standard normal distribution; the shape is as in :func:`rand`."""
    return mx.random.normal(_shape(shape), **kwargs)


def reshape(x: mx.array, *args: Any, **kwargs: Any) -> mx.array:
    """Reshape ``x``; one size may be -1, as in ``array.reshape``."""
    return x.reshape(*args, **kwargs)


def size(x: mx.array) -> int:
    """Return the number of elements of ``x``."""
    return x.size


def to(x: mx.array, where: mx.Dtype | mx.Device) -> mx.array:
    """Convert ``x`` to a dtype; for a device, return it unchanged: all devices share one memory."""
    return x.astype(where) if isinstance(where, mx.Dtype) else x


def check_shape(x: mx.array, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``x`` has exactly this ``shape``, TypeError if it is not an array."""
    arrays.check_shape(x, shape)


def _shape(args: tuple[Any, ...]) -> Any:
    return args[0] if len(args) == 1 and not isinstance(args[0], int) else args
