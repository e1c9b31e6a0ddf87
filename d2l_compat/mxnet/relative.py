"""Relative positions: rotary position embedding and the slopes of ALiBi."""

from typing import Any

from mxnet import np
from mxnet.gluon import nn

from d2l_compat._shared import checks, encoding, layers
from d2l_compat.mxnet._arrays import arrays

__all__ = ["RotaryEncoding", "alibi_slopes"]


class RotaryEncoding(layers.RotaryEncoding, nn.Block):
    """Rotary position embedding (RoPE, Su et al., 2021): queries and keys rotated by their positions.

    The dot product of a rotated query and a rotated key depends only on the two vectors and the distance between their
    positions. Dimensions are rotated in pairs: (x, y) of pair l at position i becomes
    (x cos a - y sin a, x sin a + y cos a), with a = position_scale * i * base^(-2l/d) radians and d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other. "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on.

    ``P``, shape (2, max_len, num_hiddens / 2), has the cosines and sines. It is not a Parameter:
    neither trained nor saved.
    """

    def _make_layers(self) -> None:
        self.cast("float32")

    def cast(self, dtype: Any) -> None:
        """Change the dtype. ``P`` is computed again, since casting would keep the old rounding."""
        super().cast(dtype)
        sizes = self.max_len, self.num_hiddens
        table = encoding.rotations(*sizes, self.base, self.position_scale)
        self.P = np.array(table, dtype=dtype)

    def __call__(self, X: np.ndarray, offset: int = 0) -> np.ndarray:
        return super().__call__(X, offset)

    def forward(self, X: np.ndarray, offset: int = 0) -> np.ndarray:
        """Rotate ``X`` by the positions offset, offset + 1, and so on.

        ``X`` is floating point, shape (batch, steps, num_hiddens), or (batch * heads, steps, num_hiddens); the
        result has its shape and dtype. Raises ValueError or TypeError if ``X`` does not fit, if ``offset`` is
        not an integer of at least 0, or if a position reaches ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        P = self.P[:, offset : offset + X.shape[1]]
        cos, sin = P.as_in_ctx(X.ctx).astype(X.dtype)
        # Split the last axis into pairs; `axis` is the new axis of length 2.
        num_pairs = self.num_hiddens // 2
        shape, axis = ((2, num_pairs), -2) if self.layout == "halves" else ((num_pairs, 2), -1)
        x, y = np.moveaxis(X.reshape(*X.shape[:2], *shape), axis, 0)
        return np.stack([x * cos - y * sin, x * sin + y * cos], axis=axis).reshape(X.shape)


def alibi_slopes(num_heads: int) -> np.ndarray:
    """Return each head's slope for ALiBi (Press et al., 2022): how much scores fall per position of distance.

    Head h of H = ``num_heads``, counted from 1, has the slope 2^(-8h/H). If H is not a power of two, the slopes follow
    the authors' code. The shape is (num_heads,), float32. A head's ``score_bias`` for query i and key j is
    -slope * (i - j). Raises ValueError or TypeError if ``num_heads`` is not an integer of at least 1.
    """
    return np.array(encoding.slopes(checks.size("num_heads", num_heads)), dtype="float32")
