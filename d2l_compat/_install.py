"""Installs what a framework's face needs, where a notebook service lacks it."""

import subprocess
import sys
from collections.abc import Sequence
from importlib import invalidate_caches, metadata
from importlib.util import find_spec
from tempfile import NamedTemporaryFile

from d2l_compat._frameworks import FRAMEWORKS, Package

# What the shim itself needs, whatever the framework; as in pyproject.toml.
ITSELF = (Package("numpy", "numpy", "1.26.4"), Package("matplotlib", "matplotlib", "3.9"))


def install(framework: str) -> None:
    """Install the packages of a framework that are missing, with pip; do nothing where none is.

    What is installed already keeps its version, whatever it is: the import says if one is too old.

    Raises ValueError for a framework that there is no face for, RuntimeError with pip's own words
    where it cannot install.
    """
    if framework not in FRAMEWORKS:
        there_are = ", ".join(FRAMEWORKS)
        raise ValueError(f"framework {framework!r}: need one of {there_are}")
    missing = [p for p in (*ITSELF, *FRAMEWORKS[framework]) if find_spec(p.module) is None]
    for package in missing:
        _pip(package)
    invalidate_caches()


def _pip(package: Package) -> None:
    there_is = [f"{each.name}=={each.version}" for each in metadata.distributions() if each.name]
    with NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(there_is))
        constraints.flush()
        options: Sequence[str] = ("--quiet", "--constraint", constraints.name)
        wanted = (*package.options.split(), f"{package.distribution}>={package.minimum}")
        run = subprocess.run(
            [sys.executable, "-m", "pip", "install", *options, *wanted],
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode:
        raise RuntimeError(
            f"{package.distribution} could not be installed. To try it yourself: {package.install}"
            f"\n{run.stderr.strip()}"
        )
