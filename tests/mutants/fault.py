"""Describe a fault, and put it into a copy of the project."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.weave.lessons import ROOT, Notebook, list_notebooks
from tools.weave.notebooks import weave

Change = Callable[[NotebookNode, Path], None]  # changes a notebook, given the project's folder


class OutdatedFaultError(Exception):
    """The fault does not fit the current files and must be rewritten."""


@dataclass(frozen=True)
class Fault:
    framework: str
    name: str
    file: str  # relative to the project's folder
    old: str = ""  # occurs once in the file
    new: str = ""
    change: Change | None = None  # for a notebook, instead of old and new

    def __str__(self) -> str:
        where = f", {self.lesson}" if self.lesson else ""
        return f"{self.framework}{where}: {self.name}"

    @property
    def kind(self) -> str:
        """The kind of the fault's file: "lesson" (its code), "shim", or "stored" (a notebook)."""
        kinds = {"lessons": "lesson", "d2l_compat": "shim", "notebooks": "stored"}
        return kinds[Path(self.file).parts[0]]

    @property
    def lesson(self) -> str:
        """The lesson's name; "" for a fault in the shim."""
        path = Path(self.file)
        return {"lesson": path.parts[1], "stored": path.stem, "shim": ""}[self.kind]

    @property
    def cell(self) -> str:
        """The name of the cell that has the fault, in a lesson's code."""
        before, _, _ = (ROOT / self.file).read_text(encoding="utf-8").partition(self.old)
        return re.findall(r"^(?:#|//) %% (\S+)", before, re.MULTILINE)[-1]

    def list_notebook_files(self) -> list[str]:
        """Return the notebooks that may show the fault, relative to the project's folder."""
        if self.kind == "stored":
            return [self.file]
        return [each.path.relative_to(ROOT).as_posix() for each in self.find_notebooks(ROOT)]

    def find_notebooks(self, root: Path) -> list[Notebook]:
        """Return the notebook, in the first language, of each lesson that may show the fault."""
        by_lesson: dict[Path, Notebook] = {}
        for notebook in list_notebooks(frameworks=[self.framework], root=root):
            if self.lesson in ("", notebook.lesson.name):
                by_lesson.setdefault(notebook.lesson, notebook)
        return [*by_lesson.values()]

    def put_into(self, project: Path) -> None:
        """Change the file in a copy of the project. Raise OutdatedFaultError if the fault no longer fits."""
        path = project / self.file
        if not path.exists():
            raise OutdatedFaultError(f"{self}: there is no {self.file}")
        before = path.read_text(encoding="utf-8")
        if self.change:
            content = nbformat.reads(before, as_version=4)
            try:
                self.change(content, project)
            except OutdatedFaultError as error:
                raise OutdatedFaultError(f"{self}: {error}") from None
            after = nbformat.writes(content) + "\n"
        else:
            if (count := before.count(self.old)) != 1:
                raise OutdatedFaultError(
                    f"{self}: {self.old!r} occurs {count} times in {self.file}"
                )
            after = before.replace(self.old, self.new)
        if after == before:
            raise OutdatedFaultError(f"{self}: it changes nothing")
        path.write_text(after, encoding="utf-8")

    def weave_into(self, project: Path) -> None:
        """Copy a lesson's code with the fault into its notebooks, which keep their outputs."""
        if self.kind != "lesson":
            return
        for notebook in self.find_notebooks(project):
            content = nbformat.read(notebook.path, as_version=4)
            for stored, woven in zip(content.cells, weave(notebook).cells, strict=True):
                stored.source = woven.source
            nbformat.write(content, notebook.path)
