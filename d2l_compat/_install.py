"""Installs what a framework's face needs, where a notebook service lacks it."""

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

# What the shim itself needs, whatever the framework; as in pyproject.toml.
OWN_DEPENDENCIES = (
    Package("numpy", "numpy", "1.26.4"),
    Package("matplotlib", "matplotlib", "3.9"),
    Package("filelock", "filelock", "3.16"),
)

# A version as pip reads it, and as most are spelt: a service's system has others, too.
VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([.][a-z0-9]+)*)?"
)


def install(framework: str) -> None:
    """Install the packages of a framework that are missing, with pip; do nothing where none is.

    What is installed already keeps its version, whatever it is: the import says if one is too old.

    Raises ValueError for a framework that there is no face for, RuntimeError with pip's own words
    where it cannot install, or where it must not: in our own environment, which the locks make, and
    in what executes notebooks from there, D2L_COMPAT_INSTALL is never.
    """
    if framework not in PYTHON_FRAMEWORKS:
        raise ValueError(f"framework {framework!r}: need one of {', '.join(PYTHON_FRAMEWORKS)}")
    needed = (
        *OWN_DEPENDENCIES,
        *PYTHON_FRAMEWORKS[framework].besides,
        *PYTHON_FRAMEWORKS[framework].packages,
    )
    for package in needed:
        if _is_missing(package.module):
            if os.environ.get("D2L_COMPAT_INSTALL") == "never":
                raise RuntimeError(
                    f"{package.distribution} is not installed, and D2L_COMPAT_INSTALL=never: "
                    f"run `make env FRAMEWORKS={framework}` in the project's folder"
                )
            _install(package)
            invalidate_caches()
            if package is SETUPTOOLS:
                # Else distutils is there from the next start on.
                import_module(package.module)


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ModuleNotFoundError:  # the package that it is in
        return True


def _install(package: Package) -> None:
    wanted = package.requirement
    is_alone = "--no-deps" in package.options
    fault = _pip(*package.options.split(), wanted)
    if "ResolutionImpossible" in fault:
        # It asks for another version of something that is there: which stays, and often serves.
        is_alone, fault = True, _pip("--no-deps", wanted)
    if is_alone and not fault and (missing := [*_missing(package.distribution)]):
        fault = _pip(*missing)
    if fault:
        raise RuntimeError(
            f"{package.distribution} could not be installed. To try it yourself: {package.install}"
            f"\n{fault}"
        )


def _missing(distribution: str) -> Iterator[str]:
    """What it needs and is not there in any version."""
    from packaging.requirements import Requirement  # comes with matplotlib

    for requirement in map(Requirement, metadata.requires(distribution) or ()):
        is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_needed and not any(metadata.distributions(name=requirement.name)):
            yield str(requirement)


def _pip(*wanted: str) -> str:
    """Install, and leave all that is there as it is; what pip says where it cannot, or nothing."""
    pins = [f"{name}=={version}\n" for name, version in _installed_versions().items()]
    with TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("".join(pins), encoding="utf-8")
        options = ("--quiet", "--constraint", str(constraints))
        run = subprocess.run(
            [sys.executable, "-m", "pip", "install", *options, *wanted],
            capture_output=True,
            text=True,
            check=False,
        )
    return (run.stderr.strip() or f"pip ended with {run.returncode}") if run.returncode else ""


def _installed_versions() -> dict[str, str]:
    """The version of each distribution: of the first, where two have a name, as in an import."""
    found: dict[str, str] = {}
    for each in metadata.distributions():
        if {"Name", "Version"} <= {*each.metadata} and VERSION.fullmatch(each.version):
            found.setdefault(re.sub(r"[-_.]+", "-", each.name).lower(), each.version)
    return found
