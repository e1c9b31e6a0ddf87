"""A layer with a table of positions."""

from typing import Any

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import Tensor, nn


class PositionTable(nn.Layer):
    """A layer with a table ``P``, which follows the layer's device and dtype, and is neither trained nor saved."""

    P: Tensor

    def create_table(self) -> None:
        """Compute ``P``; call this once the attributes that ``exact_table`` reads are set."""
        table = self._table().astype(paddle.get_default_dtype())
        self.register_buffer("P", table, persistable=False)

    def exact_table(self) -> NDArray[np.float64]:
        """Return the table in float64, before it is rounded to the layer's dtype."""
        raise NotImplementedError

    def _table(self) -> Tensor:
        return paddle.to_tensor(self.exact_table())

    def _apply(self, *args: Any, **kwargs: Any) -> None:
        # .to(...), .bfloat16(): a cast P would keep the old rounding, so it is recomputed.
        old_dtype = self.P.dtype
        super()._apply(*args, **kwargs)
        if self.P.dtype != old_dtype:
            self.P = self._table().to(self.P.place, self.P.dtype)
