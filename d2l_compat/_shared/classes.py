"""Small helpers of D2L's training code: classes in several cells, arguments kept, time, sums."""

import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from d2l_compat._shared.checks import fault, integer


def as_float(x: Any) -> float:
    """A number that may be a framework's; its gradient is left behind."""
    return float(x.detach() if hasattr(x, "detach") else x)


def add_to_class(Class: type) -> Callable[[Callable[..., Any]], None]:
    """Decorator: the function below becomes a method of ``Class``, under its own name.

    Objects that exist already have it too. Raises TypeError where ``Class`` is no class.
    """
    if not isinstance(Class, type):
        raise TypeError(fault("Class", type(Class).__name__, "a class"))

    def wrapper(method: Callable[..., Any]) -> None:
        setattr(Class, method.__name__, method)

    return wrapper


class HyperParameters:
    """Mixin: ``save_hyperparameters`` makes attributes of the arguments of ``__init__``."""

    def save_hyperparameters(self, ignore: Sequence[str] = ()) -> None:
        """Keep the caller's arguments, but for ``self``, those in ``ignore`` and private names.

        They become attributes, and stand together in ``self.hparams``.
        """
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        caller = inspect.getargvalues(frame.f_back)
        names = [*caller.args, *filter(None, (caller.varargs, caller.keywords))]
        skipped = {"self", *ignore}
        self.hparams = {
            name: caller.locals[name]
            for name in names
            if name not in skipped and not name.startswith("_")
        }
        for name, value in self.hparams.items():
            setattr(self, name, value)


class Timer:
    """Keeps times, in seconds; it runs from when it is made."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.start()

    def start(self) -> None:
        """Begin a time."""
        self.tik = time.perf_counter()

    def stop(self) -> float:
        """End it, keep it, and return it."""
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


class Accumulator:
    """``n`` sums: ``add(1, 2)`` adds 1 to the first and 2 to the second; ``[i]`` reads one."""

    def __init__(self, n: int) -> None:
        """Raises TypeError or ValueError where ``n`` is not an integer of at least 1."""
        self.data = [0.0] * integer("n", n, 1)

    def add(self, *args: Any) -> None:
        """Add one number to each sum. Raises ValueError for more numbers or fewer."""
        if len(args) != len(self.data):
            raise ValueError(fault("args", f"{len(args)} numbers", f"{len(self.data)}, one a sum"))
        self.data = [a + as_float(b) for a, b in zip(self.data, args, strict=True)]

    def reset(self) -> None:
        """All sums are 0 again."""
        self.data = [0.0] * len(self.data)

    def __getitem__(self, idx: int) -> float:
        return self.data[idx]
