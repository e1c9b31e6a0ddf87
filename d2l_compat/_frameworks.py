"""The frameworks there are a face for, and a clear word when one is missing."""

import re
from dataclasses import dataclass
from importlib import import_module, metadata
from types import ModuleType


@dataclass(frozen=True)
class Framework:
    module: str  # what is imported
    distribution: str  # what is installed
    minimum: str  # the oldest version that works

    @property
    def install(self) -> str:
        return f'pip install "{self.distribution}>={self.minimum}"'


# The keys name the extras in pyproject.toml, the code files of a lesson, and the notebooks.
FRAMEWORKS = {
    "pytorch": Framework(module="torch", distribution="torch", minimum="2.4"),
}


def require(name: str) -> ModuleType:
    """Import a framework, or say which version is needed and the command that installs it.

    Raises ImportError where the framework is missing, too old, or installed and broken.
    """
    framework = FRAMEWORKS[name]
    need = f"{framework.distribution} {framework.minimum} or newer is needed"
    try:
        found = metadata.version(framework.distribution)
    except metadata.PackageNotFoundError:
        found = None
    if found is not None and _release(found) < _release(framework.minimum):
        raise ImportError(f"{need}, and {found} is installed. Upgrade it: {framework.install}")
    try:
        return import_module(framework.module)
    except Exception as error:  # a broken binary raises nearly anything
        if found is None and isinstance(error, ModuleNotFoundError):
            raise ImportError(
                f"{need}, and it is not installed. Install it: {framework.install}"
            ) from None
        raise ImportError(
            f"{need}; {found or 'a copy without a version'} is installed, but importing it failed "
            f"({type(error).__name__}: {error}). Install it anew: "
            f"{framework.install} --force-reinstall"
        ) from error


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: 2.4.1+cpu is (2, 4, 1)."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(n) for n in numbers[0].split(".")) if numbers else ()
