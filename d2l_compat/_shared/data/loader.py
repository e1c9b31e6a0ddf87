"""A loader of batches for the frameworks that have none."""

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks

Rows = NDArray[np.intp]
Batch = tuple[Any, ...]


def get_dataloader_workers() -> int:
    """Return the number of processes for reading data: 4, or the number of cores if that is smaller.

    It is 0 if a new process does not begin as a copy of the program, as on macOS and Windows, since it would lack a
    notebook's definitions.
    """
    chosen = multiprocessing.get_start_method(allow_none=True)
    method = chosen or multiprocessing.get_all_start_methods()[0]  # the first is the default
    return min(4, os.cpu_count() or 1) if method == "fork" else 0


class Loader:
    """A reusable iterable of batches; its length is their number.

    ``take(rows)`` returns a batch of the rows with these indices; ``shuffle(rows)``, if it is not None, returns the
    indices in random order.
    """

    def __init__(
        self,
        take: Callable[[Rows], Batch],
        num_rows: int,
        batch_size: int,
        shuffle: Callable[[Rows], Rows] | None,
    ) -> None:
        """Store the arguments. Raises TypeError or ValueError for a ``batch_size`` below 1."""
        self.take = take
        self.num_rows = num_rows
        self.shuffle = shuffle
        self.batch_size = checks.size("batch_size", batch_size)

    def __len__(self) -> int:
        return math.ceil(self.num_rows / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        rows = np.arange(self.num_rows)
        if self.shuffle:
            rows = self.shuffle(rows)
        for start in range(0, self.num_rows, self.batch_size):
            yield self.take(rows[start : start + self.batch_size])
