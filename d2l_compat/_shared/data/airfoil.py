"""NASA's measurements of airfoil noise, 1,503 rows of five features and the sound level (Brooks et al., 1989)."""

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import size
from d2l_compat._shared.data.hub import locate

Rows = NDArray[np.float32]


def airfoil(batch_size: int, n: int) -> tuple[Rows, Rows]:
    """Load the first ``n`` rows: features (n, 5) and sounds (n,), each with mean 0 and variance 1 over all rows.

    ``batch_size`` is only checked. Raises TypeError or ValueError for sizes below 1.
    """
    size("batch_size", batch_size)
    size("n", n)
    data = np.genfromtxt(locate("airfoil", "../data"), np.float32, delimiter="\t")
    data = ((data - data.mean(axis=0)) / data.std(axis=0))[:n]
    return data[:, :-1].copy(), data[:, -1].copy()
