"""Relative positions: rotary position embedding and the slopes of ALiBi."""

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import Tensor

from d2l_compat._shared import checks, encoding, layers
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle._position_table import PositionTable

__all__ = ["RotaryEncoding", "alibi_slopes"]


class RotaryEncoding(layers.RotaryEncoding, PositionTable):
    """Rotary position embedding (RoPE, Su et al., 2021): queries and keys rotated by their positions.

    The dot product of a rotated query and a rotated key depends only on the two vectors and the distance between their
    positions. Dimensions are rotated in pairs: (x, y) of pair l at position i becomes
    (x cos a - y sin a, x sin a + y cos a), with a = position_scale * i * base^(-2l/d) radians and d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other. "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on.

    The layer has no parameters and is not part of ``state_dict``.
    """

    def _make_layers(self) -> None:
        self.create_table()

    def forward(self, X: Tensor, offset: int = 0) -> Tensor:
        """Rotate ``X`` by the positions offset, offset + 1, and so on.

        ``X`` is floating point, shape (batch, steps, num_hiddens), or (batch * heads, steps, num_hiddens); the
        result has its shape and dtype. Raises ValueError or TypeError if ``X`` does not fit, if ``offset`` is
        not an integer of at least 0, or if a position reaches ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        cos, sin = self.P[:, offset : offset + X.shape[1]].astype(X.dtype).unbind(0)
        # Split the last axis into pairs; `axis` is the new axis of length 2.
        num_pairs = self.num_hiddens // 2
        shape, axis = ([2, num_pairs], -2) if self.layout == "halves" else ([num_pairs, 2], -1)
        x, y = X.reshape([X.shape[0], X.shape[1], *shape]).unbind(axis)
        rotated = [x * cos - y * sin, x * sin + y * cos]
        return paddle.stack(rotated, axis=axis).reshape(X.shape)

    def exact_table(self) -> NDArray[np.float64]:
        """Return cosines and sines, shape (2, max_len, num_hiddens / 2)."""
        return encoding.rotations(self.max_len, self.num_hiddens, self.base, self.position_scale)


def alibi_slopes(num_heads: int) -> Tensor:
    """Return each head's slope for ALiBi (Press et al., 2022): how much scores fall per position of distance.

    Head h of H = ``num_heads``, counted from 1, has the slope 2^(-8h/H). If H is not a power of two, the slopes follow
    the authors' code. The shape is (num_heads,), in Paddle's default dtype. A head's ``score_bias`` for query i and key
    j is -slope * (i - j). Raises ValueError or TypeError if ``num_heads`` is not an integer of at least 1.
    """
    slopes = encoding.slopes(checks.size("num_heads", num_heads))
    return paddle.to_tensor(slopes).astype(paddle.get_default_dtype())
