"""Access to MLX arrays for the shared checks."""

from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from numpy.typing import NDArray

from d2l_compat._shared.checks import Arrays


class _Arrays(Arrays):
    types = (mx.array,)
    layer_types: tuple[type, ...] = (nn.Linear, nn.LayerNorm)

    def dtype(self, x: mx.array) -> str:
        return str(x.dtype).removeprefix("mlx.core.")

    def cast(self, x: mx.array, dtype: str) -> mx.array:
        return x.astype(getattr(mx, dtype))

    def value_range(self, x: mx.array) -> tuple[float, float] | None:
        values = read_values(x) if x.size else None
        return None if values is None else (values.min(), values.max())

    def expected_input(
        self, projection: nn.Module, inputs: mx.array
    ) -> tuple[int | None, str | None]:
        # Any dtype fits: MLX promotes inputs and weights to the wider dtype.
        return projection.weight.shape[-1] if "weight" in projection else None, None


arrays = _Arrays()


def read_values(x: mx.array) -> NDArray[Any] | None:
    """Return the values of ``x``, or None in ``mx.compile`` and ``mx.vmap``, where it has none yet."""
    readable = x.astype(mx.float32) if x.dtype == mx.bfloat16 else x  # NumPy has no bfloat16
    try:
        return np.asarray(readable)
    except (ValueError, RuntimeError):  # mx.compile raises the former, mx.vmap the latter
        return None
