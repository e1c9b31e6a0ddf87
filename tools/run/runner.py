"""Makes notebooks of pages: weaves them, executes those that are out of date, and writes what is new.

A page is executed only where its fingerprints (tools/run/fingerprints.py) say so. Several pages run at a time,
and what is on disk stays whole whatever happens.
"""

import asyncio
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.compare import agreement
from tools.compare.numbers import tolerance
from tools.compare.pictures import complete
from tools.run.execute import ExecutionError, execute
from tools.run.files import write_whole
from tools.run.fingerprints import (
    Fingerprint,
    Fingerprints,
    conditional_packages,
    fingerprint,
    locked_versions,
)
from tools.run.kernels import neutral_environment
from tools.run.languages import fault_of
from tools.run.sharing import Cell, Identity, Turn, identity, turns
from tools.weave.fragments import bare
from tools.weave.lessons import Edition, LessonError, Page
from tools.weave.notebooks import weave
from tools.weave.programs import read_code
from tools.weave.words import read_words

# IPython's and the kernels' way to say where in a cell it happened.
LINE_IN_CELL = re.compile(r"Cell In\[(\d+)\], line (\d+)")
NOT_COMPARED = "nbval-ignore-output"  # a cell's tag
NEW = "nothing is stored"

Progress = Callable[[Page, int, int], None]  # page, cells done, cells in all
Shown = dict[Identity, list[NotebookNode]]


@dataclass
class Result:
    """What became of a notebook. ``outcome`` is one of

    * ``up to date``: nothing was executed or written
    * ``woven``: new text around the stored outputs
    * ``same results``, ``written``: executed; in a notebook that is written, some outputs are new
    * ``other results``: executed to see whether the framework works here, and not written
    * ``out of date``: not to be executed here
    * ``failed``
    """

    edition: Edition
    cells: int = 0
    seconds: float | None = None  # of the execution, which the languages of a page share
    outcome: str = "failed"
    fault: str = ""  # of a failed one: where, and what happened
    differences: list[str] = field(default_factory=list)  # of what was stored, by cell


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
        self.stored = {
            edition: _stored_outputs(edition, self.woven[edition]) for edition in self.woven
        }

    @property
    def results_of_woven(self) -> list[Result]:
        return [self.results[edition] for edition in self.woven]

    @property
    def kernelspec(self) -> NotebookNode:
        return next(iter(self.woven.values())).metadata.kernelspec

    @property
    def suffix(self) -> str:
        return self.page.editions[0].code.suffix

    @property
    def has_all_outputs(self) -> bool:
        """Whether the stored notebooks have the outputs of this very code."""
        return all(
            len(self.stored[edition]) == self.results[edition].cells for edition in self.woven
        )

    def turns(self) -> list[Turn]:
        """Return all that is to be executed, in order."""
        return list(turns([*map(cells, self.woven.values())], self.suffix))

    def fingerprints(self) -> dict[Edition, Fingerprint]:
        return {edition: fingerprint(edition, cells(its)) for edition, its in self.woven.items()}

    def edition(self, turn: Turn) -> Edition:
        """Return the notebook that has this turn's cell first."""
        return list(self.woven)[turn.notebook]


