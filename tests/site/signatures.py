"""What Python itself says of names: ``python -m tests.site.signatures MODULE NAME ...`` prints as JSON, by name,
the parameters of each signature; no signature where there is nothing to call.

A process of its own for each face, since not all frameworks get along in one.
"""

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import Parameter
from typing import Any, get_overloads

STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
FLAXS = "parent", "name"  # each of its layers has them


def signatures(module: object, name: str) -> list[list[str]]:
    """Without ``self``, and with the stars of Python."""
    getattr(module, name.partition(".")[0])  # loads its area
    owner, found = None, module
    for part in name.split("."):
        owner, found = found, inspect.getattr_static(found, part)
    if inspect.isclass(found):
        return _of_class(found)
    return [_named(found)[inspect.isclass(owner) :]] if callable(found) else []


def _of_class(found: type) -> list[list[str]]:
    """What it is made with; not the arguments that are its framework's own."""
    init: Any = inspect.getattr_static(found, "__init__")
    if inspect.isfunction(init) and (forms := get_overloads(init)):
        return [_named(form)[1:] for form in forms]
    if is_dataclass(found):
        # In their order, but those last that go by keyword; a layer's own __init__ may name none of them.
        ours = [each for each in fields(found) if each.init and each.name not in FLAXS]
        by_keyword = [each.name for each in ours if each.kw_only]
        in_order = [each.name for each in ours if not each.kw_only]
        return [[*in_order, *(["*"] if by_keyword else []), *by_keyword]]
    is_ours = inspect.isfunction(init) and init.__module__.startswith("d2l_compat.")
    return [_named(init)[1:] if is_ours else []]


def _named(form: Callable[..., Any]) -> list[str]:
    names: list[str] = []
    for each in inspect.signature(form).parameters.values():
        if each.kind is Parameter.KEYWORD_ONLY and not any(name[0] == "*" for name in names):
            names.append("*")
        names.append(STARS.get(each.kind, "") + each.name)
    return names


if __name__ == "__main__":
    face = import_module(sys.argv[1])
    print(json.dumps({name: signatures(face, name) for name in sys.argv[2:]}))
