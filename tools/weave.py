"""Text + code -> notebook.

The text is Markdown. On a line of its own, ``<<name>>`` asks for the code cell of that name;

    :::{only} jax
    ...
    :::

keeps a passage for some frameworks; an image that stands beside the text goes into the
notebook, so that the notebook is whole wherever it is opened. The code is a program in
jupytext's percent format, its cells named: ``# %% name``. A cell that prints words may follow
once more for another language's readers: ``# %% name language="zh-TW"``.

All texts of a lesson ask for the same cells under the same headings, in the order of the
English one.
"""

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise, zip_longest
from pathlib import Path

import jupytext
from nbformat import NotebookNode, v4

from tools.lessons import Edition, LessonError, choose

ASK = re.compile(r"<<\s*(.*?)\s*>>")
# What is not the id of a cell of prose; nbformat takes no id of more than 64 characters.
NAME = re.compile(r"(?!text-\d)[a-z][a-z0-9-]{,63}")
ONLY = re.compile(r":::\s*\{only\}\s*(.*)")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
HEADING = re.compile(r"#{1,6} ")
# An image, or a code fence, in which nothing is one.
IMAGE = re.compile(
    r"^\s*(?P<fence>`{3,}|~{3,}).*?^\s*(?P=fence)\s*?$|!\[(?P<alt>[^]]*)\]\((?P<file>[^():]+\.svg)\)",
    re.DOTALL | re.MULTILINE,
)


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
ORIGINAL = "en"  # the text the others follow


@dataclass
class Cell:
    """A code cell, and where it stands in the code file."""

    name: str
    source: str
    file: Path
    line: int  # of its first line of code
    marker: int  # the line that names it
    tags: list[str] = field(default_factory=list)


@dataclass
class Passage:
    """A stretch of prose, or the name of a cell the text asks for."""

    line: int
    prose: str = ""
    cell: str = ""


def weave(edition: Edition) -> NotebookNode:
    """The notebook of an edition, not executed yet. Raises LessonError."""
    check_same_order(edition)
    cells = read_code(edition.code, edition.language)
    language = LANGUAGES[edition.code.suffix]
    notebook = v4.new_notebook(
        metadata={
            "kernelspec": language.kernelspec,
            "language_info": {"name": language.kernelspec["language"]},
            "d2l_compat": {
                "note": "Woven by `make` from the lesson's text and code: edit those, not this.",
                "lesson": edition.folder.name,
                "language": edition.language,
                "framework": edition.framework,
            },
        }
    )
    asked: dict[str, int] = {}
    for passage in read_text(edition.text, edition.framework):
        if not passage.cell:
            number = sum(cell.cell_type == "markdown" for cell in notebook.cells) + 1
            prose = _embed_images(passage, edition.text)
            notebook.cells.append(v4.new_markdown_cell(prose, id=f"text-{number:02}"))
            continue
        name = passage.cell
        if name in asked:
            fault = f"cell {name!r} is asked for twice, before on line {asked[name]}"
            raise LessonError(fault, edition.text, passage.line)
        if name not in cells:
            fault = f"unknown cell {name!r}: {edition.code.name} has none of that name"
            raise LessonError(fault, edition.text, passage.line)
        asked[name] = passage.line
        cell = cells[name]
        metadata = {"tags": cell.tags} if cell.tags else {}
        notebook.cells.append(v4.new_code_cell(cell.source, id=name, metadata=metadata))
    for name, cell in cells.items():
        if name not in asked:
            fault = f"unused cell {name!r}: {edition.text.name} does not ask for it"
            raise LessonError(fault, cell.file, cell.marker)
    return notebook


def read_code(file: Path, reader: str = ORIGINAL) -> dict[str, Cell]:
    """The named cells of a code file, in order, as a ``reader`` of this language meets them.

    Raises LessonError.
    """
    if file.suffix not in LANGUAGES:
        raise LessonError(f"unknown language; there are: {', '.join(LANGUAGES)}", file)
    language = LANGUAGES[file.suffix]
    lines = _read(file).splitlines(keepends=True)
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
            choose("language", [written_for], file.parent.glob("text.*.md"), file, start + 1)
            if name not in cells:
                fault = f"cell {name!r} in {written_for}: need one for all other readers above it"
                raise LessonError(fault, file, start + 1)
            if written_for != reader:
                continue
        source = cell.source.lstrip("\n")
        first = start + 2 + len(cell.source) - len(source)
        cells[name] = Cell(name, source, file, first, start + 1, cell.metadata.get("tags", []))
    return cells


