"""D2L's object-oriented design: classes defined in several cells, and arguments saved as attributes."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat._shared.checks import message


def add_to_class(Class: type) -> Callable[[Callable[..., Any]], None]:
    """Return a decorator that adds a function to ``Class`` as a method, also for existing objects.

    Raises TypeError if ``Class`` is not a class.
    """
    if not isinstance(Class, type):
        raise TypeError(message("Class", type(Class).__name__, "a class"))

    def wrapper(method: Callable[..., Any]) -> None:
        if not hasattr(method, "__name__"):
            raise TypeError(message("method", type(method).__name__, "a function"))
        setattr(Class, method.__name__, method)

    return wrapper


class HyperParameters:
    """Mixin whose ``save_hyperparameters`` turns the arguments of ``__init__`` into attributes."""

    def save_hyperparameters(self, ignore: Sequence[str] = ()) -> None:
        """Save the caller's arguments and other local variables as attributes, and together as ``self.hparams``.

        ``self``, the names in ``ignore`` and names that begin with an underscore are skipped.
        """
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        skipped = {"self", *ignore}
        self.hparams = {
            name: value
            for name, value in frame.f_back.f_locals.items()
            if name not in skipped and not name.startswith("_")
        }
        for name, value in self.hparams.items():
            setattr(self, name, value)
