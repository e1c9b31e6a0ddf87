"""The tensor functions that D2L's code calls on ``d2l``: TensorFlow's own, under D2L's names."""

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat.tensorflow._arrays import arrays

# fmt: off
__all__ = [
    "abs", "arange", "argmax", "astype", "batch_matmul", "check_shape", "concat", "cos", "cosh",
    "exp", "expand_dims", "eye", "float32", "int32", "int64", "linspace", "log", "matmul",
    "meshgrid", "normal", "numpy", "ones", "ones_like", "rand", "reduce_mean", "reduce_sum",
    "repeat", "reshape", "sigmoid", "sin", "sinh", "size", "stack", "tanh", "tensor", "transpose",
    "zeros", "zeros_like",
]
# fmt: on

arange = tf.range
eye = tf.eye
linspace = tf.linspace
meshgrid = tf.meshgrid
normal = tf.random.normal
ones = tf.ones
ones_like = tf.ones_like
rand = tf.random.uniform
tensor = tf.constant
zeros = tf.zeros
zeros_like = tf.zeros_like

abs = tf.abs
argmax = tf.argmax
cos = tf.cos
cosh = tf.cosh
exp = tf.exp
log = tf.math.log
reduce_mean = tf.reduce_mean
reduce_sum = tf.reduce_sum
sigmoid = tf.sigmoid
sin = tf.sin
sinh = tf.sinh
tanh = tf.tanh

astype = tf.cast
batch_matmul = tf.matmul
concat = tf.concat
expand_dims = tf.expand_dims
matmul = tf.matmul
repeat = tf.repeat
reshape = tf.reshape
stack = tf.stack
transpose = tf.transpose

float32 = tf.float32
int32 = tf.int32
int64 = tf.int64


def numpy(x: Tensor) -> Any:
    """Convert ``x`` to a NumPy array of the same shape and dtype; this fails while a graph is traced."""
    return x.numpy()


def size(x: Tensor) -> int:
    """Return the number of elements of ``x``."""
    return int(tf.size(x))


def check_shape(x: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``x`` has exactly this ``shape``, TypeError if it is not a tensor."""
    arrays.check_shape(x, shape)
