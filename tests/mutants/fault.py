"""What a fault is, and how it gets into a copy of the project."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.weave.lessons import ROOT, Edition, editions
from tools.weave.notebooks import weave

Change = Callable[[NotebookNode, Path], None]  # of a notebook in a project's folder


class DoesNotFitError(Exception):
    """The fault is not one of today's files: it has to be written anew."""


@dataclass(frozen=True)
class Fault:
    framework: str
    name: str
    file: str  # below the project's folder
    old: str = ""  # stands once in the file
    new: str = ""
    change: Change | None = None  # of a notebook, instead of old and new

    def __str__(self) -> str:
        where = f", {self.lesson}" if self.lesson else ""
        return f"{self.framework}{where}: {self.name}"

    @property
    def place(self) -> str:
        places = {"lessons": "lesson", "d2l_compat": "shim", "notebooks": "stored"}
        return places[Path(self.file).parts[0]]

    @property
    def lesson(self) -> str:
        """That it is in; of a fault in the shim, none."""
        path = Path(self.file)
        return {"lesson": path.parts[1], "stored": path.stem, "shim": ""}[self.place]

    @property
    def cell(self) -> str:
        """Of a lesson's code, that it is in."""
        before, _, _ = (ROOT / self.file).read_text(encoding="utf-8").partition(self.old)
        return re.findall(r"^(?:#|//) %% (\S+)", before, re.MULTILINE)[-1]

    def notebooks(self) -> list[str]:
        """Those that may show it, below the project's folder."""
        if self.place == "stored":
            return [self.file]
        return [e.notebook.relative_to(ROOT).as_posix() for e in self.editions(ROOT)]

    def editions(self, root: Path) -> list[Edition]:
        """In the first language of each lesson that may show it."""
        first: dict[Path, Edition] = {}
        for edition in editions(frameworks=[self.framework], root=root):
            if self.lesson in ("", edition.folder.name):
                first.setdefault(edition.folder, edition)
        return [*first.values()]

    def put_into(self, project: Path) -> None:
        """Change the file there. Raises DoesNotFitError."""
        path = project / self.file
        if not path.exists():
            raise DoesNotFitError(f"{self}: there is no {self.file}")
        before = path.read_text(encoding="utf-8")
        if self.change:
            notebook = nbformat.reads(before, as_version=4)
            try:
                self.change(notebook, project)
            except DoesNotFitError as error:
                raise DoesNotFitError(f"{self}: {error}") from None
            after = nbformat.writes(notebook) + "\n"
        else:
            if (found := before.count(self.old)) != 1:
                raise DoesNotFitError(f"{self}: {self.old!r} is {found} times in {self.file}")
            after = before.replace(self.old, self.new)
        if after == before:
            raise DoesNotFitError(f"{self}: it changes nothing")
        path.write_text(after, encoding="utf-8")

    def weave_into(self, project: Path) -> None:
        """Give the notebooks that may show it the lesson's code, and leave them the outputs they have."""
        for edition in self.editions(project) if self.place == "lesson" else ():
            notebook = nbformat.read(edition.notebook, as_version=4)
            for stored, woven in zip(notebook.cells, weave(edition).cells, strict=True):
                stored.source = woven.source
            nbformat.write(notebook, edition.notebook)
