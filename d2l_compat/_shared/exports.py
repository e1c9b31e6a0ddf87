"""The names that a framework's package exports, and helpful errors for names that it lacks.

They are the names in ``__all__`` of its modules, and those of ``borrowed``. Some modules are lazy: imported when one of
their names is first used.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from d2l_compat._shared import borrowed

COMMON_MODULE = "d2l_compat.common"
# Names with an underscore that D2L has, and their lazy modules. No star import includes them.
PRIVATE_NAMES = dict.fromkeys(
    (
        "_WikiTextDataset",
        "_get_batch_loss_bert",
        "_get_mlm_data_from_tokens",
        "_get_next_sentence",
        "_get_nsp_data_from_paragraph",
        "_pad_bert_inputs",
        "_read_wiki",
        "_replace_mlm_tokens",
    ),
    "bert",
)


def list_names(package: str, lazy_modules: Sequence[str] = ()) -> Iterator[str]:
    """Yield the names of ``common``, those of the modules of a framework's package, and the borrowed ones."""
    for name, module in list(sys.modules.items()):
        is_submodule = name.startswith(f"{package}.")
        is_lazy = name.removeprefix(f"{package}.") in lazy_modules
        if name == COMMON_MODULE or (is_submodule and not is_lazy):
            yield from getattr(module, "__all__", ())
    for lazy_module in lazy_modules:
        yield from _read_exports(package, lazy_module)
    yield from borrowed.list_installed(package)


@cache
def _read_exports(package: str, module: str) -> list[str]:
    """Return a module's ``__all__`` without importing it, which may be slow or need another package."""
    spec = find_spec(f"{package}.{module}")
    return parse_exports(spec.loader.get_source(spec.name))  # type: ignore[union-attr]


def parse_exports(source: str) -> list[str]:
    """Return the list that a module's source assigns to ``__all__``; an empty one if there is none."""
    for line in ast.parse(source).body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
            return ast.literal_eval(line.value)
    return []


def load_attribute(package: str, name: str, lazy_modules: Sequence[str] = ()) -> Any:
    """Return an attribute that a package provides on first use: a borrowed name, or a name of a lazy module.

    Raises AttributeError with the nearest names, and ImportError for a borrowed name whose package is not installed.
    """
    if name == "__all__":
        return list(list_names(package, lazy_modules))
    if name in borrowed.get_paths(package):
        value = borrowed.load(package, name)
        setattr(sys.modules[package], name, value)  # so that Python finds it next time
        return value
    if name.startswith("_") and PRIVATE_NAMES.get(name) not in lazy_modules:
        # Python itself looks such names up, so the error is Python's own.
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    for lazy_module in lazy_modules:
        if name in _read_exports(package, lazy_module) or PRIVATE_NAMES.get(name) == lazy_module:
            value = getattr(import_module(f"{package}.{lazy_module}"), name)
            setattr(sys.modules[package], name, value)  # so that Python finds it next time
            return value
    nearest = get_close_matches(name, list_names(package, lazy_modules), n=3, cutoff=0.5)
    hint = f"; the nearest names are {', '.join(nearest)}" if nearest else ""
    raise AttributeError(f"{name}: {package} has no such name (yet){hint}")
