"""Imports with a helpful error if a framework or another package is missing, too old or broken."""

import re
from importlib import import_module, metadata
from types import ModuleType

from d2l_compat.frameworks import FRAMEWORKS, Package


def require(name: str) -> None:
    """Import a framework; if that fails, report the version that is needed and the command that installs it.

    Raises ImportError if one of its packages is missing, too old or broken.
    """
    # Versions first: an old package may break the import of another one.
    for package in FRAMEWORKS[name].packages:
        _check_installed_version(package)
    for package in FRAMEWORKS[name].packages:
        _import(package)


def import_package(package: Package) -> ModuleType:
    """Import a package that only some names need; raise ImportError as :func:`require` does."""
    _check_installed_version(package)
    return _import(package)


def _check_installed_version(package: Package) -> None:
    installed = _installed_version(package)
    if installed is not None:
        _check_version(package, installed)


def _import(package: Package) -> ModuleType:
    installed = _installed_version(package)
    try:
        module = import_module(package.module)
    except Exception as error:  # a broken binary can raise nearly anything
        if installed is None and isinstance(error, ModuleNotFoundError):
            raise ImportError(
                f"{_format_requirement(package)}, and it is not installed.{package.note} "
                f"Install it: {package.install}"
            ) from None
        raise ImportError(
            f"{_format_requirement(package)}; {installed or 'a copy without a version'} is installed, but "
            f"importing it failed ({type(error).__name__}: {error}). Reinstall it: "
            f"{package.install} --force-reinstall"
        ) from error
    # Another distribution, such as one for GPUs, may provide the module, which has its own version.
    version = getattr(module, "__version__", None)
    if installed is None and isinstance(version, str):
        _check_version(package, version)
    return module


def _installed_version(package: Package) -> str | None:
    try:
        return metadata.version(package.distribution)
    except metadata.PackageNotFoundError:
        return None


def _check_version(package: Package, version: str) -> None:
    if _parse_release(version) < _parse_release(package.minimum):
        raise ImportError(
            f"{_format_requirement(package)}, and {version} is installed. Upgrade it: {package.install}"
        )


def _format_requirement(package: Package) -> str:
    return f"{package.distribution} {package.minimum} or newer is needed"


def _parse_release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (2, 4, 1) for 2.4.1+cpu."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(n) for n in numbers[0].split(".")) if numbers else ()
