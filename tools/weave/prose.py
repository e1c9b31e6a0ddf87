"""A lesson's texts: Markdown that asks for code cells, and keeps some passages for some readers.

``<<name>>`` on a line of its own asks for the code cell of that name. Blocks, which end with ``:::``:

    :::{only} jax               for readers of these frameworks
    :::{live} clock-hands       a live figure of that name, and its caption: on the web site
    :::{slide}                  a slide; the prose that follows it is said to it

A slide asks for a cell as the text does (code and output), or for a part of it: ``<<name output>>``; and for
a live figure by ``<<live clock-hands>>``.
All texts of a lesson have the same headings, cells and blocks, in the order of the English one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS
from tools.weave.lessons import Edition, LessonError, choose, frameworks_of, languages_of

ASK = re.compile(r"<<\s*(.*?)\s*>>")
# What is not the id of a cell of prose; nbformat takes no id of more than 64 characters.
NAME = re.compile(r"(?!text-\d)[a-z][a-z0-9-]{,63}")
BLOCK = re.compile(r":::\s*\{(only|live|slide)\}\s*(.*)")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
HEADING = re.compile(r"#{1,6} ")
PARTS = "code", "output"  # of a cell, on a slide
LIVE = "live"  # what asks for a figure, in a text and on a slide
ORIGINAL = "en"  # the text the others follow


@dataclass(frozen=True)
class Block:
    """What a passage is kept for: ``only`` for frameworks, ``live`` or ``slide``."""

    kind: str
    line: int
    frameworks: tuple[str, ...] = ()  # of only
    name: str = ""  # of a live figure

    def __str__(self) -> str:
        return " ".join(["a block", f"{{{self.kind}}}", *self.frameworks, self.name]).rstrip()


@dataclass
class Passage:
    """A stretch of prose, or the name of a cell the text asks for, or of a live figure on a slide."""

    line: int
    prose: str = ""
    cell: str = ""
    parts: tuple[str, ...] = PARTS
    figure: str = ""
    block: Block | None = None

    @property
    def heading(self) -> str:
        """Its level, as #; or nothing."""
        found = HEADING.match(self.prose)
        return found[0].strip() if found else ""


def read_text(file: Path, framework: str) -> Iterator[Passage]:
    """The passages one framework's reader meets in a notebook, a new one at each heading.

    Raises LessonError.
    """
    is_for_the_notebook = [
        passage
        for passage in read_passages(file)
        if passage.block is None or framework in passage.block.frameworks
    ]
    yield from joined(is_for_the_notebook)


def joined(passages: list[Passage]) -> Iterator[Passage]:
    """Prose that blocks have parted is one passage again, up to the next heading or cell."""
    open_passage = Passage(line=1)
    for passage in passages:
        if passage.cell or passage.heading or not open_passage.prose:
            yield from _unless_empty(open_passage)
            open_passage = Passage(passage.line, passage.prose, block=passage.block)
        else:
            parts = (open_passage.prose.rstrip("\n"), passage.prose.lstrip("\n"))
            open_passage.prose = "\n\n".join(filter(None, parts))
        if passage.cell:
            yield passage
            open_passage = Passage(passage.line + 1)
    yield from _unless_empty(open_passage)


def read_passages(file: Path) -> Iterator[Passage]:
    """All that a text holds, piece by piece: a new one at each heading, cell and block.

    Raises LessonError.
    """
    passage = Passage(line=1)
    block: Block | None = None
    fence, fence_line = "", 0  # the open code fence or $$
    for number, line in enumerate(read(file).splitlines(), 1):
        if fence:
            closed = line.strip() == fence if fence != "$$" else line.rstrip().endswith("$$")
            fence = "" if closed else fence
        elif begun := BLOCK.fullmatch(line):
            if block is not None:
                fault = f"a block within the block of line {block.line}"
                raise LessonError(fault, file, number)
            yield passage
            block = _block(begun[1], begun[2].split(), file, number)
            passage = Passage(number + 1, block=block)
            continue
        elif line.rstrip() == ":::":
            if block is None:
                raise LessonError("the end of a block that was not begun", file, number)
            yield passage
            passage, block = Passage(number + 1), None
            continue
        elif mark := FENCE.match(line):
            fence, fence_line = mark[1], number
        elif line.startswith("$$") and not (len(line.strip()) > 2 and line.rstrip().endswith("$$")):
            fence, fence_line = "$$", number
        elif asked := ASK.fullmatch(line.rstrip()):
            yield passage
            yield _ask(asked[1], block, file, number)
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


