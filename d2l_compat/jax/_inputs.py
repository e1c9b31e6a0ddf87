"""What layers check of their input. NumPy's arrays are taken wherever JAX's are."""

from typing import Any, TypeAlias

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks

Array: TypeAlias = jax.Array | NDArray[Any]


def as_jax(what: str, value: Array) -> jax.Array:
    """``value`` as JAX's array. Raises TypeError where it is no array."""
    if isinstance(value, np.ndarray):
        return jnp.asarray(value)
    checks.instance(what, value, jax.Array, "a tensor")
    return value


def check_training(training: bool) -> None:
    # Other faces' layers take something else in its place, which would pass for True.
    checks.instance("training", training, bool, "True or False")


def is_floating(x: jax.Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.floating)


def check_inputs(queries: Array, keys: Array, values: Array) -> list[jax.Array]:
    named = {"queries": queries, "keys": keys, "values": values}
    inputs = [as_jax(what, value) for what, value in named.items()]
    checks.attention_inputs(*(x.shape for x in inputs))
    dtypes = [str(x.dtype) for x in inputs]
    checks.floating("queries, keys and values", dtypes, is_floating(inputs[0]))
    return inputs


def check_projection(what: str, inputs: jax.Array, projection: nn.Dense, size: int | None) -> None:
    """Inputs have the ``size`` that was told, or that of the weights they will meet."""
    if size is None and projection.has_variable("params", "kernel"):
        size = projection.get_variable("params", "kernel").shape[0]
    if size is not None:
        checks.last_dimension(what, inputs.shape, size)


def check_lengths(what: str, lens: Array) -> tuple[str, bool]:
    """Lengths are an array: its dtype, and whether that is of integers."""
    if not isinstance(lens, np.ndarray):
        checks.instance(what, lens, jax.Array, "an integer tensor")
    return str(lens.dtype), jnp.issubdtype(lens.dtype, jnp.integer)


def check_valid_lens(valid_lens: Array, batch: int, num_queries: int, num_keys: int) -> None:
    dtype, is_integer = check_lengths("valid_lens", valid_lens)
    checks.valid_lens(valid_lens.shape, dtype, is_integer, batch, num_queries)
    if valid_lens.size and not isinstance(valid_lens, jax.core.Tracer):
        lens = np.asarray(valid_lens)  # JAX's own min would be traced under jit
        checks.valid_lens_range(int(lens.min()), int(lens.max()), num_keys)
