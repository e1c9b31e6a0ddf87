"""How MLX's arrays answer what is asked to check them."""

from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from numpy.typing import NDArray

from d2l_compat._shared.checks import Arrays


class _Arrays(Arrays):
    types = (mx.array,)

    def dtype(self, x: mx.array) -> str:
        return str(x.dtype).removeprefix("mlx.core.")

    def value_range(self, x: mx.array) -> tuple[float, float] | None:
        numbers = values(x) if x.size else None
        return None if numbers is None else (numbers.min(), numbers.max())

    def expected_input(
        self, projection: nn.Module, inputs: mx.array
    ) -> tuple[int | None, str | None]:
        # Of two dtypes MLX takes the wider.
        return projection.weight.shape[-1] if "weight" in projection else None, None


arrays = _Arrays()


def values(x: mx.array) -> NDArray[Any] | None:
    """What is in ``x``; None within ``mx.compile`` and ``mx.vmap``, where there is nothing yet."""
    readable = x.astype(mx.float32) if x.dtype == mx.bfloat16 else x  # NumPy has no such dtype
    try:
        return np.asarray(readable)
    except (ValueError, RuntimeError):  # of the first and of the second
        return None
