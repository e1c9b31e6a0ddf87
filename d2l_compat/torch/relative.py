"""Relative positions: rotary position embedding, and the slopes of ALiBi."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from d2l_compat._shared import checks, encoding, layers
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch._tabulated import Tabulated

__all__ = ["RotaryEncoding", "alibi_slopes"]


class RotaryEncoding(layers.RotaryEncoding, Tabulated):
    """Turns queries and keys by their positions: RoPE, Su et al. (2021).

    The dot product of a turned query and a turned key depends, apart from the two themselves, on the distance
    of their positions alone. Dimensions are turned in pairs: (x, y) of pair l at position i becomes (x cos a - y sin a,
    x sin a + y cos a), a = position_scale * i * base^(-2l/d) radians, d = ``num_hiddens``.

    There are two layouts, and weights trained with one do not fit the other: "interleaved", as in the paper,
    pairs dimension 0 with 1, 2 with 3, and so on; "halves" pairs 0 with d/2, 1 with d/2 + 1, and so on.

    It has no parameters and is not part of ``state_dict``.
    """

    def _make_layers(self) -> None:
        self.tabulate()

    def forward(self, X: Tensor, offset: int = 0) -> Tensor:
        """``X``, turned by the positions offset, offset + 1, ...

        ``X`` is floating point, shape (batch, steps, num_hiddens), where the batch may be one of heads;
        the result has its shape and dtype. Raises ValueError or TypeError where ``X`` does not fit, or
        ``offset`` is not an integer from 0 on or leads past ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        cos, sin = self.P[:, offset : offset + X.shape[1]].to(X.dtype)
        # Pairs, and along which of the two axes that they make a pair's two numbers lie.
        shape, axis = ((2, -1), -2) if self.layout == "halves" else ((-1, 2), -1)
        x, y = X.unflatten(-1, shape).unbind(axis)
        return torch.stack([x * cos - y * sin, x * sin + y * cos], dim=axis).flatten(-2)

    def exact(self) -> NDArray[np.float64]:
        """Cosines and sines, shape (2, max_len, num_hiddens / 2)."""
        sizes = self.max_len, self.num_hiddens
        return encoding.rotations(*sizes, self.base, self.position_scale)


def alibi_slopes(num_heads: int) -> Tensor:
    """How much each head's scores fall with each position of distance: ALiBi, Press et al. (2022).

    2^(-8h/H) for head h of H = ``num_heads``, counted from 1, shape (num_heads,), in PyTorch's default dtype, on its default device;
    where H is no power of two, as in the authors' code. Multiplied by minus the distance i - j, they make a ``score_bias``.
    Raises ValueError or TypeError where ``num_heads`` is no integer of at least 1.
    """
    slopes = encoding.slopes(checks.size("num_heads", num_heads))
    return torch.tensor(slopes, dtype=torch.get_default_dtype())
