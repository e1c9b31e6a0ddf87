"""Makes notebooks of pages: weaves them, executes what is not as it was, and writes what is new.

Several pages at a time, and what is on disk stays whole whatever happens.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.compare import agreement
from tools.compare.numbers import tolerance
from tools.compare.pictures import complete
from tools.run.execute import ExecutionError, execute
from tools.run.kernels import neutral_environment
from tools.run.languages import fault_of
from tools.run.records import Record, Shown, write_whole
from tools.run.sharing import Cell, Identity, Turn, identity, turns
from tools.weave.lessons import Edition, LessonError, Page
from tools.weave.notebooks import weave
from tools.weave.programs import read_code
from tools.weave.words import read_words

# IPython's and the kernels' way to say where in a cell it happened.
LINE_IN_CELL = re.compile(r"Cell In\[(\d+)\], line (\d+)")

Progress = Callable[[Page, int, int], None]  # page, cells done, cells in all


@dataclass
class Result:
    """Of an edition: its notebook is ``unchanged``, ``woven`` anew with what is known of its cells,
    ``written`` after an execution, or has ``failed``."""

    edition: Edition
    cells: int = 0
    seconds: float | None = None  # of the execution, which the languages of a page share
    outcome: str = "failed"
    fault: str = ""  # of a failed one: where, and what happened


class Draft:
    """A page, woven in its languages. What cannot be woven is a fault in the results."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.results = {edition: Result(edition) for edition in page.editions}
        self.woven: dict[Edition, NotebookNode] = {}
        for edition, result in self.results.items():
            with fault_into(result):
                self.woven[edition] = weave(edition)
                result.cells = len(code_cells(self.woven[edition]))

    @property
    def results_of_woven(self) -> list[Result]:
        return [self.results[edition] for edition in self.woven]

    @property
    def kernelspec(self) -> NotebookNode:
        return next(iter(self.woven.values())).metadata.kernelspec

    @property
    def suffix(self) -> str:
        return self.page.editions[0].code.suffix

    def turns(self) -> list[Turn]:
        """All that is to be executed, in order."""
        return list(turns([*map(cells, self.woven.values())], self.suffix))

    def edition(self, turn: Turn) -> Edition:
        """Where it is met first."""
        return list(self.woven)[turn.notebook]


async def make(
    pages: list[Page],
    jobs: int,
    limit: float,
    progress: Progress = lambda *_: None,
    always: bool = False,
) -> list[Result]:
    """Weave each page in its languages, execute it unless nothing has changed (or ``always``), and
    write what is new; one that fails does not stop the others.

    ``limit`` is in seconds, for one page. Raises nothing: faults are in the results.
    """
    free = asyncio.Semaphore(jobs)
    to_execute: list[tuple[Draft, Record]] = []
    drafts = [Draft(page) for page in pages]
    for draft in drafts:
        with fault_into(*draft.results_of_woven):
            if draft.woven:
                record = Record(draft.page, draft.turns(), draft.kernelspec.name)
                shown = None if always else record.read()
                if shown is None:
                    to_execute.append((draft, record))
                else:
                    _write(draft, shown, "woven")

    async def run(draft: Draft, record: Record) -> None:
        async with free:
            await _execute(draft, record, limit, progress)

    if to_execute:
        with neutral_environment():
            await asyncio.gather(*(run(*each) for each in to_execute))
    return list(chain.from_iterable(draft.results.values() for draft in drafts))


async def _execute(draft: Draft, record: Record, limit: float, progress: Progress) -> None:
    """Execute all distinct cells of a page, in a fresh kernel, and write what they show."""
    start = time.monotonic()
    asked = draft.turns()
    with fault_into(*draft.results_of_woven):
        try:
            outputs = await execute(
                [turn.source for turn in asked],
                draft.kernelspec,
                limit,
                lambda turn: progress(draft.page, turn, len(asked)),
            )
        except ExecutionError as error:
            turn = asked[error.turn]
            name, edition = turn.identity.name, draft.edition(turn)
            raise _located(edition, name, error.turn + 1, str(error)) from None
        progress(draft.page, len(asked), len(asked))
        shown = {
            turn.identity: complete(output)
            for turn, output in zip(asked, outputs, strict=True)
            if not turn.is_definition
        }
        _check_languages(draft, shown)
        record.write(shown)
        _write(draft, shown, "written")
    for result in draft.results_of_woven:
        result.seconds = time.monotonic() - start


