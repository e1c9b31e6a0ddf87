"""What a face exports, from its rooms' own lists; and a clear word where a name is missing.

Some rooms are areas of the book: they are loaded when one of their names is first used.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

COMMON = "d2l_compat.common"
# What D2L's pages use although it begins with _, and the area that has it; a star imports none of it.
HALF_PRIVATE = {"_WikiTextDataset": "bert", "_get_batch_loss_bert": "bert", "_read_wiki": "bert"}
# Where D2L's packages have Pillow's module, which their pages open pictures with.
WITH_IMAGE = (".torch", ".paddle")


def list_names(face: str, areas: Sequence[str] = ()) -> Iterator[str]:
    """The names of ``common`` and of a face's rooms: those of its modules that have an ``__all__``."""
    for module, room in list(sys.modules.items()):
        is_room = module.startswith(f"{face}.") and module.removeprefix(f"{face}.") not in areas
        if is_room or module == COMMON:
            yield from getattr(room, "__all__", ())
    for area in areas:
        yield from _module_exports(face, area)


@cache
def _module_exports(face: str, area: str) -> list[str]:
    """Its ``__all__``, read without loading it: that may take a while, or need a package more."""
    spec = find_spec(f"{face}.{area}")
    return parse_exports(spec.loader.get_source(spec.name))  # type: ignore[union-attr]


def parse_exports(source: str) -> list[str]:
    """The list that a module's source sets ``__all__`` to; an empty one where it sets none."""
    for line in ast.parse(source).body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
            return ast.literal_eval(line.value)
    return []


def load_attribute(face: str, name: str, areas: Sequence[str] = ()) -> Any:
    """Of a face, what it has not got by itself: ``plt``, ``Image`` and the names of areas, when they are first used.

    Raises AttributeError with the nearest names.
    """
    if name == "plt":
        from d2l_compat._shared.plt import plt

        return plt
    if name == "Image" and face.endswith(WITH_IMAGE):
        from PIL import Image

        return Image
    if name == "__all__":
        return list(list_names(face, areas))
    if name.startswith("_") and HALF_PRIVATE.get(name) not in areas:  # Python itself asks for such
        raise AttributeError(f"module {face!r} has no attribute {name!r}")
    for area in areas:
        if name in _module_exports(face, area) or HALF_PRIVATE.get(name) == area:
            room = import_module(f"{face}.{area}")
            found = getattr(room, name)
            setattr(sys.modules[face], name, found)  # from now on it has it
            return found
    nearest = get_close_matches(name, list_names(face, areas), n=3, cutoff=0.5)
    hint = f"; the nearest names are {', '.join(nearest)}" if nearest else ""
    raise AttributeError(f"{name}: {face} has no such name (yet){hint}")
