"""Relative positions: rotary position embedding, and the slopes of ALiBi."""

from functools import lru_cache

import mlx.core as mx
from mlx import nn

from d2l_compat._shared import checks, encoding, layers
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx.attention import rounded

__all__ = ["RotaryEncoding", "alibi_slopes"]


class RotaryEncoding(layers.RotaryEncoding, nn.Module):
    """Turns queries and keys by their positions: RoPE, Su et al. (2021).

    The dot product of a turned query and a turned key depends, apart from the two themselves, on the distance
    of their positions alone. Dimensions are turned in pairs: (x, y) of pair l at position i becomes (x cos a - y sin a,
    x sin a + y cos a), a = position_scale * i * base^(-2l/d) radians, d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other: "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on. (Of
    ``nn.RoPE``, these are ``traditional=True`` and ``False``; its angles are float32.)

    The layer has no parameters.
    """

    def _make_layers(self) -> None:
        pass  # its table is made when it is called, in the input's dtype

    def __call__(self, X: mx.array, offset: int = 0) -> mx.array:
        """``X``, turned by the positions offset, offset + 1, ...

        ``X`` is floating point, shape (batch, steps, num_hiddens), where the batch may be one of heads;
        the result has its shape and dtype, in which it is turned. Raises ValueError or TypeError where ``X``
        does not fit, or ``offset`` is not an integer from 0 on or leads past ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        start = int(offset)
        table = _table(self.max_len, self.num_hiddens, self.base, self.position_scale, X.dtype)
        cos, sin = table[:, start : start + X.shape[1]]
        # Pairs, and along which of the two axes that they make a pair's two numbers lie.
        pairs = self.num_hiddens // 2
        shape, axis = ((2, pairs), -2) if self.layout == "halves" else ((pairs, 2), -1)
        x, y = mx.moveaxis(mx.unflatten(X, -1, shape), axis, 0)
        return mx.stack([x * cos - y * sin, x * sin + y * cos], axis).flatten(-2)


@lru_cache(maxsize=8)
def _table(
    max_len: int, num_hiddens: int, base: float, position_scale: float, dtype: mx.Dtype
) -> mx.array:
    """Cosines and sines, shape (2, max_len, num_hiddens / 2)."""
    return rounded(encoding.rotations(max_len, num_hiddens, base, position_scale), dtype)


def alibi_slopes(num_heads: int) -> mx.array:
    """How much each head's scores fall with each position of distance: ALiBi, Press et al. (2022).

    2^(-8h/H) for head h of H = ``num_heads``, counted from 1, shape (num_heads,), float32; where H is no
    power of two, as in the authors' code. Multiplied by minus the distance i - j, they make a ``score_bias``.
    Raises ValueError or TypeError where ``num_heads`` is no integer of at least 1.
    """
    return mx.array(encoding.slopes(checks.size("num_heads", num_heads)), mx.float32)
