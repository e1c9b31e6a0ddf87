"""Read a lesson's texts: Markdown that inserts code cells, with blocks for some readers only.

``<<name>>`` on a separate line inserts the code cell of that name. Blocks end with ``:::``:

    :::{only} jax               for readers of these frameworks
    :::{live} clock-hands       the caption of that live figure, which only the web site shows
    :::{slide}                  a slide; the prose after the block is its speaker's notes

On a slide, ``<<name>>`` inserts a cell's code and output, ``<<name output>>`` only its output, and
``<<live clock-hands>>`` a live figure.

All texts of a lesson have the same headings, cells and blocks, in the order of the English text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS
from tools.weave.lessons import LessonError, Notebook, choose, find_frameworks, find_languages

CELL_REQUEST = re.compile(r"<<\s*(.*?)\s*>>")
# Differs from the ids of prose cells; nbformat allows at most 64 characters.
CELL_NAME = re.compile(r"(?!text-\d)[a-z][a-z0-9-]{,63}")
BLOCK = re.compile(r":::\s*\{(only|live|slide)\}\s*(.*)")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
HEADING = re.compile(r"#{1,6} ")
PARTS = "code", "output"  # of a cell, on a slide
LIVE = "live"  # inserts a live figure, in a text or on a slide
ORIGINAL = "en"  # the language of the text that the others follow


@dataclass(frozen=True)
class Block:
    """A block that contains passages. Its kind is ``only`` (for some frameworks), ``live`` or ``slide``."""

    kind: str
    line: int
    frameworks: tuple[str, ...] = ()  # for kind ``only``
    name: str = ""  # of the figure, for kind ``live``

    def __str__(self) -> str:
        return " ".join(["a block", f"{{{self.kind}}}", *self.frameworks, self.name]).rstrip()


@dataclass
class Passage:
    """A piece of a text: prose, or the name of a cell, or the name of a live figure on a slide."""

    line: int
    prose: str = ""
    cell: str = ""
    parts: tuple[str, ...] = PARTS
    figure: str = ""
    block: Block | None = None

    @property
    def heading(self) -> str:
        """The level of the passage's heading, such as "##", or ""."""
        match = HEADING.match(self.prose)
        return match[0].strip() if match else ""


def read_text(file: Path, framework: str) -> Iterator[Passage]:
    """Yield the passages of one framework's notebook, split at each heading. Raise LessonError if it is invalid."""
    passages = [
        passage
        for passage in read_passages(file)
        if passage.block is None or framework in passage.block.frameworks
    ]
    yield from join_prose(passages)


def join_prose(passages: list[Passage]) -> Iterator[Passage]:
    """Join prose that was split by blocks, up to the next heading or cell."""
    open_passage = Passage(line=1)
    for passage in passages:
        if passage.cell or passage.heading or not open_passage.prose:
            yield from _yield_unless_empty(open_passage)
            open_passage = Passage(passage.line, passage.prose, block=passage.block)
        else:
            parts = (open_passage.prose.rstrip("\n"), passage.prose.lstrip("\n"))
            open_passage.prose = "\n\n".join(filter(None, parts))
        if passage.cell:
            yield passage
            open_passage = Passage(passage.line + 1)
    yield from _yield_unless_empty(open_passage)


def read_passages(file: Path) -> Iterator[Passage]:
    """Yield all passages of a text, split at each heading, cell and block. Raise LessonError if the text is invalid."""
    passage = Passage(line=1)
    block: Block | None = None
    fence = ""  # the open code fence or $$
    fence_line = 0
    for number, line in enumerate(read_file(file).splitlines(), 1):
        if fence:
            is_end = line.strip() == fence if fence != "$$" else line.rstrip().endswith("$$")
            fence = "" if is_end else fence
        elif opening := BLOCK.fullmatch(line):
            if block is not None:
                message = f"a block within the block of line {block.line}"
                raise LessonError(message, file, number)
            yield passage
            block = _parse_block(opening[1], opening[2].split(), file, number)
            passage = Passage(number + 1, block=block)
            continue
        elif line.rstrip() == ":::":
            if block is None:
                raise LessonError("the end of a block without a beginning", file, number)
            yield passage
            passage = Passage(number + 1)
            block = None
            continue
        elif mark := FENCE.match(line):
            fence, fence_line = mark[1], number
        elif line.startswith("$$") and not (len(line.strip()) > 2 and line.rstrip().endswith("$$")):
            fence, fence_line = "$$", number
        elif request := CELL_REQUEST.fullmatch(line.rstrip()):
            yield passage
            yield _parse_request(request[1], block, file, number)
            passage = Passage(number + 1, block=block)
            continue
        elif HEADING.match(line):
            yield passage
            passage = Passage(number, block=block)
        passage.prose += line + "\n"
    if fence:
        raise LessonError(f"an unclosed block: {fence} is never closed", file, fence_line)
    if block is not None:
        raise LessonError("an unclosed block: its ::: is missing", file, block.line)
    yield passage


