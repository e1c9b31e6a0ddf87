"""Relative positions: rotary position embedding, and the slopes of ALiBi."""

from typing import Any

from mxnet import np
from mxnet.gluon import nn

from d2l_compat._shared import checks, encoding, layers
from d2l_compat.mxnet._arrays import arrays

__all__ = ["RotaryEncoding", "alibi_slopes"]


class RotaryEncoding(layers.RotaryEncoding, nn.Block):
    """Turns queries and keys by their positions: RoPE, Su et al. (2021).

    The dot product of a turned query and a turned key depends, apart from the two themselves, on the distance
    of their positions alone. Dimensions are turned in pairs: (x, y) of pair l at position i becomes (x cos a - y sin a,
    x sin a + y cos a), a = position_scale * i * base^(-2l/d) radians, d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other: "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on.

    ``P``, shape (2, max_len, num_hiddens / 2), has the cosines and sines. It is no Parameter:
    neither trained nor saved.
    """

    def _make_layers(self) -> None:
        self.cast("float32")

    def cast(self, dtype: Any) -> None:
        """Use another dtype. ``P`` is made anew: a cast one would keep the old rounding."""
        super().cast(dtype)
        sizes = self.max_len, self.num_hiddens
        table = encoding.rotations(*sizes, self.base, self.position_scale)
        self.P = np.array(table, dtype=dtype)

    def __call__(self, X: np.ndarray, offset: int = 0) -> np.ndarray:
        return super().__call__(X, offset)

    def forward(self, X: np.ndarray, offset: int = 0) -> np.ndarray:
        """``X``, turned by the positions offset, offset + 1, ...

        ``X`` is floating point, shape (batch, steps, num_hiddens), where the batch may be one of heads;
        the result has its shape and dtype. Raises ValueError or TypeError where ``X`` does not fit, or
        ``offset`` is not an integer from 0 on or leads past ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        P = self.P[:, offset : offset + X.shape[1]]
        cos, sin = P.as_in_ctx(X.ctx).astype(X.dtype)
        # Pairs, and along which of the two axes that they make a pair's two numbers lie.
        pairs = self.num_hiddens // 2
        shape, axis = ((2, pairs), -2) if self.layout == "halves" else ((pairs, 2), -1)
        x, y = np.moveaxis(X.reshape(*X.shape[:2], *shape), axis, 0)
        return np.stack([x * cos - y * sin, x * sin + y * cos], axis=axis).reshape(X.shape)


def alibi_slopes(num_heads: int) -> np.ndarray:
    """How much each head's scores fall with each position of distance: ALiBi, Press et al. (2022).

    2^(-8h/H) for head h of H = ``num_heads``, counted from 1, shape (num_heads,), float32; where H is no
    power of two, as in the authors' code. Multiplied by minus the distance i - j, they make a ``score_bias``.
    Raises ValueError or TypeError where ``num_heads`` is no integer of at least 1.
    """
    return np.array(encoding.slopes(checks.size("num_heads", num_heads)), dtype="float32")
