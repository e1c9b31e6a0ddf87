"""Add toy lessons to a copy of the project, as an author adds a lesson."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS
from tests.elsewhere.services import copy_project
from tools.weave.lessons import LANGUAGES

TEMPLATES = Path(__file__).parent / "toy"
# Imports that the code for the device needs.
IMPORTS = {"tensorflow": "import tensorflow as tf"}


@dataclass(frozen=True)
class Toy:
    name: str
    languages: tuple[str, ...]
    frameworks: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"Toy {self.name}"

    @property
    def pattern(self) -> str:
        """A glob pattern that matches its notebooks."""
        return f"notebooks/*/*/{self.name}.ipynb"

    @property
    def notebooks(self) -> list[str]:
        return [
            f"notebooks/{language}/{framework}/{self.name}.ipynb"
            for language in self.languages
            for framework in self.frameworks
        ]


def make_toys(installed: list[str]) -> tuple[Toy, Toy]:
    """Return a lesson in two frameworks and one language, and one in all languages and installed frameworks."""
    first_and_last = dict.fromkeys([installed[0], installed[-1]])
    return (
        Toy("two-frameworks", ("zh-TW",), tuple(first_and_last)),
        Toy("all-frameworks", tuple(LANGUAGES), tuple(installed)),
    )


class Project:
    """A copy of the project, in its own repository."""

    output = ""  # of `make`

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        copy_project(root)
        subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)

    def add_lesson(self, toy: Toy) -> None:
        """Add a lesson's folder, and its line in lessons/chapter.toml."""
        folder = self.root / "lessons" / toy.name
        shutil.copytree(TEMPLATES, folder, ignore=shutil.ignore_patterns("__pycache__", "code.*"))
        for language in LANGUAGES.keys() - {*toy.languages}:
            (folder / f"text.{language}.md").unlink()
        for framework in toy.frameworks:
            extension = "py" if FRAMEWORKS[framework].is_python else "java"
            code = folder / f"code.{framework}.{extension}"
            shutil.copy(TEMPLATES / f"code.{extension}", code)
            _fill_code(code, framework)
        for file in filter(Path.is_file, folder.rglob("*")):
            _replace_placeholders(
                file,
                TITLE=toy.title,
                FRAMEWORKS=" ".join(toy.frameworks),
                # TensorFlow's code has the name of a device, which needs no translation.
                DEVICE=', "GPU"' if "tensorflow" in toy.frameworks else "",
            )
        chapter = self.root / "lessons" / "chapter.toml"
        lines, end, rest = chapter.read_text(encoding="utf-8").partition("]\n")
        chapter.write_text(f'{lines}    "{toy.name}",\n{end}{rest}', encoding="utf-8")

    @contextmanager
    def remove_lessons(self, lessons: list[str]) -> Iterator[None]:
        """Remove lessons temporarily, so that they are not executed."""
        chapter = self.root / "lessons" / "chapter.toml"
        text = chapter.read_text(encoding="utf-8")
        storage = self.root / "build" / "removed-lessons"
        storage.mkdir(parents=True)
        for name in lessons:
            (self.root / "lessons" / name).rename(storage / name)
        remaining_lines = [
            line for line in text.splitlines(True) if line.strip(' ",\n') not in lessons
        ]
        chapter.write_text("".join(remaining_lines), encoding="utf-8")
        try:
            yield
        finally:
            for name in lessons:
                (storage / name).rename(self.root / "lessons" / name)
            storage.rmdir()
            chapter.write_text(text, encoding="utf-8")

    def run_unchecked(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the copy's modules, in the copy."""
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, module: str, *arguments: str) -> str:
        """Run a module that must succeed; return its output."""
        process = self.run_unchecked(module, *arguments)
        output = f"{process.stdout}\n{process.stderr}"
        assert process.returncode == 0, f"{module} {' '.join(arguments)}\n{output}"
        return process.stdout

    def test(self, *arguments: str) -> int:
        """Run some of the copy's tests, none of which may fail; return how many passed."""
        output = self.run("pytest", "-q", "-p", "no:cacheprovider", *arguments)
        return int(re.search(r"(\d+) passed", output)[1])


def _fill_code(code: Path, framework: str) -> None:
    module = FRAMEWORKS[framework].module
    device_code, _ = FRAMEWORKS[framework].gpu_replacement
    if device_code in code.read_text(encoding="utf-8").replace("@MODULE@", module):
        # PyTorch's device code is the import itself, which the program already has.
        device_code = "None"
    _replace_placeholders(
        code, MODULE=module, IMPORT=IMPORTS.get(framework, ""), DEVICE=device_code
    )


def _replace_placeholders(file: Path, **contents: str) -> None:
    text = file.read_text(encoding="utf-8")
    for placeholder, content in contents.items():
        text = text.replace(f"@{placeholder}@", content)
    file.write_text(text, encoding="utf-8")
