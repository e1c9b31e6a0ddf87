"""Fingerprints of notebooks: what the outputs that are stored in them depend on.

notebooks/fingerprints.json has one for each notebook, and is committed with it: a notebook whose fingerprint
is still the same need not be executed again, on any machine. build/executed.json has those of the notebooks
that this machine has executed. Neither says anything about a machine.
"""

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from modulefinder import ModuleFinder
from pathlib import Path

from packaging.requirements import Requirement

from d2l_compat.frameworks import FRAMEWORKS
from tools.run.files import write_whole
from tools.run.sharing import Cell, identity
from tools.weave.fragments import bare
from tools.weave.launch import PROJECT
from tools.weave.lessons import ROOT, Edition, LessonError

SHIM = ROOT / "d2l_compat"
JAVA = SHIM / "java"  # what a Java page imports is built from these sources


@dataclass(frozen=True)
class Fingerprint:
    """``sources`` is a digest of a notebook's code and of the shim's sources that it imports, all without
    comments; ``packages`` has the installed version of each package that the shim requires for it."""

    sources: str
    packages: dict[str, str]


def fingerprint(edition: Edition, cells: list[Cell]) -> Fingerprint:
    """Return the fingerprint of a notebook with these code cells, as everything is now."""
    suffix = edition.code.suffix
    digest = hashlib.sha256()
    for number, cell in enumerate(cells):
        digest.update("\0".join(map(str, identity(number, cell, suffix))).encode() + b"\0")
    for file in shim_sources(edition.framework):
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + _content(file))
    return Fingerprint(digest.hexdigest()[:32], installed_packages(edition.framework))


@cache
def shim_sources(framework: str) -> list[Path]:
    """Return the shim's sources that an import of a framework's module may run, found without running them."""
    if framework not in FRAMEWORKS:
        return []
    if not FRAMEWORKS[framework].is_python:
        return [JAVA / "pom.xml", *sorted((JAVA / "src" / "main").rglob("*.*"))]
    finder = ModuleFinder([str(ROOT)])
    finder.import_hook(f"{SHIM.name}.{FRAMEWORKS[framework].face}")
    paths = (getattr(module, "__file__", None) for module in finder.modules.values())
    modules = (Path(path) for path in paths if path)
    fonts = (SHIM / "_shared" / "fonts").glob("*.otf")
    return sorted({file for file in (*modules, *fonts) if file.is_relative_to(SHIM)})


@cache
def _content(file: Path) -> bytes:
    """Return a digest of a source file without its comments."""
    content = file.read_bytes()
    if file.suffix in (".py", ".java"):
        content = bare(content.decode(), file.suffix).encode()
    return hashlib.sha256(content).digest()


@cache
def required_packages(framework: str) -> list[Requirement]:
    """Return what pyproject.toml requires for a framework, on whatever Python and machine."""
    required = PROJECT["optional-dependencies"].get(framework, [])
    if framework not in FRAMEWORKS or FRAMEWORKS[framework].is_python:
        required = [*PROJECT["dependencies"], *required]
    return [*map(Requirement, required)]


@cache
def installed_packages(framework: str) -> dict[str, str]:
    """Return the version of each required package that is installed, of those that are needed here."""
    found = {}
    for package in required_packages(framework):
        if package.marker is None or package.marker.evaluate():
            with suppress(PackageNotFoundError):
                found[package.name] = version(package.name)
    return dict(sorted(found.items()))


@cache
def conditional_packages(framework: str) -> frozenset[str]:
    """Return those that only some Pythons or machines need."""
    return frozenset(each.name for each in required_packages(framework) if each.marker)


@cache
def locked_versions(framework: str) -> frozenset[tuple[str, str]]:
    """Return each (package, version) in a framework's lock, which may have several of a package: for each Python."""
    lock = ROOT / "requirements" / f"{framework}.lock"
    text = lock.read_text(encoding="utf-8") if lock.exists() else ""
    return frozenset(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))


class Fingerprints:
    """A file of fingerprints by notebook, one on each line. A file that cannot be read holds none."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def get(self, edition: Edition) -> Fingerprint | None:
        return self._read().get(str(edition))

    def update(self, new: dict[Edition, Fingerprint]) -> None:
        """Raise LessonError if the file cannot be written."""
        found = self._read() | {str(edition): its for edition, its in new.items()}
        lines = [
            f"{json.dumps(name)}: {json.dumps(asdict(its))}" for name, its in sorted(found.items())
        ]
        try:
            write_whole(self.file, "{\n" + ",\n".join(lines) + "\n}\n")
        except OSError as error:
            raise LessonError(f"cannot be written: {error.strerror}", self.file) from None

    def _read(self) -> dict[str, Fingerprint]:
        try:
            stored = json.loads(self.file.read_text(encoding="utf-8"))
            return {name: Fingerprint(**its) for name, its in stored.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
