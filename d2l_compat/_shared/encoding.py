"""Tables for positional encodings, computed once for every framework."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sinusoids(max_len: int, num_hiddens: int) -> NDArray[np.float64]:
    """Return the positional encoding P of Vaswani et al. (2017), section 3.5.

    Row i is position i, from 0; column 2j is sin(i / 10000^(2j/d)) and column 2j + 1 the
    cosine of the same angle, in radians, with d = ``num_hiddens``. An odd d has one cosine
    fewer. Shape (max_len, num_hiddens), float64.
    """
    frequencies = 10000.0 ** -(np.arange(0, num_hiddens, 2) / num_hiddens)
    angles = np.arange(max_len)[:, None] * frequencies
    P = np.empty((max_len, num_hiddens))
    P[:, 0::2] = np.sin(angles)
    P[:, 1::2] = np.cos(angles[:, : num_hiddens // 2])
    return P


def rotations(
    max_len: int, num_hiddens: int, base: float, position_scale: float
) -> NDArray[np.float64]:
    """Return the cosines and sines of rotary position embedding, Su et al. (2021), section 3.2.2.

    Pair l is rotated at position i by the angle position_scale * i * base^(-2l/d), in radians, with d =
    ``num_hiddens``. Shape (2, max_len, num_hiddens / 2), float64: first the cosines.
    """
    return rotations_at(position_scale * np.arange(max_len), num_hiddens, base)


def rotations_at(positions: Any, num_hiddens: int, base: float = 10000.0, xp: Any = np) -> Any:
    """Return the cosines and sines for any positions, shape (2, ..., num_hiddens / 2).

    ``xp`` is the module of the positions' arrays: NumPy's, or one that has the same functions.
    """
    frequencies = float(base) ** -(np.arange(0, num_hiddens, 2) / num_hiddens)
    angles = positions[..., None] * frequencies
    return xp.stack([xp.cos(angles), xp.sin(angles)])


def slopes(num_heads: int) -> NDArray[np.float64]:
    """Return a slope for each head, Press et al. (2022): 2^(-8h/H) for head h of H, counted from 1.

    If H is not a power of two, they are as in the authors' code: the slopes for the next lower power, then every
    second slope for the next higher one.
    """
    power = 1 << (num_heads.bit_length() - 1)  # the largest power of two that is at most num_heads
    power_slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    more_slopes = 2.0 ** (-8 * np.arange(1, 2 * power, 2) / (2 * power))
    return np.concatenate([power_slopes, more_slopes[: num_heads - power]])
