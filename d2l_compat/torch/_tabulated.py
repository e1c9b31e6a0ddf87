"""A table of positions in a layer."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class Tabulated(nn.Module):
    """Has a table ``P``, which follows the layer's device and dtype, and is neither trained nor saved."""

    P: Tensor

    def tabulate(self) -> None:
        """To be called once all is there that ``exact`` needs."""
        self.register_buffer("P", self._table(torch.empty(())), persistent=False)

    def exact(self) -> NDArray[np.float64]:
        """The table, of no dtype's rounding yet."""
        raise NotImplementedError

    def _table(self, like: Tensor) -> Tensor:
        # Dtype before device: Apple's has no float64.
        return torch.from_numpy(self.exact()).to(like.dtype).to(like.device)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Tabulated":
        # .double(), .to(...): in another dtype a new P, since a cast one keeps the old rounding;
        # and one that comes from the meta device has no values yet.
        before = self.P
        super()._apply(fn, recurse)
        if self.P.dtype != before.dtype or before.is_meta:
            self.P = self._table(self.P)
        return self