def read_text(file: Path, framework: str) -> Iterator[Passage]:
    """The passages one framework's reader meets, a new one at each heading. Raises LessonError."""
    passage = Passage(line=1)
    only: int | None = None  # where the open block began
    fence, fence_line = "", 0  # the open code fence or $$
    keep = True
    for number, line in enumerate(_read(file).splitlines(), 1):
        if fence:
            closed = line.strip() == fence if fence != "$$" else line.rstrip().endswith("$$")
            fence = "" if closed else fence
        elif block := ONLY.fullmatch(line):
            if only is not None:
                raise LessonError(f"a block within the block of line {only}", file, number)
            asked = block[1].split() or [""]
            codes = file.parent.glob("code.*.*")
            only, keep = number, framework in choose("framework", asked, codes, file, number)
            continue
        elif line.rstrip() == ":::":
            if only is None:
                raise LessonError("the end of a block that was not begun", file, number)
            only, keep = None, True
            continue
        elif mark := FENCE.match(line):
            fence, fence_line = mark[1], number
        elif line.startswith("$$") and not (len(line.strip()) > 2 and line.rstrip().endswith("$$")):
            fence, fence_line = "$$", number
        elif ask := ASK.fullmatch(line):
            if not NAME.fullmatch(ask[1]):
                fault = f"a cell named {ask[1]!r}: need a name of a-z, 0-9 and -"
                raise LessonError(fault, file, number)
            if keep:
                yield from _unless_empty(passage)
                yield Passage(number, cell=ask[1])
                passage = Passage(number + 1)
            continue
        elif HEADING.match(line) and keep:
            yield from _unless_empty(passage)
            passage = Passage(number)
        if keep:
            passage.prose += line + "\n"
    if fence:
        raise LessonError(f"an unclosed block: {fence} is never closed", file, fence_line)
    if only is not None:
        raise LessonError("an unclosed block: its ::: is missing", file, only)
    yield from _unless_empty(passage)


def check_same_order(edition: Edition) -> None:
    """Raises LessonError where a text's cells and headings are not the English one's, or, where
    there is none, those of the first."""
    english = edition.text.with_name(f"text.{ORIGINAL}.md")
    texts = sorted(edition.folder.glob("text.*.md"))
    original = english if english in texts else next(iter(texts), edition.text)
    if edition.text == original:
        return
    there, here = (list(_outline(file, edition.framework)) for file in (original, edition.text))
    for expected, found in zip_longest(there, here, fillvalue=("the end", None)):
        if expected[0] != found[0]:
            place = "" if expected[1] is None else f" (line {expected[1]})"
            fault = f"{found[0]}, where {original.name} has {expected[0]}{place}"
            raise LessonError(fault, edition.text, found[1])


def _outline(file: Path, framework: str) -> Iterator[tuple[str, int | None]]:
    """The headings' levels and the names of the cells, in order, and their lines."""
    for passage in read_text(file, framework):
        if passage.cell:
            yield f"cell {passage.cell!r}", passage.line
        elif heading := HEADING.match(passage.prose):
            yield f"a heading {heading[0].strip()}", passage.line


def _unless_empty(passage: Passage) -> Iterator[Passage]:
    leading = len(passage.prose) - len(passage.prose.lstrip("\n"))
    if prose := passage.prose.strip():
        yield Passage(passage.line + leading, prose)


def _embed_images(passage: Passage, text: Path) -> str:
    def embed(image: re.Match[str]) -> str:
        if image["fence"]:
            return image[0]
        line = passage.line + passage.prose[: image.start()].count("\n")
        drawing = text.parent / image["file"]
        try:
            data = b64encode(drawing.read_bytes()).decode()
        except OSError as error:
            fault = f"image {image['file']}: {error.strerror}"
            raise LessonError(fault, text, line) from None
        alt = escape(" ".join(image["alt"].split()))
        return f'<img src="data:image/svg+xml;base64,{data}" alt="{alt}">'

    return IMAGE.sub(embed, passage.prose)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise LessonError(f"cannot be read: {error.strerror}", file) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LessonError("cannot be read: not UTF-8", file, line) from None
