"""How MXNet's arrays answer what is asked to check them."""

from typing import Any

import numpy as onp
from mxnet import np
from mxnet.gluon import nn
from numpy.typing import NDArray

from d2l_compat._shared.checks import Arrays


class _Arrays(Arrays):
    types = (np.ndarray,)

    def dtype(self, x: Any) -> str:
        return onp.dtype(x.dtype).name

    def lengths(self, x: np.ndarray) -> NDArray[Any]:
        """In NumPy; whole numbers as integers, in whatever dtype they come."""
        lens = x.asnumpy()
        is_whole = lens.dtype.kind == "f" and onp.isfinite(lens).all() and (lens % 1 == 0).all()
        return lens.astype(onp.int64) if is_whole else lens

    def range(self, x: NDArray[Any]) -> tuple[int, int] | None:
        return (int(x.min()), int(x.max())) if x.size else None

    def takes(self, projection: nn.Dense, inputs: np.ndarray) -> tuple[int | None, str | None]:
        size = projection.weight.shape[1]
        return size if size > 0 else None, self.dtype(projection.weight)  # -1: not known yet


arrays = _Arrays()
