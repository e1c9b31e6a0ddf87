"""Relative positions: rotary position embedding and the slopes of ALiBi."""

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import checks, encoding
from d2l_compat.tensorflow._arrays import Array
from d2l_compat.tensorflow._keras import dynamic_shape, keras
from d2l_compat.tensorflow._position_table import PositionTable
from d2l_compat.tensorflow.attention import register

__all__ = ["RotaryEncoding", "alibi_slopes"]


@register
class RotaryEncoding(PositionTable):
    """Rotary position embedding (RoPE, Su et al., 2021): queries and keys rotated by their positions.

    The dot product of a rotated query and a rotated key depends only on the two vectors and the distance between their
    positions. Dimensions are rotated in pairs: (x, y) of pair l at position i becomes
    (x cos a - y sin a, x sin a + y cos a), with a = position_scale * i * base^(-2l/d) radians and d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other. "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on.

    ``P``, shape (2, max_len, num_hiddens / 2), has the cosines and sines. It is a constant in the layer's compute
    dtype: neither trained nor saved.
    """

    def __init__(
        self,
        num_hiddens: int,
        max_len: int = 1000,
        *,
        base: float = 10000.0,
        layout: str = "interleaved",
        position_scale: float = 1.0,
        **kwargs: Any,
    ) -> None:
        """Create the table for vectors of an even width ``num_hiddens``: the head's width in multi-head attention.

        ``max_len`` is the number of positions, from 0 to max_len - 1. ``position_scale`` multiplies them:
        with 0.5, twice as many fit in the same range of angles (position interpolation, Chen et al., 2023). ``kwargs``
        are those of any Keras layer. Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        sizes = checks.rotary_sizes(num_hiddens, max_len, base, layout, position_scale)
        super().__init__(**kwargs)
        self.num_hiddens, self.max_len = sizes
        self.base, self.layout, self.position_scale = base, layout, position_scale
        table = encoding.rotations(self.max_len, self.num_hiddens, base, position_scale)
        self.create_table(table)

    def __call__(self, X: Array, offset: int = 0, **kwargs: Any) -> Tensor:
        """Rotate ``X`` by the positions offset, offset + 1, and so on.

        ``X`` is floating point, shape (batch, steps, num_hiddens), or (batch * heads, steps, num_hiddens); the result
        has its shape. As with every Keras layer, ``X`` is cast to the layer's dtype. Raises ValueError or TypeError if
        ``X`` does not fit, if ``offset`` is not an integer of at least 0, or if a position reaches ``max_len``.
        """
        return super().__call__(X, offset, **kwargs)

    def call(self, X: Tensor, offset: int = 0) -> Tensor:
        batch, steps, _ = dynamic_shape(X)
        num_pairs = self.num_hiddens // 2
        # Unlike Python's slices, `tf.slice` fails if it goes past the end.
        cos, sin = tf.unstack(tf.slice(self._table, (0, offset, 0), (2, steps, num_pairs)))
        # Split the last axis into pairs; `axis` is the new axis of length 2.
        shape, axis = ((2, num_pairs), -2) if self.layout == "halves" else ((num_pairs, 2), -1)
        x, y = tf.unstack(tf.reshape(X, (batch, steps, *shape)), axis=axis)
        rotated = tf.stack([x * cos - y * sin, x * sin + y * cos], axis)
        return tf.reshape(rotated, (batch, steps, self.num_hiddens))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_hiddens": self.num_hiddens,
            "max_len": self.max_len,
            "base": self.base,
            "layout": self.layout,
            "position_scale": self.position_scale,
        }


def alibi_slopes(num_heads: int) -> Tensor:
    """Return each head's slope for ALiBi (Press et al., 2022): how much scores fall per position of distance.

    Head h of H = ``num_heads``, counted from 1, has the slope 2^(-8h/H). If H is not a power of two, the slopes follow
    the authors' code. The shape is (num_heads,), in Keras's default dtype. A head's ``score_bias`` for query i and key
    j is -slope * (i - j). Raises ValueError or TypeError if ``num_heads`` is not an integer of at least 1.
    """
    slopes = encoding.slopes(checks.size("num_heads", num_heads))
    return tf.constant(slopes, keras.backend.floatx())
