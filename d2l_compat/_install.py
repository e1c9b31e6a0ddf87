"""Install the packages of a framework that a notebook service lacks."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches, metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from d2l_compat.frameworks import PYTHON_FRAMEWORKS, SETUPTOOLS, Package

# The shim's own dependencies, as in pyproject.toml.
OWN_DEPENDENCIES = (
    Package("numpy", "numpy", "1.26.4"),
    Package("matplotlib", "matplotlib", "3.9"),
    Package("filelock", "filelock", "3.16"),
)

# A version that pip accepts. Packages of the operating system may have others.
VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([.][a-z0-9]+)*)?"
)


def install(framework: str) -> None:
    """Install the missing packages of a framework with pip.

    Installed packages keep their versions; importing the framework fails if one is too old.

    Raises ValueError for an unknown framework, RuntimeError with pip's own message if pip fails, and RuntimeError
    if a package is missing and D2L_COMPAT_INSTALL=never, as in an environment installed from the locks.
    """
    if framework not in PYTHON_FRAMEWORKS:
        raise ValueError(f"framework {framework!r}: need one of {', '.join(PYTHON_FRAMEWORKS)}")
    packages = (
        *OWN_DEPENDENCIES,
        *PYTHON_FRAMEWORKS[framework].undeclared_dependencies,
        *PYTHON_FRAMEWORKS[framework].packages,
    )
    for package in packages:
        if _is_missing(package.module):
            if os.environ.get("D2L_COMPAT_INSTALL") == "never":
                raise RuntimeError(
                    f"{package.distribution} is not installed, and D2L_COMPAT_INSTALL=never: "
                    f"run `make env FRAMEWORKS={framework}` in the project's folder"
                )
            _install(package)
            invalidate_caches()
            if package is SETUPTOOLS:
                # Importing setuptools provides distutils now, instead of after the next start.
                import_module(package.module)


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ModuleNotFoundError:  # its parent package is missing
        return True


def _install(package: Package) -> None:
    without_dependencies = "--no-deps" in package.options
    error = _pip_install(*package.options.split(), package.requirement)
    if "ResolutionImpossible" in error:
        # It conflicts with an installed package. That is kept, since the two often work together.
        without_dependencies = True
        error = _pip_install("--no-deps", package.requirement)
    if without_dependencies and not error:
        missing = list(_find_missing_dependencies(package.distribution))
        error = _pip_install(*missing) if missing else ""
    if error:
        raise RuntimeError(
            f"{package.distribution} could not be installed. To try it yourself: {package.install}"
            f"\n{error}"
        )


def _find_missing_dependencies(distribution: str) -> Iterator[str]:
    """Yield each requirement of a distribution that is not installed in any version."""
    from packaging.requirements import Requirement  # comes with matplotlib

    for requirement in map(Requirement, metadata.requires(distribution) or ()):
        is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_needed and not any(metadata.distributions(name=requirement.name)):
            yield str(requirement)


def _pip_install(*arguments: str) -> str:
    """Run ``pip install`` without changing installed packages; return its error message, or ''."""
    pins = [f"{name}=={version}\n" for name, version in _list_installed_versions().items()]
    with TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("".join(pins), encoding="utf-8")
        options = ("--quiet", "--constraint", str(constraints))
        result = subprocess.run(
            [sys.executable, "-m", "pip", "install", *options, *arguments],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},  # else a code page on Windows
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    if result.returncode == 0:
        return ""
    return result.stderr.strip() or f"pip ended with {result.returncode}"


def _list_installed_versions() -> dict[str, str]:
    """Return each distribution's version; of two with the same name, that of the first, the one Python imports."""
    versions: dict[str, str] = {}
    for distribution in metadata.distributions():
        has_fields = {"Name", "Version"} <= {*distribution.metadata}
        if has_fields and VERSION.fullmatch(distribution.version):
            name = re.sub(r"[-_.]+", "-", distribution.name).lower()
            versions.setdefault(name, distribution.version)
    return versions
