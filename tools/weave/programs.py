"""Read a lesson's code files, in jupytext's percent format, whose cells have names: ``# %% name``.

Comments and strings are in English; tools/weave/words.py translates them for readers of other languages.
"""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import jupytext

from tools.weave.lessons import LessonError
from tools.weave.prose import CELL_NAME, ORIGINAL, read_file
from tools.weave.words import read_translations


@dataclass(frozen=True)
class ProgrammingLanguage:
    """The syntax of cells in a code file, and the kernel that runs them."""

    comment: str
    jupytext: str
    kernelspec: dict[str, str]


PROGRAMMING_LANGUAGES = {
    ".py": ProgrammingLanguage(
        "#",
        "py:percent",
        {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    ),
    ".java": ProgrammingLanguage(
        "//",
        "java:percent",
        {"display_name": "Java (jjava)", "language": "java", "name": "java"},
    ),
}


@dataclass
class ProgramCell:
    """A code cell, and its location in the code file."""

    name: str
    source: str
    file: Path
    line: int  # the first line of code
    marker_line: int  # the line that names the cell
    tags: list[str] = field(default_factory=list)


def read_code(file: Path, language: str = ORIGINAL) -> dict[str, ProgramCell]:
    """Return a code file's cells by name, in order and translated. Raise LessonError if the file is invalid."""
    cells = _parse_cells(file, read_file(file))
    if language != ORIGINAL:
        sources = [(cell.source, cell.line) for cell in cells]
        translated = read_translations(file.parent, language).translate_cells(sources, file)
        cells = [replace(c, source=source) for c, source in zip(cells, translated, strict=True)]
    return {cell.name: cell for cell in cells}


@lru_cache(100)  # each language needs the same cells, and jupytext is slow
def _parse_cells(file: Path, program: str) -> list[ProgramCell]:
    if file.suffix not in PROGRAMMING_LANGUAGES:
        raise LessonError(f"unknown language; there are: {', '.join(PROGRAMMING_LANGUAGES)}", file)
    language = PROGRAMMING_LANGUAGES[file.suffix]
    lines = program.splitlines(keepends=True)
    marker = f"{language.comment} %%"
    starts = [i for i, line in enumerate(lines) if re.match(rf"{language.comment}\s*%%", line)]
    for i in starts:
        if not lines[i].startswith(marker):
            raise LessonError(f"a cell marker: need {marker}, with one space", file, i + 1)
    for i, line in enumerate(lines[: starts[0] if starts else None]):
        if line.strip() and not line.startswith(language.comment):
            message = f"code before the first cell: need {marker} NAME above it"
            raise LessonError(message, file, i + 1)
    cells: dict[str, ProgramCell] = {}
    for start, end in pairwise([*starts, len(lines)]):
        # Parse cell by cell: in a whole program, jupytext would also find cell markers in strings.
        cell = jupytext.reads("".join(lines[start:end]), fmt=language.jupytext).cells[0]
        name = cell.metadata.get("title", "")
        if cell.cell_type != "code" or not CELL_NAME.fullmatch(name):
            message = f"a cell named {name!r}: need {marker} NAME, of a-z, 0-9 and -"
            raise LessonError(message, file, start + 1)
        if name in cells:
            message = f"cell {name!r} is defined twice, first on line {cells[name].marker_line}"
            raise LessonError(message, file, start + 1)
        source = cell.source.lstrip("\n")
        first_line = start + 2 + len(cell.source) - len(source)
        tags = cell.metadata.get("tags", [])
        cells[name] = ProgramCell(name, source, file, first_line, start + 1, tags)
    return list(cells.values())
