"""Access to MXNet's arrays for the shared checks."""

from typing import Any

import numpy as onp
from mxnet import np
from mxnet.gluon import nn
from numpy.typing import NDArray

from d2l_compat._shared.checks import Arrays


class _Arrays(Arrays):
    types = (np.ndarray,)
    layer_types = (nn.Dense, nn.LayerNorm)

    def dtype(self, x: Any) -> str:
        return onp.dtype(x.dtype).name

    def as_readable(self, x: np.ndarray) -> NDArray[Any]:
        """Convert ``x`` to a NumPy array, with dtype int64 if all its floats are whole numbers."""
        numbers = x.asnumpy()
        is_finite = numbers.dtype.kind == "f" and onp.isfinite(numbers).all()
        is_whole = is_finite and (numbers % 1 == 0).all()
        return numbers.astype(onp.int64) if is_whole else numbers

    def value_range(self, x: NDArray[Any]) -> tuple[float, float] | None:
        return (x.min(), x.max()) if x.size else None

    def expected_input(
        self, projection: nn.Dense, inputs: np.ndarray
    ) -> tuple[int | None, str | None]:
        is_norm = isinstance(projection, nn.LayerNorm)
        weight = projection.gamma if is_norm else projection.weight
        size = weight.shape[-1]  # -1 before the first call
        return size if size > 0 else None, self.dtype(weight)


arrays = _Arrays()
