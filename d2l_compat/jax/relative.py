"""Relative positions: rotary position embedding and the slopes of ALiBi."""

from dataclasses import KW_ONLY
from functools import lru_cache

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat._shared import checks, encoding
from d2l_compat.jax._arrays import Array, arrays, as_jax
from d2l_compat.jax.attention import select_positions

__all__ = ["RotaryEncoding", "alibi_slopes"]


class RotaryEncoding(nn.Module):
    """Rotary position embedding (RoPE, Su et al., 2021): queries and keys rotated by their positions.

    The dot product of a rotated query and a rotated key depends on their positions only through the distance
    between them. Dimensions are rotated in pairs: (x, y) of pair l at position i becomes
    (x cos a - y sin a, x sin a + y cos a), with a = position_scale * i * base^(-2l/d) radians and d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other. "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on.

    ``num_hiddens`` is the even width of queries and keys; in multi-head attention, of one head. The positions are
    0 to ``max_len`` - 1. ``position_scale`` multiplies them: with 0.5, twice as many fit in the same range of
    angles (position interpolation, Chen et al., 2023). The layer has no parameters; cosines and sines are
    in the dtype of the input. Raises ValueError or TypeError for arguments of the wrong type or range.
    """

    num_hiddens: int
    max_len: int = 1000
    _: KW_ONLY
    base: float = 10000.0
    layout: str = "interleaved"
    position_scale: float = 1.0

    def __post_init__(self) -> None:
        self.num_hiddens, self.max_len = checks.rotary_sizes(
            self.num_hiddens, self.max_len, self.base, self.layout, self.position_scale
        )
        super().__post_init__()

    def __call__(self, X: Array, offset: int | jax.Array = 0) -> jax.Array:
        """Rotate ``X`` by the positions offset, offset + 1, ...

        ``X`` is floating point, shape (batch, steps, num_hiddens), or (batch * heads, steps, num_hiddens); the
        result has its shape and dtype. Raises ValueError or TypeError if ``X`` does not fit, if ``offset`` is
        not an integer of at least 0, or if a position reaches ``max_len``. A traced ``offset`` has no value to
        check yet: positions past the end are then NaN.
        """
        X = as_jax(X)
        arrays.check_encoding(X, self.num_hiddens)
        table = _rotations(self.max_len, self.num_hiddens, self.base, self.position_scale)
        cos, sin = select_positions(jnp.asarray(table, X.dtype), offset, X.shape[1])
        # Split the last axis into pairs; `axis` is the new axis of length 2.
        num_pairs = self.num_hiddens // 2
        shape, axis = ((2, num_pairs), -2) if self.layout == "halves" else ((num_pairs, 2), -1)
        x, y = jnp.moveaxis(X.reshape(*X.shape[:2], *shape), axis, 0)
        return jnp.stack([x * cos - y * sin, x * sin + y * cos], axis).reshape(X.shape)


# The table is cached, since Flax creates the layer again in each `apply`.
_rotations = lru_cache(maxsize=8)(encoding.rotations)


def alibi_slopes(num_heads: int) -> jax.Array:
    """Return each head's slope for ALiBi (Press et al., 2022): how much scores fall per position of distance.

    Head h of H = ``num_heads``, counted from 1, has the slope 2^(-8h/H). If H is not a power of two, the slopes follow
    the authors' code. The shape is (num_heads,), float32. A head's ``score_bias`` for query i and key j is
    -slope * (i - j). Raises ValueError or TypeError if ``num_heads`` is not an integer of at least 1.
    """
    return jnp.asarray(encoding.slopes(checks.size("num_heads", num_heads)), jnp.float32)