class Runner:
    """Makes the notebooks of one project."""

    def __init__(
        self,
        root: Path,
        *,
        jobs: int,
        limit: float,
        progress: Progress = lambda *_: None,
        always: bool = False,
        frameworks: Collection[str] | None = None,
        proof: str = "",
    ) -> None:
        """``limit`` is in seconds, for one page; ``always`` executes what is up to date, too; pages of other
        ``frameworks`` than these are woven only; the lesson named ``proof`` is executed once on each machine."""
        self.jobs, self.limit, self.progress = jobs, limit, progress
        self.always, self.frameworks, self.proof = always, frameworks, proof
        self.committed = Fingerprints(root / "notebooks" / "fingerprints.json")
        self.executed_here = Fingerprints(root / "build" / "executed.json")

    async def make(self, pages: list[Page]) -> list[Result]:
        """Weave each page, execute it if it is out of date, and write what is new; one that fails does not stop
        the others. Raises nothing: faults are in the results."""
        drafts = [Draft(page) for page in pages]
        to_execute = []
        for draft in drafts:
            with fault_into(*draft.results_of_woven):
                if draft.woven and self._is_to_be_executed(draft):
                    to_execute.append(draft)
                elif draft.woven:
                    self._weave_only(draft)
        if to_execute:
            free = asyncio.Semaphore(self.jobs)

            async def run(draft: Draft) -> None:
                async with free:
                    await self._execute(draft)

            with neutral_environment():
                await asyncio.gather(*map(run, to_execute))
        return [result for draft in drafts for result in draft.results.values()]

    def _is_to_be_executed(self, draft: Draft) -> bool:
        if not self._may_execute(draft):
            return False
        if self.always or not draft.has_all_outputs:
            return True
        is_proof = draft.page.editions[0].folder.name == self.proof
        return any(
            self.executed_here.get(edition) != now
            and (is_proof or self.committed.get(edition) != now)
            for edition, now in draft.fingerprints().items()
        )

    def _is_up_to_date(self, draft: Draft) -> bool:
        return draft.has_all_outputs and all(
            self.committed.get(edition) == now for edition, now in draft.fingerprints().items()
        )

    def _may_execute(self, draft: Draft) -> bool:
        return self.frameworks is None or draft.page.editions[0].framework in self.frameworks

    def _weave_only(self, draft: Draft) -> None:
        """Write new text around the stored outputs, as far as they are those of this code."""
        if not draft.has_all_outputs:
            for result in draft.results_of_woven:
                result.outcome = "out of date"
            return
        is_current = all(
            (stored := self.committed.get(edition)) and stored.sources == now.sources
            for edition, now in draft.fingerprints().items()
        )
        for edition, notebook in draft.woven.items():
            for count, cell in enumerate(code_cells(notebook), 1):
                cell.outputs, cell.execution_count = draft.stored[edition][cell.id], count
            with fault_into(draft.results[edition]):
                is_new = _store(notebook, edition.notebook)
                draft.results[edition].outcome = "woven" if is_new else "up to date"
                if not is_current and not self._may_execute(draft):
                    draft.results[edition].outcome = "out of date"

    async def _execute(self, draft: Draft) -> None:
        """Execute all distinct cells of a page, in a fresh kernel, and write what they show."""
        start = time.monotonic()
        asked = draft.turns()
        with fault_into(*draft.results_of_woven):
            try:
                outputs = await execute(
                    [turn.source for turn in asked],
                    draft.kernelspec,
                    self.limit,
                    lambda turn: self.progress(draft.page, turn, len(asked)),
                )
            except ExecutionError as error:
                turn = asked[error.turn]
                name, edition = turn.identity.name, draft.edition(turn)
                raise _located(edition, name, error.turn + 1, str(error)) from None
            self.progress(draft.page, len(asked), len(asked))
            shown = {
                turn.identity: complete(output)
                for turn, output in zip(asked, outputs, strict=True)
                if not turn.is_definition
            }
            _check_languages(draft, shown)
            self._write(draft, shown)
        for result in draft.results_of_woven:
            result.seconds = time.monotonic() - start

    def _write(self, draft: Draft, shown: Shown) -> None:
        """Write the notebooks, each cell with its stored outputs where the fresh ones agree, and the fingerprints.

        A page that was up to date is not written: it was executed as a proof alone.
        """
        fresh = _distribute(draft, shown)
        differences = [f"{name}: {what}" for name, what in fresh.items() if what != NEW]
        if fresh and self._is_up_to_date(draft) and not self.always:
            for result in draft.results_of_woven:
                result.outcome, result.differences = "other results", differences
            return
        for edition, notebook in draft.woven.items():
            result = draft.results[edition]
            is_new = _store(notebook, edition.notebook)
            result.differences = differences
            result.outcome = "written" if fresh else "woven" if is_new else "same results"
        now = draft.fingerprints()
        renewed = {e: its for e, its in now.items() if fresh or self._is_old(e, its)}
        if renewed:
            self.committed.update(renewed)
        with suppress(LessonError):  # a read-only checkout does without
            self.executed_here.update(now)

    def _is_old(self, edition: Edition, now: Fingerprint) -> bool:
        """Whether the committed fingerprint is to be replaced though the outputs are the same.

        Not where the lock has other versions for another Python: each would undo what the other wrote.
        """
        stored = self.committed.get(edition)
        if stored is None or stored.sources != now.sources:
            return True
        names = stored.packages.keys() ^ now.packages.keys()
        if names - conditional_packages(edition.framework):
            return True
        return not stored.packages.items() <= locked_versions(edition.framework)


