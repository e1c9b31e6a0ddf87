"""Adapters: how the suite asks an implementation. Each module has an ``adapter``; docs/en/conformance.md says how to write one."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from runpy import run_path

from d2l_compat._shared.checks import message
from d2l_compat.conformance.files import Arrays, Case, load_cases
from d2l_compat.frameworks import FRAMEWORKS

# What a boolean mask can express, shared by all heads, and what every attention should survive.
MASKS = {"mask", "lengths", "lengths_per_query", "empty_rows", "large_scores"}
DTYPES = ("float32", "float64")
MEAN = "a query that sees no key gets a mean of values; the documentation does not say what it gets"
OURS = {f"d2l_compat.{framework.module}" for framework in FRAMEWORKS.values()}


@dataclass(frozen=True)
class Adapter:
    """An implementation, and how to ask it.

    ``offers`` has the features that it offers, by kind of case: it is asked the cases that need no others. ``compute``
    takes a case and returns NumPy arrays named as the case's answers: ``output``, and whatever else it has.
    ``differences`` explains answers that are known to follow another convention, by feature or name of a case.
    """

    title: str
    packages: tuple[str, ...]  # whose versions are shown
    offers: Mapping[str, AbstractSet[str]]
    compute: Callable[[Case], Arrays]
    dtypes: tuple[str, ...] = DTYPES
    differences: Mapping[str, str] = field(default_factory=dict)


def list_names() -> list[str]:
    """Return the names of all adapters: the project's own, then others."""
    others = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    return [*sorted(OURS), *(name for name in others if name != "ours")]


def load_adapter(name: str) -> Adapter:
    """Load an adapter by its name, or from a file whose name ends with .py; this imports its library."""
    if name.endswith(".py"):
        adapter = run_path(name).get("adapter")
    elif name == "d2l_compat.java":
        adapter = import_module(f"{__name__}._java").adapter
    elif name in OURS:
        adapter = import_module(f"{__name__}.ours").make_adapter(name.partition(".")[2])
    else:
        adapter = import_module(f"{__name__}.{name}").adapter
    if not isinstance(adapter, Adapter):
        raise TypeError(message(name, "no adapter", "a variable named adapter, an Adapter"))
    check_offers(adapter)
    return adapter


def check_offers(adapter: Adapter) -> None:
    """Raise ValueError for a kind or a feature that no case has, such as a misspelt one."""
    known: dict[str, set[str]] = {}
    for case in load_cases():
        known.setdefault(case.kind, set()).update(case.features)
    for kind, features in adapter.offers.items():
        if kind not in known:
            raise ValueError(message("kind", repr(kind), f"one of {', '.join(known)}"))
        # What all masks have in common may be offered for any kind.
        for feature in sorted(features - known[kind] - MASKS):
            need = f"one of {', '.join(sorted(known[kind]))}"
            raise ValueError(message(f"feature of {kind}", repr(feature), need))
