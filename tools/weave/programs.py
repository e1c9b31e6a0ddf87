"""A lesson's code files: programs in jupytext's percent format, their cells named: ``# %% name``.

A cell that prints words may follow once more for another language's readers:
``# %% name language="zh-TW"``.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import jupytext

from tools.weave.lessons import LANGUAGES as READERS
from tools.weave.lessons import LessonError, choose, languages_of
from tools.weave.prose import NAME, ORIGINAL, read


@dataclass(frozen=True)
class Language:
    """A programming language: how a code file marks its cells, and the kernel that runs it."""

    comment: str
    jupytext: str
    kernelspec: dict[str, str]


LANGUAGES = {
    ".py": Language(
        "#",
        "py:percent",
        {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    ),
    ".java": Language(
        "//",
        "java:percent",
        {"display_name": "Java (jjava)", "language": "java", "name": "java"},
    ),
}


@dataclass
class Cell:
    """A code cell, and where it stands in the code file."""

    name: str
    source: str
    file: Path
    line: int  # of its first line of code
    marker: int  # the line that names it
    tags: list[str] = field(default_factory=list)


def read_code(file: Path, reader: str = ORIGINAL) -> dict[str, Cell]:
    """The named cells of a code file, in order, as a ``reader`` of this language meets them.

    Raises LessonError.
    """
    if file.suffix not in LANGUAGES:
        raise LessonError(f"unknown language; there are: {', '.join(LANGUAGES)}", file)
    language = LANGUAGES[file.suffix]
    lines = read(file).splitlines(keepends=True)
    marker = f"{language.comment} %%"
    starts = [i for i, line in enumerate(lines) if re.match(rf"{language.comment}\s*%%", line)]
    for i in starts:
        if not lines[i].startswith(marker):
            raise LessonError(f"a cell marker: need {marker}, with one blank", file, i + 1)
    for i, line in enumerate(lines[: starts[0] if starts else None]):
        if line.strip() and not line.startswith(language.comment):
            raise LessonError(
                f"code before the first cell: need {marker} NAME above it", file, i + 1
            )
    cells: dict[str, Cell] = {}
    given: dict[tuple[str, str], int] = {}  # name and language, and where
    for start, end in pairwise([*starts, len(lines)]):
        # One by one: jupytext's own opinion of what begins a cell differs within strings.
        cell = jupytext.reads("".join(lines[start:end]), fmt=language.jupytext).cells[0]
        name = cell.metadata.get("title", "")
        if cell.cell_type != "code" or not NAME.fullmatch(name):
            fault = f"a cell named {name!r}: need {marker} NAME, of a-z, 0-9 and -"
            raise LessonError(fault, file, start + 1)
        written_for = cell.metadata.get("language", "")
        if (name, written_for) in given:
            fault = f"cell {name!r} is defined twice, before on line {given[name, written_for]}"
            raise LessonError(fault, file, start + 1)
        given[name, written_for] = start + 1
        if written_for:
            # Also those that the lesson has no text in yet.
            known = list(dict.fromkeys([*READERS, *languages_of(file.parent)]))
            choose("language", [written_for], known, file, start + 1)
            if name not in cells:
                fault = f"cell {name!r} in {written_for}: need one for all other readers above it"
                raise LessonError(fault, file, start + 1)
            if written_for != reader:
                continue
        source = cell.source.lstrip("\n")
        first = start + 2 + len(cell.source) - len(source)
        cells[name] = Cell(name, source, file, first, start + 1, cell.metadata.get("tags", []))
    return cells
