"""Plan the execution of a page, whose notebooks in several languages share a kernel and most of their cells.

Cells that differ only in comments and docstrings count as one cell, which is executed once. A cell whose strings differ
is executed in each language, one after the other. So it must be repeatable: it shows the same and leaves the same
state each time. If such a cell only defines functions or classes, the definitions are executed again, in the right
language, before a cell that names them.

The runner (tools/run/runner.py) and nbval (tools/run/page_kernel.py) both use this plan.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tools.weave.fragments import strip_comments, strip_strings

BODY = "\0"  # stands for braces and their content
NAME = re.compile(r"\w+")
JAVA_DEFINITION = re.compile(r"(?:class|record|interface|enum)\s+(\w+)|(\w+)\s*\(")
# The beginning of a statement that has a body but defines nothing.
JAVA_STATEMENT = r"\s*(?:do|for|if|switch|synchronized|try|while)\b"


class Identity(NamedTuple):
    """The identity of a page's cell; languages with the same identity share one execution."""

    number: int  # among the code cells, from 0
    name: str
    program: str  # without comments and docstrings


class CodeCell(NamedTuple):
    name: str
    source: str


class Step(NamedTuple):
    """One execution of a cell, or of definitions in a cell's language."""

    identity: Identity
    notebook: int  # index among the page's notebooks
    source: str
    is_definition: bool = False


def identify_cell(number: int, cell: CodeCell, suffix: str) -> Identity:
    return Identity(number, cell.name, strip_comments(cell.source, suffix))


@dataclass
class Definitions:
    """A cell of definitions, in each language."""

    names: set[str]
    steps: dict[int, Step]  # by notebook
    current: int  # the notebook whose definitions were executed last

    def redefine_for(self, step: Step) -> Iterator[Step]:
        """Yield the definitions again if a step in another language names one of them."""
        if step.notebook != self.current and self.names.intersection(NAME.findall(step.source)):
            self.current = step.notebook
            definition = self.steps.get(step.notebook, self.steps[0])
            yield definition._replace(notebook=step.notebook, is_definition=True)


def plan_steps(notebooks: Sequence[Sequence[CodeCell]], suffix: str) -> Iterator[Step]:
    """Yield all steps of a page's execution: each cell in turn, once for each distinct version."""
    all_definitions: list[Definitions] = []
    for steps in _group_cells(notebooks, suffix):
        if len(steps) == 1:
            yield steps[0]
            continue
        for step in steps.values():
            for definitions in all_definitions:
                yield from definitions.redefine_for(step)
            yield step
        if names := find_definitions(steps[0].source, suffix):
            all_definitions.append(Definitions(names, steps, current=max(steps)))


def _group_cells(notebooks: Sequence[Sequence[CodeCell]], suffix: str) -> Iterator[dict[int, Step]]:
    """Yield the distinct versions of each cell; keys are the first notebook with the version.

    A cell that is not a translation of the first notebook's cell is left out.
    """
    for number, original in enumerate(notebooks[0]):
        versions: dict[Identity, Step] = {}
        for notebook, cells in enumerate(notebooks):
            if number < len(cells) and _is_translation(original, cells[number], suffix):
                identity = identify_cell(number, cells[number], suffix)
                versions.setdefault(identity, Step(identity, notebook, cells[number].source))
        yield {step.notebook: step for step in versions.values()}


def _is_translation(one: CodeCell, other: CodeCell, suffix: str) -> bool:
    return one.name == other.name and (
        one.source == other.source
        or strip_strings(one.source, suffix) == strip_strings(other.source, suffix)
    )


def find_definitions(source: str, suffix: str) -> set[str]:
    """Return the functions and classes of a cell that only defines some, otherwise an empty set."""
    if suffix == ".py":
        with suppress(SyntaxError):
            body = ast.parse(source).body
            names = {part.name for part in body if isinstance(part, ast.FunctionDef | ast.ClassDef)}
            return names if len(names) == len(body) else set()
        return set()
    code = re.sub(r'"(?:\\.|[^"\\])*"', "", strip_comments(source, suffix))
    num_replaced = 1
    while num_replaced:  # from the innermost braces outwards
        code, num_replaced = re.subn(r"\{[^{}]*\}", BODY, code)
    definition = rf"(?!{JAVA_STATEMENT})[^;={{}}{BODY}]+{BODY}"
    if not re.fullmatch(rf"(?:{definition})+\s*", code):
        return set()
    return {name for names in JAVA_DEFINITION.findall(code) for name in names if name}


def get_page_key(notebook: Path | str) -> tuple[str, ...]:
    """Return the parts of a notebook's path without its language: the same for all notebooks of a page."""
    parts = Path(notebook).parts
    has_language = parts[-4:-3] == ("notebooks",)
    return (*parts[:-3], *parts[-2:]) if has_language else parts
