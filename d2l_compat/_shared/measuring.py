"""Timers and sums for training loops."""

import time
from typing import Any, Self

import numpy as np

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, message, size


def as_float(what: str, x: Any) -> float:
    """Return a number, which may be an array of a framework, as a float without gradient."""
    number = to_numpy(what, x)
    if number.size != 1:
        raise ValueError(message(what, f"shape {number.shape}", "one number"))
    return float(number.item())


class Timer:
    """A stopwatch for several times, in seconds; it starts at once."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.start()

    def start(self) -> None:
        """Start timing."""
        self.tik = time.perf_counter()

    def stop(self) -> float:
        """Stop timing; record the time, and return it."""
        self.times.append(time.perf_counter() - self.tik)
        return self.times[-1]

    def avg(self) -> float:
        """Return the mean of all times; 0 if there are none."""
        return sum(self.times) / len(self.times) if self.times else 0.0

    def sum(self) -> float:
        """Return the sum of all times."""
        return sum(self.times)

    def cumsum(self) -> list[float]:
        """Return the running sums of the times."""
        return np.cumsum(self.times).tolist()


class Benchmark:
    """A context that prints how long its body takes: ``with d2l.Benchmark("one by one"): ...``."""

    def __init__(self, description: str = "Done") -> None:
        """Set the beginning of the printed line. Raises TypeError unless it is a string."""
        check_instance("description", description, str, "a string")
        self.description = description

    def __enter__(self) -> Self:
        self.timer = Timer()
        return self

    def __exit__(self, *args: object) -> None:
        print(f"{self.description}: {self.timer.stop():.4f} sec")


class Accumulator:
    """``n`` sums: ``add(1, 2)`` adds 1 to the first and 2 to the second; ``[i]`` reads one."""

    def __init__(self, n: int) -> None:
        """Set ``n`` sums to 0. Raises TypeError or ValueError unless ``n`` is an integer of at least 1."""
        self.data = [0.0] * size("n", n)

    def add(self, *args: Any) -> None:
        """Add one number to each sum. Raises ValueError for more numbers or fewer."""
        if len(args) != len(self.data):
            need = f"{len(self.data)}, one for each sum"
            raise ValueError(message("args", f"{len(args)} numbers", need))
        self.data = [a + as_float("args", b) for a, b in zip(self.data, args, strict=True)]

    def reset(self) -> None:
        """Set all sums to 0."""
        self.data = [0.0] * len(self.data)

    def __getitem__(self, idx: int) -> float:
        return self.data[idx]
