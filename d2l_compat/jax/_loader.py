"""Batches of data: NumPy's arrays, since JAX has no loader of its own."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks

Batch = tuple[NDArray[Any], ...]


class Loader:
    """Gives batches, again and again; its length is their number.

    ``take(rows)`` makes a batch of the rows with these numbers. To ``shuffle`` is to draw an order
    anew each time, from Python's ``random``, as ``get_key`` does: after ``random.seed(0)`` the
    batches, too, are the same again.
    """

    def __init__(
        self,
        take: Callable[[NDArray[np.intp]], Batch],
        num_rows: int,
        batch_size: int,
        shuffle: bool,
    ) -> None:
        """Raises TypeError or ValueError for a ``batch_size`` below 1."""
        self.take, self.num_rows, self.shuffle = take, num_rows, shuffle
        self.batch_size = checks.size("batch_size", batch_size)

    def __len__(self) -> int:
        return math.ceil(self.num_rows / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        rows = np.arange(self.num_rows)
        if self.shuffle:
            np.random.default_rng(random.getrandbits(64)).shuffle(rows)
        for start in range(0, self.num_rows, self.batch_size):
            yield self.take(rows[start : start + self.batch_size])
