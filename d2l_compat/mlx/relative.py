"""Relative positions: rotary position embedding, and the slopes of ALiBi."""

from functools import lru_cache

import mlx.core as mx
from mlx import nn

from d2l_compat._shared import checks, encoding, layers
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx.attention import round_to

__all__ = ["RotaryEncoding", "alibi_slopes"]


class RotaryEncoding(layers.RotaryEncoding, nn.Module):
    """Rotary position embedding (RoPE, Su et al., 2021): queries and keys rotated by their positions.

    The dot product of a rotated query and a rotated key depends on their positions only through the distance
    between them. Dimensions are rotated in pairs: (x, y) of pair l at position i becomes
    (x cos a - y sin a, x sin a + y cos a), with a = position_scale * i * base^(-2l/d) radians and d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other: "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on. In
    ``nn.RoPE``, whose angles are float32, they are ``traditional=True`` and ``traditional=False``.

    The layer has no parameters.
    """

    def _make_layers(self) -> None:
        pass  # the table is made in each call, in the input's dtype

    def __call__(self, X: mx.array, offset: int = 0) -> mx.array:
        """Rotate ``X`` by the positions offset, offset + 1, ...

        ``X`` is floating point, shape (batch, steps, num_hiddens), or (batch * heads, steps, num_hiddens); the
        result has its shape and dtype. Raises ValueError or TypeError if ``X`` does not fit, if ``offset`` is
        not an integer of at least 0, or if a position reaches ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        start = int(offset)
        table = _table(self.max_len, self.num_hiddens, self.base, self.position_scale, X.dtype)
        cos, sin = table[:, start : start + X.shape[1]]
        # Split the last axis into pairs; `axis` is the new axis of length 2.
        num_pairs = self.num_hiddens // 2
        split, axis = ((2, num_pairs), -2) if self.layout == "halves" else ((num_pairs, 2), -1)
        x, y = mx.moveaxis(mx.unflatten(X, -1, split), axis, 0)
        return mx.stack([x * cos - y * sin, x * sin + y * cos], axis).flatten(-2)


@lru_cache(maxsize=8)
def _table(
    max_len: int, num_hiddens: int, base: float, position_scale: float, dtype: mx.Dtype
) -> mx.array:
    """Return cosines and sines, shape (2, max_len, num_hiddens / 2)."""
    return round_to(dtype, encoding.rotations(max_len, num_hiddens, base, position_scale))


def alibi_slopes(num_heads: int) -> mx.array:
    """Return each head's slope for ALiBi (Press et al., 2022): how much scores fall per position of distance.

    Head h of H = ``num_heads``, counted from 1, has the slope 2^(-8h/H). If H is not a power of two, the slopes follow
    the authors' code. The shape is (num_heads,), float32. A head's ``score_bias`` for query i and key j is
    -slope * (i - j). Raises ValueError or TypeError if ``num_heads`` is not an integer of at least 1.
    """
    return mx.array(encoding.slopes(checks.size("num_heads", num_heads)), mx.float32)
