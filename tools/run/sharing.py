"""What notebooks share that differ in their language alone: a page, its kernel, and most of its cells.

Cells that are the same but for comments and docstrings are one cell, executed once. One whose strings differ is
executed in each language, one after the other, and so has to be repeatable: to show the same and leave the same
behind. What such a cell defines, if it does nothing else, is defined again in the language of a cell that names it.

The runner (tools/run/runner.py) and nbval (tools/run/page_kernel.py) both ask here what is executed, and when.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tools.weave.fragments import bare, wordless

BODY = "\0"  # stands for what is in braces
NAME = re.compile(r"\w+")
DEFINED = re.compile(r"(?:class|record|interface|enum)\s+(\w+)|(\w+)\s*\(")  # in Java
STATEMENT = r"\s*(?:do|for|if|switch|synchronized|try|while)\b"  # has a body, and defines nothing


class Identity(NamedTuple):
    """Cells of a page that have this in common are one cell, in several languages."""

    number: int  # its place among the code cells, from 0
    name: str
    program: str  # its source, without comments and docstrings


class Cell(NamedTuple):
    name: str
    source: str


class Turn(NamedTuple):
    """An execution: of this cell, or of definitions that it may need in its language."""

    identity: Identity
    notebook: int  # among those of the page
    source: str
    is_definition: bool = False


def identity(number: int, cell: Cell, suffix: str) -> Identity:
    return Identity(number, cell.name, bare(cell.source, suffix))


@dataclass
class Definitions:
    """A cell of them, in each language."""

    names: set[str]
    turns: dict[int, Turn]  # by notebook
    spoken: int  # the notebook in whose language they are now

    def before(self, turn: Turn) -> Iterator[Turn]:
        """Once more, in the language of a turn that names one of them."""
        if turn.notebook != self.spoken and self.names.intersection(NAME.findall(turn.source)):
            self.spoken = turn.notebook
            again = self.turns.get(turn.notebook, self.turns[0])
            yield again._replace(notebook=turn.notebook, is_definition=True)


def turns(notebooks: Sequence[Sequence[Cell]], suffix: str) -> Iterator[Turn]:
    """All that is executed for a page: its cells in each language, place by place."""
    definitions: list[Definitions] = []
    for here in _by_place(notebooks, suffix):
        if len(here) == 1:
            yield here[0]
            continue
        for turn in here.values():
            yield from chain.from_iterable(each.before(turn) for each in definitions)
            yield turn
        if names := defined(here[0].source, suffix):
            definitions.append(Definitions(names, here, spoken=max(here)))


def _by_place(notebooks: Sequence[Sequence[Cell]], suffix: str) -> Iterator[dict[int, Turn]]:
    """The distinct cells of each place, by the first notebook that has them.

    What is not the first notebook's cell in other words is none of its counterparts.
    """
    for place, first in enumerate(notebooks[0]):
        found: dict[Identity, Turn] = {}
        for number, cells in enumerate(notebooks):
            if place < len(cells) and _is_in_other_words(first, cells[place], suffix):
                one = identity(place, cells[place], suffix)
                found.setdefault(one, Turn(one, number, cells[place].source))
        yield {turn.notebook: turn for turn in found.values()}


def _is_in_other_words(one: Cell, other: Cell, suffix: str) -> bool:
    return one.name == other.name and (
        one.source == other.source or wordless(one.source, suffix) == wordless(other.source, suffix)
    )


def defined(source: str, suffix: str) -> set[str]:
    """The functions and classes of a cell that only defines such: it may be executed at any time."""
    if suffix == ".py":
        with suppress(SyntaxError):
            body = ast.parse(source).body
            found = {part.name for part in body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
            return found if len(found) == len(body) else set()
        return set()
    code, count = re.sub(r'"(?:\\.|[^"\\])*"', "", bare(source, suffix)), 1
    while count:
        code, count = re.subn(r"\{[^{}]*\}", BODY, code)
    is_all = re.fullmatch(rf"(?:(?!{STATEMENT})[^;={{}}{BODY}]+{BODY})+\s*", code)
    return {name for pair in DEFINED.findall(code) for name in pair if name} if is_all else set()


def page_of(notebook: Path | str) -> tuple[str, ...]:
    """What a notebook has in common with those in other languages: its path without it."""
    parts = Path(notebook).parts
    is_one_of_many = parts[-4:-3] == ("notebooks",)
    return (*parts[:-3], *parts[-2:]) if is_one_of_many else parts
