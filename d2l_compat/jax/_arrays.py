"""Access to JAX arrays for the shared checks. NumPy arrays are accepted as well."""

from typing import Any, TypeAlias

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks
from d2l_compat._shared.checks import Arrays

Array: TypeAlias = jax.Array | NDArray[Any]


class _Arrays(Arrays):
    types = (jax.Array, np.ndarray)
    layer_types = (nn.Dense,)

    def dtype(self, x: Array) -> str:
        return str(x.dtype)

    def value_range(self, x: Array) -> tuple[float, float] | None:
        if not x.size or isinstance(x, jax.core.Tracer):
            return None
        values = np.asarray(x)  # under jit, jnp.min would be traced
        return values.min(), values.max()

    def expected_input(self, projection: nn.Dense, inputs: Array) -> tuple[int | None, str | None]:
        if not projection.has_variable("params", "kernel"):
            return None, None
        return projection.get_variable("params", "kernel").shape[0], None


arrays = _Arrays()


def as_jax(value: Array) -> jax.Array:
    """Convert a NumPy array; return anything else unchanged, for the checks to reject."""
    return jnp.asarray(value) if isinstance(value, np.ndarray) else value


def check_training(training: bool) -> None:
    # A call written for another framework passes another argument here, which might be truthy.
    checks.check_instance("training", training, bool, "True or False")
