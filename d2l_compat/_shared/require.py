"""A clear word where a framework, or another package, is missing, too old or broken."""

import re
from importlib import import_module, metadata
from types import ModuleType

from d2l_compat.frameworks import FRAMEWORKS, Package


def require(name: str) -> None:
    """Import a framework, or say which version is needed and the command that installs it.

    Raises ImportError where one of its packages is missing, too old, or installed and broken.
    """
    # Old ones first: what they break may be another package's import.
    for package in FRAMEWORKS[name].packages:
        _check_installed(package)
    for package in FRAMEWORKS[name].packages:
        _import(package)


def import_package(package: Package) -> ModuleType:
    """A package that only some names need, when they do. Raises the same."""
    _check_installed(package)
    return _import(package)


def _check_installed(package: Package) -> None:
    found = _installed(package)
    if found is not None:
        _check_age(package, found)


def _import(package: Package) -> ModuleType:
    found = _installed(package)
    try:
        module = import_module(package.module)
    except Exception as error:  # a broken binary raises nearly anything
        if found is None and isinstance(error, ModuleNotFoundError):
            raise ImportError(
                f"{_need(package)}, and it is not installed.{package.note} "
                f"Install it: {package.install}"
            ) from None
        raise ImportError(
            f"{_need(package)}; {found or 'a copy without a version'} is installed, but importing "
            f"it failed ({type(error).__name__}: {error}). Install it anew: "
            f"{package.install} --force-reinstall"
        ) from error
    # Under another distribution's name, such as one for GPUs, only the module knows its age.
    version = getattr(module, "__version__", None)
    if found is None and isinstance(version, str):
        _check_age(package, version)
    return module


def _installed(package: Package) -> str | None:
    try:
        return metadata.version(package.distribution)
    except metadata.PackageNotFoundError:
        return None


def _check_age(package: Package, found: str) -> None:
    if _release(found) < _release(package.minimum):
        raise ImportError(
            f"{_need(package)}, and {found} is installed. Upgrade it: {package.install}"
        )


def _need(package: Package) -> str:
    return f"{package.distribution} {package.minimum} or newer is needed"


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: 2.4.1+cpu is (2, 4, 1)."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(n) for n in numbers[0].split(".")) if numbers else ()