def _check_languages(draft: Draft, shown: Shown) -> None:
    """Raises LessonError where a cell is not the same in every language, each in its own words."""
    woven = {edition.language: cells(notebook) for edition, notebook in draft.woven.items()}
    first, suffix = draft.page.editions[0], draft.suffix
    tables = [read_words(first.folder, language) for language in woven]
    for number, here in enumerate(zip(*woven.values(), strict=True)):
        pairs = zip(woven, here, strict=True)
        outputs = {language: shown[identity(number, cell, suffix)] for language, cell in pairs}
        if fault := fault_of(outputs, tables):
            raise _located(first, here[0].name, 0, fault)


def _write(draft: Draft, shown: Shown, outcome: str) -> None:
    """The notebooks that are not there already, word for word."""
    _distribute(shown, draft.woven)
    for edition, notebook in draft.woven.items():
        with fault_into(draft.results[edition]):
            is_new = _store(notebook, edition.notebook)
            draft.results[edition].outcome = outcome if is_new else "unchanged"


@contextmanager
def fault_into(*results: Result) -> Iterator[None]:
    try:
        yield
    except LessonError as error:
        for result in results:
            result.fault = str(error)
    except OSError as error:  # no room for a kernel's own files, say
        for result in results:
            result.fault = f"{result.edition}: {error}"


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cells(notebook: NotebookNode) -> list[Cell]:
    """Its cells of code, in order."""
    return [Cell(cell.id, cell.source) for cell in code_cells(notebook)]


def _distribute(shown: Shown, woven: dict[Edition, NotebookNode]) -> None:
    """Give each notebook's cells what they showed: what is stored already, where that agrees.

    Another processor's last digits are so no change to a reader, or to git; where the code has changed,
    they are. A cell shows the same in every language, so it keeps what is stored in all of them or in
    none: words may be new in one alone.
    """
    stored = [_stored_outputs(edition.notebook, notebook) for edition, notebook in woven.items()]
    of_languages = zip(*map(code_cells, woven.values()), strict=True)
    for count, here in enumerate(of_languages, 1):
        kept: dict[Identity, list[NotebookNode] | None] = {}
        names = []
        for edition, cell, outputs in zip(woven, here, stored, strict=True):
            its = identity(count - 1, Cell(cell.id, cell.source), edition.code.suffix)
            kept.setdefault(its, outputs.get(cell.id))
            names.append(its)
        fresh = {its: _counted(shown[its], count) for its in kept}
        allowed = tolerance(here[0].metadata.get("tags", []))
        is_new = any(agreement.difference(kept[its], fresh[its], allowed) for its in kept)
        for its, cell in zip(names, here, strict=True):
            cell.outputs, cell.execution_count = (fresh if is_new else kept)[its], count


def _counted(outputs: list[NotebookNode], count: int) -> list[NotebookNode]:
    for output in outputs:
        if "execution_count" in output:
            output.execution_count = count
    return outputs


def _stored_outputs(path: Path, woven: NotebookNode) -> dict[str, list[NotebookNode]]:
    """By cell, up to the first whose code has changed; none where there is no notebook that is whole."""
    try:
        stored = nbformat.read(path, as_version=4)
        nbformat.validate(stored)
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError):
        return {}
    both = zip(code_cells(stored), code_cells(woven), strict=False)
    same = takewhile(lambda pair: pair[0].source == pair[1].source, both)
    return {cell.id: cell.outputs for cell, _ in same}


def _located(edition: Edition, name: str, number: int, what: str) -> LessonError:
    """What happened in a cell, at its line in the code file, down to the statement if known."""
    cell = read_code(edition.code, edition.language).get(name)
    if cell is None:  # the weave's own
        return LessonError(f"in {edition}, cell {name!r}: {what.strip()}", edition.code)
    # The last exception of a chain, and in it the frame of this very cell.
    last = what.rpartition("Traceback (most recent call last)")[2]
    inside = [
        int(line) for cell_number, line in LINE_IN_CELL.findall(last) if int(cell_number) == number
    ]
    line = cell.line + (inside[0] - 1 if inside else 0)
    return LessonError(f"in {edition}, cell {name!r}: {what.strip()}", edition.code, line)


def _store(notebook: NotebookNode, path: Path) -> bool:
    """Write the notebook, unless it is there already; tell which."""
    text = nbformat.writes(notebook) + "\n"
    try:
        if path.exists() and path.read_bytes() == text.encode():
            return False
        write_whole(path, text)
    except OSError as error:
        raise LessonError(f"cannot be written: {error.strerror}", path) from None
    return True