def _check_languages(draft: Draft, shown: Shown) -> None:
    """Raise LessonError where a cell is not the same in every language, each in its own words."""
    woven = {edition.language: cells(notebook) for edition, notebook in draft.woven.items()}
    first, suffix = draft.page.editions[0], draft.suffix
    tables = [read_words(first.folder, language) for language in woven]
    for number, here in enumerate(zip(*woven.values(), strict=True)):
        pairs = zip(woven, here, strict=True)
        outputs = {language: shown[identity(number, cell, suffix)] for language, cell in pairs}
        if fault := fault_of(outputs, tables):
            raise _located(first, here[0].name, 0, fault)


@contextmanager
def fault_into(*results: Result) -> Iterator[None]:
    try:
        yield
    except LessonError as error:
        for result in results:
            result.fault, result.outcome = str(error), "failed"
    except OSError as error:  # no room for a kernel's own files, say
        for result in results:
            result.fault, result.outcome = f"{result.edition}: {error}", "failed"


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cells(notebook: NotebookNode) -> list[Cell]:
    """Return its code cells, in order."""
    return [Cell(cell.id, cell.source) for cell in code_cells(notebook)]


def _distribute(draft: Draft, shown: Shown) -> dict[str, str]:
    """Give each notebook's cells what they showed: what is stored already, where that agrees. Return the cells with
    fresh outputs, and what differs.

    Another processor's last digits are so no change to a reader, or to git. From the first cell on whose code
    has changed, nothing is stored. A cell shows the same in every language, so it keeps what is stored in all of
    them or in none: words may be new in one alone.
    """
    differences = {}
    of_languages = zip(*map(code_cells, draft.woven.values()), strict=True)
    for count, here in enumerate(of_languages, 1):
        kept: dict[Identity, list[NotebookNode] | None] = {}
        names = []
        for edition, cell in zip(draft.woven, here, strict=True):
            its = identity(count - 1, Cell(cell.id, cell.source), edition.code.suffix)
            kept.setdefault(its, draft.stored[edition].get(cell.id))
            names.append(its)
        fresh = {its: _counted(shown[its], count) for its in kept}
        difference = _difference(kept, fresh, here[0].metadata.get("tags", []))
        if difference:
            differences[here[0].id] = difference
        for its, cell in zip(names, here, strict=True):
            cell.outputs, cell.execution_count = (fresh if difference else kept)[its], count
    return differences


def _difference(
    kept: dict[Identity, list[NotebookNode] | None],
    fresh: dict[Identity, list[NotebookNode]],
    tags: list[str],
) -> str | None:
    """Return the first difference between a cell's stored outputs and its fresh ones, in any language, or None."""
    if None in kept.values():
        return NEW
    if NOT_COMPARED in tags:
        return None
    allowed = tolerance(tags)
    found = (agreement.difference(kept[its], fresh[its], allowed) for its in kept)
    return next(filter(None, found), None)


def _counted(outputs: list[NotebookNode], count: int) -> list[NotebookNode]:
    for output in outputs:
        if "execution_count" in output:
            output.execution_count = count
    return outputs


def _stored_outputs(edition: Edition, woven: NotebookNode) -> dict[str, list[NotebookNode]]:
    """Return the stored notebook's outputs by cell, up to the first whose code has changed; none where there is no
    notebook that is whole."""
    try:
        stored = nbformat.read(edition.notebook, as_version=4)
        nbformat.validate(stored)
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError, NameError):
        return {}  # a NameError is nbformat's own, of JSON that has not its keys
    suffix = edition.code.suffix

    def is_same(pair: tuple[NotebookNode, NotebookNode]) -> bool:
        old, new = pair
        return old.get("id") == new.id and bare(old.source, suffix) == bare(new.source, suffix)

    both = zip(code_cells(stored), code_cells(woven), strict=False)
    return {cell.id: cell.outputs for cell, _ in takewhile(is_same, both)}


def _located(edition: Edition, name: str, number: int, what: str) -> LessonError:
    """Return what happened in a cell, at its line in the code file, down to the statement if known."""
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
    """Write the notebook, unless it is there already; return whether it was written."""
    text = nbformat.writes(notebook) + "\n"
    try:
        if path.exists() and path.read_bytes() == text.encode():
            return False
        write_whole(path, text)
    except OSError as error:
        raise LessonError(f"cannot be written: {error.strerror}", path) from None
    return True
