"""The sinusoidal table, once for every framework."""

import numpy as np
from numpy.typing import NDArray


def sinusoids(max_len: int, num_hiddens: int) -> NDArray[np.float64]:
    """The positional encoding P of Vaswani et al. (2017), section 3.5.

    Row i is position i, from 0; column 2j holds sin(i / 10000^(2j/d)) and column 2j + 1 the
    cosine of the same angle, in radians, with d = ``num_hiddens``. An odd d has one cosine
    fewer. Shape (max_len, num_hiddens), float64.
    """
    frequencies = 10000.0 ** -(np.arange(0, num_hiddens, 2) / num_hiddens)
    angles = np.arange(max_len)[:, None] * frequencies
    P = np.empty((max_len, num_hiddens))
    P[:, 0::2] = np.sin(angles)
    P[:, 1::2] = np.cos(angles[:, : num_hiddens // 2])
    return P
