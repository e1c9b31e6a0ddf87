"""A lesson's code files: programs in jupytext's percent format, their cells named: ``# %% name``.

They are in English; other languages' readers get them in words of their own (tools/weave/words.py).
"""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import jupytext

from tools.weave.lessons import LessonError
from tools.weave.prose import NAME, ORIGINAL, read
from tools.weave.words import read_words


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
    cells = _cells(file, read(file))
    if reader != ORIGINAL:
        given = [(cell.source, cell.line) for cell in cells]
        told = read_words(file.parent, reader).put_into(given, file)
        cells = [replace(c, source=source) for c, source in zip(cells, told, strict=True)]
    return {cell.name: cell for cell in cells}


@lru_cache(100)  # each language asks for the same, and jupytext takes its time
def _cells(file: Path, program: str) -> list[Cell]:
    if file.suffix not in LANGUAGES:
        raise LessonError(f"unknown language; there are: {', '.join(LANGUAGES)}", file)
    language = LANGUAGES[file.suffix]
    lines = program.splitlines(keepends=True)
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
    for start, end in pairwise([*starts, len(lines)]):
        # One by one: jupytext's own opinion of what begins a cell differs within strings.
        cell = jupytext.reads("".join(lines[start:end]), fmt=language.jupytext).cells[0]
        name = cell.metadata.get("title", "")
        if cell.cell_type != "code" or not NAME.fullmatch(name):
            fault = f"a cell named {name!r}: need {marker} NAME, of a-z, 0-9 and -"
            raise LessonError(fault, file, start + 1)
        if name in cells:
            fault = f"cell {name!r} is defined twice, before on line {cells[name].marker}"
            raise LessonError(fault, file, start + 1)
        source = cell.source.lstrip("\n")
        first = start + 2 + len(cell.source) - len(source)
        cells[name] = Cell(name, source, file, first, start + 1, cell.metadata.get("tags", []))
    return list(cells.values())
