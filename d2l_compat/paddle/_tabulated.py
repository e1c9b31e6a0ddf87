"""A table of positions in a layer."""

from typing import Any

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import Tensor, nn


class Tabulated(nn.Layer):
    """Has a table ``P``, which follows the layer's device and dtype, and is neither trained nor saved."""

    P: Tensor

    def tabulate(self) -> None:
        """To be called once all is there that ``exact`` needs."""
        table = self._table().astype(paddle.get_default_dtype())
        self.register_buffer("P", table, persistable=False)

    def exact(self) -> NDArray[np.float64]:
        """The table, of no dtype's rounding yet."""
        raise NotImplementedError

    def _table(self) -> Tensor:
        return paddle.to_tensor(self.exact())

    def _apply(self, *args: Any, **kwargs: Any) -> None:
        # .to(...), .bfloat16(): in another dtype a new P, since a cast one keeps the old rounding.
        before = self.P.dtype
        super()._apply(*args, **kwargs)
        if self.P.dtype != before:
            self.P = self._table().to(self.P.place, self.P.dtype)
