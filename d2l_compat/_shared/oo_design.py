"""D2L's object-oriented design: classes in several cells, and arguments kept as attributes."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat._shared.checks import fault, integer


def add_to_class(Class: type) -> Callable[[Callable[..., Any]], None]:
    """Decorator: the function below becomes a method of ``Class``, under its own name.

    Objects that exist already have it too. Raises TypeError if ``Class`` is not a class.
    """
    if not isinstance(Class, type):
        raise TypeError(fault("Class", type(Class).__name__, "a class"))

    def wrapper(method: Callable[..., Any]) -> None:
        if not hasattr(method, "__name__"):
            raise TypeError(fault("method", type(method).__name__, "a function"))
        setattr(Class, method.__name__, method)

    return wrapper


def check_len(a: Any, n: int) -> None:
    """Raise ValueError unless there are exactly ``n`` in ``a``, TypeError if they cannot be counted."""
    n = integer("n", n, 0)
    try:
        found = len(a)
    except TypeError:
        raise TypeError(fault("a", type(a).__name__, "what has a length")) from None
    if found != n:
        raise ValueError(fault("length", found, n))


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
