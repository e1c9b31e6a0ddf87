"""Relative positions: rotary position embedding, and the slopes of ALiBi."""

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import checks, encoding
from d2l_compat.tensorflow._arrays import Array
from d2l_compat.tensorflow._keras import keras, sizes
from d2l_compat.tensorflow._tabulated import Tabulated
from d2l_compat.tensorflow.attention import register

__all__ = ["RotaryEncoding", "alibi_slopes"]


@register
class RotaryEncoding(Tabulated):
    """Turns queries and keys by their positions: RoPE, Su et al. (2021).

    The dot product of a turned query and a turned key depends, apart from the two themselves, on the distance
    of their positions alone. Dimensions are turned in pairs: (x, y) of pair l at position i becomes (x cos a - y sin a,
    x sin a + y cos a), a = position_scale * i * base^(-2l/d) radians, d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other: "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on.

    ``P``, shape (2, max_len, num_hiddens / 2), has the cosines and sines: a constant, in the dtype in which the layer
    computes, not trained, and not among the weights.
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
        """``num_hiddens``: the even width of what is turned, which in multi-head attention is a head's.

        ``max_len``: how many positions there are, from 0 to max_len - 1. ``position_scale`` multiplies them:
        with 0.5, twice as many lie in the range of angles (position interpolation, Chen et al., 2023).
        ``kwargs`` are any layer's. Raises ValueError or TypeError for arguments of a wrong range or kind.
        """
        sizes = checks.rotary_sizes(num_hiddens, max_len, base, layout, position_scale)
        super().__init__(**kwargs)
        self.num_hiddens, self.max_len = sizes
        self.base, self.layout, self.position_scale = base, layout, position_scale
        of_table = self.max_len, self.num_hiddens, base, position_scale
        self.tabulate(encoding.rotations(*of_table))

    def __call__(self, X: Array, offset: int = 0, **kwargs: Any) -> Tensor:
        """``X``, turned by the positions offset, offset + 1, ...

        ``X`` is floating point, shape (batch, steps, num_hiddens), where the batch may be one of heads, and
        as with every Keras layer is cast to the layer's dtype; the result has its shape. Raises ValueError or
        TypeError where ``X`` does not fit, or ``offset`` is not an integer from 0 on or leads past ``max_len``.
        """
        return super().__call__(X, offset, **kwargs)

    def call(self, X: Tensor, offset: int = 0) -> Tensor:
        batch, steps, _ = sizes(X)
        pairs = self.num_hiddens // 2
        # A slice of exactly that size, or an error where it leads past the end.
        cos, sin = tf.unstack(tf.slice(self._table, (0, offset, 0), (2, steps, pairs)))
        # Pairs, and along which of the two axes that they make a pair's two numbers lie.
        shape, axis = ((2, pairs), -2) if self.layout == "halves" else ((pairs, 2), -1)
        x, y = tf.unstack(tf.reshape(X, (batch, steps, *shape)), axis=axis)
        turned = tf.stack([x * cos - y * sin, x * sin + y * cos], axis)
        return tf.reshape(turned, (batch, steps, self.num_hiddens))

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
    """How much each head's scores fall with each position of distance: ALiBi, Press et al. (2022).

    2^(-8h/H) for head h of H = ``num_heads``, counted from 1, shape (num_heads,), in Keras's default dtype;
    where H is no power of two, as in the authors' code. Multiplied by minus the distance i - j, they make a ``score_bias``.
    Raises ValueError or TypeError where ``num_heads`` is no integer of at least 1.
    """
    slopes = encoding.slopes(checks.size("num_heads", num_heads))
    return tf.constant(slopes, keras.backend.floatx())
