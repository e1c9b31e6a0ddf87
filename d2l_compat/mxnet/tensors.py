"""The tensor functions that D2L's code calls on ``d2l``: MXNet's own, under D2L's names."""

from typing import Any

from mxnet import Context, np, npx

from d2l_compat.mxnet._arrays import arrays

# fmt: off
__all__ = [
    "abs", "arange", "argmax", "astype", "batch_matmul", "check_shape", "concat", "cos", "cosh",
    "exp", "expand_dims", "eye", "float32", "int32", "int64", "linspace", "log", "matmul",
    "meshgrid", "normal", "numpy", "ones", "ones_like", "rand", "randn", "reduce_mean",
    "reduce_sum", "repeat", "reshape", "sigmoid", "sin", "sinh", "size", "stack", "swapaxes",
    "tanh", "tensor", "to", "transpose", "zeros", "zeros_like",
]
# fmt: on

arange = np.arange
eye = np.eye
linspace = np.linspace
meshgrid = np.meshgrid
normal = np.random.normal
ones = np.ones
ones_like = np.ones_like
rand = np.random.rand
randn = np.random.randn
tensor = np.array  # converts every list to float32, even one of whole numbers
zeros = np.zeros
zeros_like = np.zeros_like

abs = np.abs
argmax = np.argmax
cos = np.cos
cosh = np.cosh
exp = np.exp
log = np.log
reduce_mean = np.mean
reduce_sum = np.sum
sigmoid = npx.sigmoid
sin = np.sin
sinh = np.sinh
tanh = np.tanh

batch_matmul = npx.batch_dot
concat = np.concatenate
expand_dims = np.expand_dims
matmul = np.matmul
size = np.size
stack = np.stack
swapaxes = np.swapaxes

float32 = np.float32
int32 = np.int32
int64 = np.int64


def astype(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Convert ``x`` to another dtype."""
    return x.astype(dtype)


def numpy(x: np.ndarray) -> Any:
    """Convert ``x`` to a NumPy array of the same shape and dtype, without its gradient."""
    return x.asnumpy()


def repeat(x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
    """Repeat each element of ``x`` along an axis: ``ndarray.repeat``."""
    return x.repeat(*args, **kwargs)


def reshape(x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
    """Reshape ``x``; one of the sizes may be -1: ``ndarray.reshape``."""
    return x.reshape(*args, **kwargs)


def to(x: np.ndarray, device: Context) -> np.ndarray:
    """Move ``x`` to another device: ``ndarray.as_in_ctx``."""
    return x.as_in_ctx(device)


def transpose(x: np.ndarray) -> np.ndarray:
    """Return ``x`` with its axes in reverse order: ``ndarray.T``."""
    return x.T


def check_shape(x: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``x`` has exactly this ``shape``, TypeError if it is not a tensor."""
    arrays.check_shape(x, shape)
