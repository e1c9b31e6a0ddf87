"""The tensor functions that D2L's code calls on ``d2l``: Paddle's own, under D2L's names."""

from typing import Any

import paddle
from paddle import Tensor

from d2l_compat.paddle._arrays import arrays

# fmt: off
__all__ = [
    "abs", "arange", "argmax", "astype", "batch_matmul", "check_shape", "concat", "cos", "cosh",
    "exp", "expand_dims", "eye", "float32", "int32", "int64", "linspace", "log", "matmul",
    "meshgrid", "normal", "numpy", "ones", "ones_like", "rand", "randn", "reduce_mean",
    "reduce_sum", "repeat", "reshape", "sigmoid", "sin", "sinh", "size", "stack", "swapaxes",
    "tanh", "tensor", "to", "transpose", "zeros", "zeros_like",
]
# fmt: on

arange = paddle.arange
eye = paddle.eye
linspace = paddle.linspace
meshgrid = paddle.meshgrid
normal = paddle.normal
ones = paddle.ones
ones_like = paddle.ones_like
rand = paddle.rand
randn = paddle.randn
tensor = paddle.to_tensor
zeros = paddle.zeros
zeros_like = paddle.zeros_like

abs = paddle.abs
argmax = paddle.argmax
cos = paddle.cos
cosh = paddle.cosh
exp = paddle.exp
log = paddle.log
reduce_mean = paddle.mean
reduce_sum = paddle.sum
sigmoid = paddle.nn.functional.sigmoid
sin = paddle.sin
sinh = paddle.sinh
tanh = paddle.tanh

astype = paddle.cast
batch_matmul = paddle.bmm
concat = paddle.concat
expand_dims = paddle.unsqueeze
matmul = paddle.matmul
repeat = paddle.tile
reshape = paddle.reshape
size = paddle.numel
stack = paddle.stack
transpose = paddle.t

float32 = paddle.float32
int32 = paddle.int32
int64 = paddle.int64


def numpy(x: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Convert ``x`` to a NumPy array of the same shape and dtype, without its gradient."""
    return x.detach().numpy(*args, **kwargs)


def swapaxes(x: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two axes of ``x``."""
    axes = list(range(x.ndim))
    axes[axis0], axes[axis1] = axes[axis1], axes[axis0]
    return x.transpose(axes)


def to(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Move ``x`` to another device, or convert it to another dtype: ``Tensor.to``."""
    return x.to(*args, **kwargs)


def check_shape(x: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``x`` has exactly this ``shape``, TypeError if it is not a tensor."""
    arrays.check_shape(x, shape)