def _parse_block(kind: str, words: list[str], file: Path, line: int) -> Block:
    if kind == "only":
        # Includes frameworks for which this lesson has no code file yet.
        available = list(dict.fromkeys([*FRAMEWORKS, *find_frameworks(file.parent)]))
        frameworks = choose("framework", words or [""], available, file, line)
        return Block(kind, line, frameworks=tuple(frameworks))
    if kind == LIVE:
        return Block(kind, line, name=_check_live_figure(" ".join(words), file, line))
    if words:
        message = f"a slide named {' '.join(words)!r}: write the name as a heading"
        raise LessonError(message, file, line)
    return Block(kind, line)


def _check_live_figure(name: str, file: Path, line: int) -> str:
    """Return the name if the lesson has such a live figure. Raise LessonError otherwise."""
    figures = sorted(path.stem for path in file.parent.glob("live/*.js"))
    if name not in figures:
        message = f"no live figure {name!r}; there are: {', '.join(figures)}"
        raise LessonError(message, file, line)
    return name


def _parse_request(request: str, block: Block | None, file: Path, line: int) -> Passage:
    is_on_a_slide = block is not None and block.kind == "slide"
    name, _, part = request.partition(" ") if is_on_a_slide else (request, "", "")
    if is_on_a_slide and name == LIVE:
        return Passage(line, figure=_check_live_figure(part, file, line), block=block)
    if not CELL_NAME.fullmatch(name):
        raise LessonError(f"a cell named {name!r}: need a name of a-z, 0-9 and -", file, line)
    if block is not None and block.kind == LIVE:
        raise LessonError(f"cell {name!r} in a block for the web site only", file, line)
    if part and part not in PARTS:
        raise LessonError(f"no part {part!r} of a cell; there are: {', '.join(PARTS)}", file, line)
    return Passage(line, cell=name, parts=(part,) if part else PARTS, block=block)


def find_original(lesson: Path) -> Path:
    """Return the text that a lesson's translations follow: the English text or, if missing, the first."""
    languages = find_languages(lesson)
    language = ORIGINAL if ORIGINAL in languages else next(iter(languages), ORIGINAL)
    return lesson / f"text.{language}.md"


def read_title(text: Path) -> str:
    """Return the first heading of a lesson's text. Raise LessonError if there is none."""
    for passage in read_passages(text):
        if passage.heading == "#" and passage.block is None:
            return passage.prose.splitlines()[0].removeprefix("# ").strip()
    raise LessonError("no title: need a heading that begins with a single #", text)


def check_same_order(notebook: Notebook) -> None:
    """Raise LessonError if a text's cells, headings and blocks differ from the original's."""
    original = find_original(notebook.lesson)
    if notebook.text == original:
        return
    pairs = zip_longest(
        _list_outline(original), _list_outline(notebook.text), fillvalue=("the end", None)
    )
    for (expected, expected_line), (actual, line) in pairs:
        if expected != actual:
            location = "" if expected_line is None else f" (line {expected_line})"
            message = f"{actual}, where {original.name} has {expected}{location}"
            raise LessonError(message, notebook.text, line)


def _list_outline(file: Path) -> list[tuple[str, int | None]]:
    """Return each block, cell and heading with its line; a heading is represented by its level."""
    outline: list[tuple[str, int | None]] = []
    block = None
    for passage in read_passages(file):
        if passage.block and passage.block is not block:
            outline.append((str(passage.block), passage.block.line))
        block = passage.block
        if passage.cell:
            parts = "" if passage.parts == PARTS else f", its {passage.parts[0]}"
            outline.append((f"cell {passage.cell!r}{parts}", passage.line))
        elif passage.figure:
            outline.append((f"live figure {passage.figure!r}", passage.line))
        elif passage.heading:
            outline.append((f"a heading {passage.heading}", passage.line))
    return outline


def _yield_unless_empty(passage: Passage) -> Iterator[Passage]:
    leading = len(passage.prose) - len(passage.prose.lstrip("\n"))
    if prose := passage.prose.strip():
        yield Passage(passage.line + leading, prose, block=passage.block)


def read_file(file: Path) -> str:
    """Return a file's text without a byte order mark. Raise LessonError if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LessonError(f"cannot be read: {error.strerror}", file) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LessonError("cannot be read: not UTF-8", file, line) from None
