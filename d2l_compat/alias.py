"""``import d2l_compat.alias``: from then on ``d2l`` means this package.

``from d2l import torch as d2l``, ``import d2l.jax`` and the like give the faces of ``d2l_compat``,
also where an upstream ``d2l`` is installed. :func:`remove` gives back what was there before. In Jupyter
``%load_ext d2l_compat`` and ``%unload_ext d2l_compat`` do the same.

Some of D2L's pages import MXNet before ``d2l``: it is found as always, and imported as our face imports it.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from d2l_compat import __version__
from d2l_compat.frameworks import PYTHON_FRAMEWORKS

UPSTREAM = "d2l"
OURS = "d2l_compat"
MODULES = [framework.module for framework in PYTHON_FRAMEWORKS.values()]


class _Alias(MetaPathFinder, Loader):
    """Finds ``d2l`` and all within it, before any other finder, and loads our module instead."""

    def __init__(self) -> None:
        self.before: dict[str, ModuleType] = {}  # what had been imported from upstream

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == PYTHON_FRAMEWORKS["mxnet"].module:
            return _mxnet(fullname, path)
        if not _is_upstreams(fullname):
            return None
        face = fullname.split(".")[1:2]
        if face and face[0] not in MODULES:
            # Without the module's name, or Python would say less.
            raise ModuleNotFoundError(
                f"{fullname}: d2l_compat stands in for d2l, and has {', '.join(MODULES)}"
            )
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if spec.name == UPSTREAM:
            return None  # an empty one, by the name that asks for faces
        name = OURS + spec.name.removeprefix(UPSTREAM)
        module = import_module(name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run already; but the import that is under way has put its own name on it."""
        spec = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state
        if module.__name__ == UPSTREAM:
            vars(module).update(__version__=__version__, __getattr__=_is_in_the_faces)


def _mxnet(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, path)
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def with_removed_names(module: ModuleType) -> None:
            # A computed name: no other framework's program needs it.
            with import_module(f"d2l_compat._{name}_numpy").removed_names():
                execute(module)

        setattr(spec.loader, "exec_module", with_removed_names)  # noqa: B010
    return spec


def _is_in_the_faces(name: str) -> Any:
    """Of ``d2l`` itself: it has no names, although readers look for them there."""
    if name.startswith("_"):  # Python itself asks for such names
        raise AttributeError(f"module {UPSTREAM!r} has no attribute {name!r}")
    first, *others = MODULES
    raise AttributeError(
        f"{UPSTREAM}.{name}: a framework's names are in its own module; need "
        f"`from d2l import {first} as d2l` (or {', '.join(others)})"
    )


_alias = _Alias()


def install() -> None:
    """Let ``d2l`` mean this package; a second call changes nothing."""
    if _alias not in sys.meta_path:
        _alias.before = _taken_out()
        sys.meta_path.insert(0, _alias)


def remove() -> None:
    """Let ``d2l`` mean what it meant before, with the modules that had been imported from it."""
    if _alias in sys.meta_path:
        sys.meta_path.remove(_alias)
        _taken_out()
        sys.modules.update(_alias.before)


def _taken_out() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _is_upstreams(name)}


def _is_upstreams(name: str) -> bool:
    return name == UPSTREAM or name.startswith(f"{UPSTREAM}.")


install()
