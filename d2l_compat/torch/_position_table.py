"""A layer with a table of positions."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class PositionTable(nn.Module):
    """A layer with a table ``P``, which follows the layer's device and dtype, and is neither trained nor saved."""

    P: Tensor

    def create_table(self) -> None:
        """Compute ``P``; call this once the attributes that ``exact_table`` reads are set."""
        self.register_buffer("P", self._table(torch.empty(())), persistent=False)

    def exact_table(self) -> NDArray[np.float64]:
        """Return the table in float64, before it is rounded to the layer's dtype."""
        raise NotImplementedError

    def _table(self, like: Tensor) -> Tensor:
        # Dtype before device: Apple's GPUs have no float64.
        return torch.from_numpy(self.exact_table()).to(like.dtype).to(like.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "PositionTable":
        # .double(), .to(...): a cast P would keep the old rounding, and a P from the meta device has
        # no values. In both cases it is recomputed.
        old_table = self.P
        super()._apply(fn, recurse)
        if self.P.dtype != old_table.dtype or old_table.is_meta:
            self.P = self._table(self.P)
        return self
