"""Make ``d2l`` mean this package: ``import d2l_compat.alias``.

Afterwards ``from d2l import torch as d2l``, ``import d2l.jax`` and the like import the packages in
``d2l_compat``, even if an upstream ``d2l`` is installed. :func:`remove` undoes this. In Jupyter,
``%load_ext d2l_compat`` and ``%unload_ext d2l_compat`` do the same.

Some of D2L's pages import MXNet before ``d2l``. MXNet is patched then too, as by ``d2l_compat.mxnet``.
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
    """Finder that precedes all others, and loads our modules in place of ``d2l`` and its submodules."""

    def __init__(self) -> None:
        self.upstream_modules: dict[str, ModuleType] = {}  # imported before the installation

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == PYTHON_FRAMEWORKS["mxnet"].module:
            return _find_mxnet(fullname, path)
        if not _is_upstream(fullname):
            return None
        package = fullname.split(".")[1:2]
        if package and package[0] not in MODULES:
            # There is no name=, since Python would then replace the message by a shorter one.
            raise ModuleNotFoundError(
                f"{fullname}: d2l_compat stands in for d2l, and has {', '.join(MODULES)}"
            )
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if spec.name == UPSTREAM:
            return None  # Python makes an empty module
        name = OURS + spec.name.removeprefix(UPSTREAM)
        module = import_module(name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore a module's original spec, which Python has replaced by the one for ``d2l``."""
        spec = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state
        if module.__name__ == UPSTREAM:
            vars(module).update(__version__=__version__, __getattr__=_raise_attribute_error)


def _find_mxnet(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, path)
    if spec is not None and spec.loader is not None:
        execute = spec.loader.exec_module

        def execute_with_removed_names(module: ModuleType) -> None:
            # The name is computed, since a literal import would add the module to every page's fingerprint.
            with import_module(f"d2l_compat._{name}_numpy").add_removed_names():
                execute(module)

        setattr(spec.loader, "exec_module", execute_with_removed_names)  # noqa: B010
    return spec


def _raise_attribute_error(name: str) -> Any:
    """Raise AttributeError, since names such as ``d2l.train_ch3`` are in a framework's module."""
    if name.startswith("_"):  # Python itself looks such names up
        raise AttributeError(f"module {UPSTREAM!r} has no attribute {name!r}")
    first, *others = MODULES
    raise AttributeError(
        f"{UPSTREAM}.{name}: a framework's names are in its own module; need "
        f"`from d2l import {first} as d2l` (or {', '.join(others)})"
    )


_alias = _Alias()


def install() -> None:
    """Make ``d2l`` mean this package; a second call changes nothing."""
    if _alias not in sys.meta_path:
        _alias.upstream_modules = _pop_modules()
        sys.meta_path.insert(0, _alias)


def remove() -> None:
    """Make ``d2l`` mean what it meant before, and restore the modules imported from it."""
    if _alias in sys.meta_path:
        sys.meta_path.remove(_alias)
        _pop_modules()
        sys.modules.update(_alias.upstream_modules)


def _pop_modules() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _is_upstream(name)}


def _is_upstream(name: str) -> bool:
    return name == UPSTREAM or name.startswith(f"{UPSTREAM}.")


install()
