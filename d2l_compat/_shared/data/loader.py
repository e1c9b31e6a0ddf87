"""Batches of data, for the frameworks that have no loader of their own."""

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
    """How many processes read data beside the program: 4, or as many as there are cores, if these are fewer.

    0 where a new process does not begin as a copy of the program, as on macOS: what a notebook defines would
    not be there.
    """
    copies = multiprocessing.get_all_start_methods()[0] == "fork"  # the first is the one in use
    return min(4, os.cpu_count() or 1) if copies else 0


class Loader:
    """Gives batches, again and again; its length is their number.

    ``take(rows)`` makes a batch of the rows with these numbers; ``shuffled(rows)``, if given, are
    these numbers in an order that is drawn anew each time.
    """

    def __init__(
        self,
        take: Callable[[Rows], Batch],
        num_rows: int,
        batch_size: int,
        shuffled: Callable[[Rows], Rows] | None,
    ) -> None:
        """Raises TypeError or ValueError for a ``batch_size`` below 1."""
        self.take, self.num_rows, self.shuffled = take, num_rows, shuffled
        self.batch_size = checks.size("batch_size", batch_size)

    def __len__(self) -> int:
        return math.ceil(self.num_rows / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        rows = np.arange(self.num_rows)
        if self.shuffled:
            rows = self.shuffled(rows)
        for start in range(0, self.num_rows, self.batch_size):
            yield self.take(rows[start : start + self.batch_size])
