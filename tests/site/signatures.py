"""``python -m tests.site.signatures MODULE NAME ...``: print the signatures that Python reports, as JSON.

For each name it prints the parameters of each signature, or no signature if it is not callable. This is a program
because not all frameworks can be imported into one process.
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
FLAX_FIELDS = "parent", "name"  # each layer of Flax has them


def list_signatures(module: object, name: str) -> list[list[str]]:
    """Return the parameters of each signature, without ``self`` and with Python's stars."""
    getattr(module, name.partition(".")[0])  # imports the module that defines the name
    owner, value = None, module
    for part in name.split("."):
        owner, value = value, inspect.getattr_static(value, part)
    if isinstance(value, classmethod):
        value = value.__func__
    if inspect.isclass(value):
        return _list_constructors(value)
    if not callable(value):
        return []
    num_self = 1 if inspect.isclass(owner) else 0
    return [_list_parameters(value)[num_self:]]


def _list_constructors(class_: type) -> list[list[str]]:
    """Return the parameters of each constructor, without those that its framework adds."""
    init: Any = inspect.getattr_static(class_, "__init__")
    if inspect.isfunction(init) and (overloads := get_overloads(init)):
        return [_list_parameters(overload)[1:] for overload in overloads]
    if is_dataclass(class_):
        # Keyword-only fields come last.
        own_fields = [each for each in fields(class_) if each.init and each.name not in FLAX_FIELDS]
        keyword_only = [each.name for each in own_fields if each.kw_only]
        positional = [each.name for each in own_fields if not each.kw_only]
        return [[*positional, *(["*"] if keyword_only else []), *keyword_only]]
    is_ours = inspect.isfunction(init) and init.__module__.startswith("d2l_compat.")
    return [_list_parameters(init)[1:] if is_ours else []]


def _list_parameters(function: Callable[..., Any]) -> list[str]:
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is Parameter.KEYWORD_ONLY and not any(name[0] == "*" for name in names):
            names.append("*")
        names.append(STARS.get(parameter.kind, "") + parameter.name)
    return names


if __name__ == "__main__":
    module = import_module(sys.argv[1])
    print(json.dumps({name: list_signatures(module, name) for name in sys.argv[2:]}))