def _block(kind: str, words: list[str], file: Path, line: int) -> Block:
    if kind == "only":
        # Also those that the lesson has no code file for yet.
        known = list(dict.fromkeys([*FRAMEWORKS, *frameworks_of(file.parent)]))
        asked = choose("framework", words or [""], known, file, line)
        return Block(kind, line, frameworks=tuple(asked))
    if kind == LIVE:
        return Block(kind, line, name=_figure(" ".join(words), file, line))
    if words:
        raise LessonError(f"a slide called {' '.join(words)!r}: its heading says that", file, line)
    return Block(kind, line)


def _figure(name: str, file: Path, line: int) -> str:
    figures = sorted(path.stem for path in file.parent.glob("live/*.js"))
    if name not in figures:
        fault = f"no live figure {name!r}; there are: {', '.join(figures)}"
        raise LessonError(fault, file, line)
    return name


def _ask(asked: str, block: Block | None, file: Path, line: int) -> Passage:
    is_on_a_slide = block is not None and block.kind == "slide"
    name, _, part = asked.partition(" ") if is_on_a_slide else (asked, "", "")
    if is_on_a_slide and name == LIVE:
        return Passage(line, figure=_figure(part, file, line), block=block)
    if not NAME.fullmatch(name):
        raise LessonError(f"a cell named {name!r}: need a name of a-z, 0-9 and -", file, line)
    if block is not None and block.kind == LIVE:
        raise LessonError(f"cell {name!r} in a block for the web site alone", file, line)
    if part and part not in PARTS:
        raise LessonError(f"no part {part!r} of a cell; there are: {', '.join(PARTS)}", file, line)
    return Passage(line, cell=name, parts=(part,) if part else PARTS, block=block)


def original(folder: Path) -> Path:
    """The text of a lesson that its others follow: the English one or, where there is none, the first."""
    languages = languages_of(folder)
    language = ORIGINAL if ORIGINAL in languages else next(iter(languages), ORIGINAL)
    return folder / f"text.{language}.md"


def title(text: Path) -> str:
    """Of a lesson: its text's first heading. Raises LessonError where there is none."""
    for passage in read_passages(text):
        if passage.heading == "#" and passage.block is None:
            return passage.prose.splitlines()[0].removeprefix("# ").strip()
    raise LessonError("no title: need a heading that begins with a single #", text)


def check_same_order(edition: Edition) -> None:
    """Raises LessonError where a text's cells, headings and blocks are not those of the original."""
    first = original(edition.folder)
    if edition.text == first:
        return
    there, here = (list(_outline(file)) for file in (first, edition.text))
    for expected, found in zip_longest(there, here, fillvalue=("the end", None)):
        if expected[0] != found[0]:
            place = "" if expected[1] is None else f" (line {expected[1]})"
            fault = f"{found[0]}, where {first.name} has {expected[0]}{place}"
            raise LessonError(fault, edition.text, found[1])


def _outline(file: Path) -> Iterator[tuple[str, int | None]]:
    """The blocks, the headings' levels and the names of the cells, in order, and their lines."""
    block = None
    for passage in read_passages(file):
        if passage.block and passage.block is not block:
            yield str(passage.block), passage.block.line
        block = passage.block
        if passage.cell:
            parts = "" if passage.parts == PARTS else f", its {passage.parts[0]}"
            yield f"cell {passage.cell!r}{parts}", passage.line
        elif passage.figure:
            yield f"live figure {passage.figure!r}", passage.line
        elif passage.heading:
            yield f"a heading {passage.heading}", passage.line


def _unless_empty(passage: Passage) -> Iterator[Passage]:
    leading = len(passage.prose) - len(passage.prose.lstrip("\n"))
    if prose := passage.prose.strip():
        yield Passage(passage.line + leading, prose, block=passage.block)


def read(file: Path) -> str:
    """Without a byte order mark, which some editors begin a file with. Raises LessonError."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LessonError(f"cannot be read: {error.strerror}", file) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LessonError("cannot be read: not UTF-8", file, line) from None
