"""What a reader's training loop measures with: a timer, and sums."""

import time
from typing import Any, Self

import numpy as np

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, fault, size


def as_float(what: str, x: Any) -> float:
    """A number that may be a framework's; its gradient is left behind."""
    number = to_numpy(what, x)
    if number.size != 1:
        raise ValueError(fault(what, f"shape {number.shape}", "one number"))
    return float(number.item())


class Timer:
    """Measures times, in seconds; it starts when it is made."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.start()

    def start(self) -> None:
        """Start timing."""
        self.tik = time.perf_counter()

    def stop(self) -> float:
        """Stop timing; keep the time, and return it."""
        self.times.append(time.perf_counter() - self.tik)
        return self.times[-1]

    def avg(self) -> float:
        """The mean of all times; 0 where there is none."""
        return sum(self.times) / len(self.times) if self.times else 0.0

    def sum(self) -> float:
        """All times together."""
        return sum(self.times)

    def cumsum(self) -> list[float]:
        """The running sums of the times."""
        return np.cumsum(self.times).tolist()


class Benchmark:
    """Measures what is done in it, and prints that: ``with d2l.Benchmark("one by one"): ...``"""

    def __init__(self, description: str = "Done") -> None:
        """``description`` begins the line that is printed. Raises TypeError where it is no string."""
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
        """Raises TypeError or ValueError where ``n`` is not an integer of at least 1."""
        self.data = [0.0] * size("n", n)

    def add(self, *args: Any) -> None:
        """Add one number to each sum. Raises ValueError for more numbers or fewer."""
        if len(args) != len(self.data):
            raise ValueError(
                fault("args", f"{len(args)} numbers", f"{len(self.data)}, one for each sum")
            )
        self.data = [a + as_float("args", b) for a, b in zip(self.data, args, strict=True)]

    def reset(self) -> None:
        """All sums are 0 again."""
        self.data = [0.0] * len(self.data)

    def __getitem__(self, idx: int) -> float:
        return self.data[idx]
