"""What a face exports, from its rooms' own lists; and a clear word where a name is missing."""

import sys
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from d2l_compat._shared.plot import pyplot

COMMON = "d2l_compat.common"


def names(face: str) -> Iterator[str]:
    """The names of ``common`` and of a face's rooms: those of its modules that have an ``__all__``."""
    for module, room in list(sys.modules.items()):
        if module == COMMON or module.startswith(f"{face}."):
            yield from getattr(room, "__all__", ())


def attribute(face: str, name: str) -> Any:
    """Of a face, what it has not got by itself: ``plt``, when it is first used.

    Raises AttributeError with the nearest names.
    """
    if name == "plt":
        return pyplot()
    if name.startswith("_"):  # Python itself asks for such names
        raise AttributeError(f"module {face!r} has no attribute {name!r}")
    nearest = get_close_matches(name, sys.modules[face].__all__, n=3, cutoff=0.5)
    hint = f"; the nearest names are {', '.join(nearest)}" if nearest else ""
    raise AttributeError(f"{name}: {face} has no such name (yet){hint}")
