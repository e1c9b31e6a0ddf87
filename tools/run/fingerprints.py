"""Compute and store fingerprints: hashes of everything that a notebook's outputs depend on.

notebooks/fingerprints.json is committed with the notebooks: a notebook whose fingerprint is unchanged need not be
executed again, on any machine. build/executed.json has the fingerprints of the notebooks that this machine has
executed. Fingerprints do not depend on the machine.

The font of Chinese words in figures does not count, since a figure keeps its letters as outlines when the font gets new
ones. Only the characters that it lacks count: once it has them, the page must be executed again.
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

from fontTools.ttLib import TTFont
from packaging.requirements import Requirement

from d2l_compat._shared.fonts import FONT
from d2l_compat.frameworks import FRAMEWORKS
from tools.run.files import write_atomically
from tools.run.sharing import CodeCell, identify_cell
from tools.weave.fragments import find_chinese, strip_comments
from tools.weave.launch import PROJECT
from tools.weave.lessons import ROOT, LessonError, Notebook

SHIM = ROOT / "d2l_compat"
JAVA = SHIM / "java"  # sources of the classes that Java's notebooks import


@dataclass(frozen=True)
class Fingerprint:
    """The fingerprint of a notebook."""

    # Digest of its code, of the shim's sources that it imports (both without comments) and of what the font lacks.
    sources: str
    packages: dict[str, str]  # installed version of each package that the shim requires for it


def compute_fingerprint(notebook: Notebook, cells: list[CodeCell]) -> Fingerprint:
    """Return the current fingerprint of a notebook with these code cells."""
    suffix = notebook.code.suffix
    digest = hashlib.sha256()
    for number, cell in enumerate(cells):
        digest.update("\0".join(map(str, identify_cell(number, cell, suffix))).encode() + b"\0")
    for file in find_shim_sources(notebook.framework):
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + _digest(file))
    if suffix == ".py":  # Java's figures have letters as text
        digest.update("".join(find_missing_characters(cells, suffix)).encode())
    return Fingerprint(digest.hexdigest()[:32], list_installed_packages(notebook.framework))


@cache
def find_shim_sources(framework: str) -> list[Path]:
    """Return the shim's sources that a framework's module may import, without importing any."""
    if framework not in FRAMEWORKS:
        return []
    if not FRAMEWORKS[framework].is_python:
        return [JAVA / "pom.xml", *sorted((JAVA / "src" / "main").rglob("*.*"))]
    finder = ModuleFinder([str(ROOT)])
    finder.import_hook(f"{SHIM.name}.{FRAMEWORKS[framework].module}")
    paths = [getattr(module, "__file__", None) for module in finder.modules.values()]
    modules = [Path(path) for path in paths if path]
    return sorted({file for file in modules if file.is_relative_to(SHIM)})


def find_missing_characters(cells: list[CodeCell], suffix: str) -> list[str]:
    """Return the Chinese characters in strings of cells that the font of the figures lacks."""
    characters = {each for cell in cells for each in find_chinese(cell.source, suffix)}
    return sorted(characters - list_font_characters()) if characters else []


@cache
def list_font_characters() -> frozenset[str]:
    return frozenset(map(chr, TTFont(FONT).getBestCmap()))


@cache
def _digest(file: Path) -> bytes:
    """Return a digest of a source file without its comments."""
    content = file.read_bytes()
    if file.suffix in (".py", ".java"):
        content = strip_comments(content.decode(), file.suffix).encode()
    return hashlib.sha256(content).digest()


@cache
def list_required_packages(framework: str) -> list[Requirement]:
    """Return a framework's requirements in pyproject.toml, for all Pythons and machines."""
    requirements = PROJECT["optional-dependencies"].get(framework, [])
    if framework not in FRAMEWORKS or FRAMEWORKS[framework].is_python:
        requirements = [*PROJECT["dependencies"], *requirements]
    return [*map(Requirement, requirements)]


@cache
def list_installed_packages(framework: str) -> dict[str, str]:
    """Return the version of each installed package that is required on this machine."""
    versions = {}
    for package in list_required_packages(framework):
        if package.marker is None or package.marker.evaluate():
            with suppress(PackageNotFoundError):
                versions[package.name] = version(package.name)
    return dict(sorted(versions.items()))


@cache
def list_conditional_packages(framework: str) -> frozenset[str]:
    """Return the packages that only some Pythons or machines need."""
    packages = list_required_packages(framework)
    return frozenset(package.name for package in packages if package.marker)


@cache
def read_locked_versions(framework: str) -> frozenset[tuple[str, str]]:
    """Return each (package, version) in a framework's lock, which may have one version for each Python."""
    lock = ROOT / "requirements" / f"{framework}.lock"
    text = lock.read_text(encoding="utf-8") if lock.exists() else ""
    return frozenset(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))


class Fingerprints:
    """A file of fingerprints by notebook, one on each line. An unreadable file counts as empty."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def get(self, notebook: Notebook) -> Fingerprint | None:
        return self._read().get(str(notebook))

    def update(self, changes: dict[Notebook, Fingerprint]) -> None:
        """Add or replace fingerprints. Raise LessonError if the file cannot be written."""
        fingerprints = self._read() | {str(notebook): each for notebook, each in changes.items()}
        lines = [
            f"{json.dumps(name)}: {json.dumps(asdict(fingerprint))}"
            for name, fingerprint in sorted(fingerprints.items())
        ]
        try:
            write_atomically(self.file, "{\n" + ",\n".join(lines) + "\n}\n")
        except OSError as error:
            raise LessonError(f"cannot be written: {error.strerror}", self.file) from None

    def _read(self) -> dict[str, Fingerprint]:
        try:
            stored = json.loads(self.file.read_text(encoding="utf-8"))
            return {name: Fingerprint(**values) for name, values in stored.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
