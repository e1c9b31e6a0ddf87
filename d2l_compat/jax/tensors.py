"""The array functions that D2L code calls on ``d2l``: JAX's own, under D2L's names."""

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from d2l_compat.jax._arrays import arrays

# fmt: off
__all__ = [
    "abs", "arange", "argmax", "astype", "check_shape", "concat", "cos", "cosh", "exp",
    "expand_dims", "eye", "float32", "get_key", "get_seed", "int32", "int64", "linspace", "log", "matmul",
    "meshgrid", "numpy", "ones", "ones_like", "reduce_mean", "reduce_sum", "repeat", "reshape",
    "sigmoid", "sin", "sinh", "stack", "swapaxes", "tanh", "tensor", "to", "transpose", "zeros",
    "zeros_like",
]
# fmt: on

arange = jnp.arange
eye = jnp.eye
linspace = jnp.linspace
meshgrid = jnp.meshgrid
ones = jnp.ones
ones_like = jnp.ones_like
tensor = jnp.array
zeros = jnp.zeros
zeros_like = jnp.zeros_like

abs = jnp.abs
argmax = jnp.argmax
cos = jnp.cos
cosh = jnp.cosh
exp = jnp.exp
log = jnp.log
reduce_mean = jnp.mean
reduce_sum = jnp.sum
sigmoid = jax.nn.sigmoid
sin = jnp.sin
sinh = jnp.sinh
tanh = jnp.tanh

astype = jnp.astype
concat = jnp.concatenate
expand_dims = jnp.expand_dims
matmul = jnp.matmul
numpy = np.asarray
repeat = jnp.repeat
stack = jnp.stack
swapaxes = jnp.swapaxes
to = jax.device_put

float32 = jnp.float32
int32 = jnp.int32
int64 = jnp.int64


def get_seed() -> int:
    """Draw a seed for a random key from Python's ``random``, an integer from 0 to a million."""
    return random.randint(0, 10**6)


def get_key() -> jax.Array:
    """Return a new random key, for JAX's random functions and for ``init`` and ``apply``.

    Its seed is drawn from Python's ``random``. For the same keys again, call ``random.seed(0)``
    first, or make the keys yourself, with ``jax.random.key(0)``.
    """
    return jax.random.PRNGKey(get_seed())


def reshape(x: jax.Array, *args: Any, **kwargs: Any) -> jax.Array:
    """Reshape ``x``; one size may be -1, as in ``Array.reshape``."""
    return x.reshape(*args, **kwargs)


def transpose(x: jax.Array) -> jax.Array:
    """Reverse the dimensions of ``x``, as ``Array.T`` does."""
    return x.T


def check_shape(x: jax.Array, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless ``x`` has exactly this ``shape``, TypeError if it is not an array."""
    arrays.check_shape(x, shape)
