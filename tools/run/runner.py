"""Make the notebooks of pages: weave them, execute those that are out of date, and write those that changed.

A page is executed only if its fingerprints (tools/run/fingerprints.py) have changed. Several pages run at a time.
An interruption or an error leaves no incomplete file.
"""

import asyncio
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.compare.numbers import read_tolerance
from tools.compare.outputs import compare_outputs
from tools.compare.pixels import add_pngs
from tools.run.execute import ExecutionError, execute
from tools.run.files import write_atomically
from tools.run.fingerprints import (
    Fingerprint,
    Fingerprints,
    compute_fingerprint,
    list_conditional_packages,
    read_locked_versions,
)
from tools.run.kernels import neutral_environment
from tools.run.languages import find_language_error
from tools.run.sharing import CodeCell, Identity, Step, identify_cell, plan_steps
from tools.weave.fragments import strip_comments
from tools.weave.lessons import LessonError, Notebook, Page
from tools.weave.notebooks import weave
from tools.weave.programs import read_code
from tools.weave.words import read_translations

# The location of an exception in a traceback: the cell's execution count, and the line.
LINE_IN_CELL = re.compile(r"Cell In\[(\d+)\], line (\d+)")
NOT_COMPARED = "nbval-ignore-output"  # a cell's tag
NOT_STORED = "nothing is stored"  # in place of a difference

Progress = Callable[[Page, int, int], None]  # page, number of cells done, number of all cells
Outputs = dict[Identity, list[NotebookNode]]


@dataclass
class Result:
    """The result for a notebook.

    ``outcome`` is one of:

    * ``up to date``: nothing was executed or written
    * ``woven``: the text was rewritten, the outputs were kept
    * ``same results``: executed; no output differs
    * ``written``: executed and written, because an output differs
    * ``other results``: executed to see whether the framework works here, and not written although outputs differ
    * ``out of date``: the framework was not chosen
    * ``failed``
    """

    notebook: Notebook
    num_cells: int = 0
    seconds: float | None = None  # of the execution, which the notebooks of a page share
    outcome: str = "failed"
    error: str = ""  # of a failed notebook, with file and line
    differences: list[str] = field(default_factory=list)  # from the stored outputs, one per cell


class Draft:
    """A page whose notebooks are woven; the results have the errors of those that cannot be woven."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.results = {notebook: Result(notebook) for notebook in page.notebooks}
        self.woven: dict[Notebook, NotebookNode] = {}
        for notebook, result in self.results.items():
            with record_errors(result):
                self.woven[notebook] = weave(notebook)
                result.num_cells = len(list_code_cells(self.woven[notebook]))
        self.stored = {
            notebook: _read_stored_outputs(notebook, node) for notebook, node in self.woven.items()
        }

    @property
    def woven_results(self) -> list[Result]:
        return [self.results[notebook] for notebook in self.woven]

    @property
    def kernelspec(self) -> NotebookNode:
        return next(iter(self.woven.values())).metadata.kernelspec

    @property
    def suffix(self) -> str:
        return self.page.notebooks[0].code.suffix

    @property
    def has_all_outputs(self) -> bool:
        """Whether the outputs of the current code are stored for every cell."""
        return all(len(self.stored[each]) == self.results[each].num_cells for each in self.woven)

    def plan_steps(self) -> list[Step]:
        """Return all steps of the execution, in order."""
        return list(plan_steps([*map(list_cells, self.woven.values())], self.suffix))

    def compute_fingerprints(self) -> dict[Notebook, Fingerprint]:
        return {
            each: compute_fingerprint(each, list_cells(node)) for each, node in self.woven.items()
        }

    def find_notebook(self, step: Step) -> Notebook:
        """Return the first notebook that has a step's cell."""
        return list(self.woven)[step.notebook]


class Runner:
    """Makes the notebooks of a project."""

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
        """Set up a runner.

        ``limit`` is in seconds, for one page; ``always`` executes up-to-date pages, too. If ``frameworks`` is given,
        pages of other frameworks are only woven. The lesson named ``proof`` is executed once on each machine.
        """
        self.jobs = jobs
        self.limit = limit
        self.progress = progress
        self.always = always
        self.frameworks = frameworks
        self.proof = proof
        self.committed_fingerprints = Fingerprints(root / "notebooks" / "fingerprints.json")
        self.local_fingerprints = Fingerprints(root / "build" / "executed.json")

    async def make(self, pages: list[Page]) -> list[Result]:
        """Weave each page, execute it if it is out of date, and write the notebooks that changed.

        Errors are recorded in the results, not raised, and a page that fails does not stop the others.
        """
        drafts = [Draft(page) for page in pages]
        to_execute = []
        for draft in drafts:
            with record_errors(*draft.woven_results):
                if draft.woven and self._needs_execution(draft):
                    to_execute.append(draft)
                elif draft.woven:
                    self._write_without_execution(draft)
        if to_execute:
            free_slots = asyncio.Semaphore(self.jobs)

            async def run(draft: Draft) -> None:
                async with free_slots:
                    await self._execute(draft)

            with neutral_environment():
                await asyncio.gather(*map(run, to_execute))
        return [result for draft in drafts for result in draft.results.values()]

    def _needs_execution(self, draft: Draft) -> bool:
        if not self._may_execute(draft):
            return False
        if self.always or not draft.has_all_outputs:
            return True
        is_proof = draft.page.notebooks[0].lesson.name == self.proof
        return any(
            self.local_fingerprints.get(notebook) != current
            and (is_proof or self.committed_fingerprints.get(notebook) != current)
            for notebook, current in draft.compute_fingerprints().items()
        )

    def _is_up_to_date(self, draft: Draft) -> bool:
        fingerprints = draft.compute_fingerprints()
        return draft.has_all_outputs and all(
            self.committed_fingerprints.get(notebook) == current
            for notebook, current in fingerprints.items()
        )

    def _may_execute(self, draft: Draft) -> bool:
        return self.frameworks is None or draft.page.notebooks[0].framework in self.frameworks

    def _write_without_execution(self, draft: Draft) -> None:
        """Write changed texts with the stored outputs, if these belong to the current code."""
        if not draft.has_all_outputs:
            for result in draft.woven_results:
                result.outcome = "out of date"
            return
        has_current_sources = all(
            (stored := self.committed_fingerprints.get(notebook))
            and stored.sources == current.sources
            for notebook, current in draft.compute_fingerprints().items()
        )
        for notebook, node in draft.woven.items():
            result = draft.results[notebook]
            for count, cell in enumerate(list_code_cells(node), 1):
                cell.outputs, cell.execution_count = draft.stored[notebook][cell.id], count
            with record_errors(result):
                is_new = _write_if_changed(node, notebook.path)
                result.outcome = "woven" if is_new else "up to date"
                if not has_current_sources and not self._may_execute(draft):
                    result.outcome = "out of date"

    async def _execute(self, draft: Draft) -> None:
        """Execute all distinct cells of a page in a fresh kernel, and write their outputs."""
        start = time.monotonic()
        steps = draft.plan_steps()
        with record_errors(*draft.woven_results):
            try:
                all_outputs = await execute(
                    [step.source for step in steps],
                    draft.kernelspec,
                    self.limit,
                    lambda index: self.progress(draft.page, index, len(steps)),
                )
            except ExecutionError as error:
                step = steps[error.index]
                name = step.identity.name
                notebook = draft.find_notebook(step)
                raise _make_lesson_error(notebook, name, error.index + 1, str(error)) from None
            self.progress(draft.page, len(steps), len(steps))
            fresh = {
                step.identity: add_pngs(outputs)
                for step, outputs in zip(steps, all_outputs, strict=True)
                if not step.is_definition
            }
            _check_languages(draft, fresh)
            self._write(draft, fresh)
        for result in draft.woven_results:
            result.seconds = time.monotonic() - start

    def _write(self, draft: Draft, fresh: Outputs) -> None:
        """Write the fingerprints and the notebooks; cells keep their stored outputs if the fresh ones agree.

        A page that was up to date is not written: it was executed only as a proof.
        """
        changes = _fill_outputs(draft, fresh)
        differences = [f"{name}: {each}" for name, each in changes.items() if each != NOT_STORED]
        if changes and self._is_up_to_date(draft) and not self.always:
            for result in draft.woven_results:
                result.outcome, result.differences = "other results", differences
            return
        for notebook, node in draft.woven.items():
            result = draft.results[notebook]
            is_new = _write_if_changed(node, notebook.path)
            result.differences = differences
            if changes:
                result.outcome = "written"
            else:
                result.outcome = "woven" if is_new else "same results"
        current = draft.compute_fingerprints()
        replacements = {
            notebook: fingerprint
            for notebook, fingerprint in current.items()
            if changes or self._needs_new_fingerprint(notebook, fingerprint)
        }
        if replacements:
            self.committed_fingerprints.update(replacements)
        with suppress(LessonError):  # optional, and impossible in a read-only checkout
            self.local_fingerprints.update(current)

    def _needs_new_fingerprint(self, notebook: Notebook, current: Fingerprint) -> bool:
        """Check whether the committed fingerprint must be replaced although the outputs are the same.

        Versions that the lock has for another Python do not count: each Python would undo the other's change.
        """
        stored = self.committed_fingerprints.get(notebook)
        if stored is None or stored.sources != current.sources:
            return True
        packages = stored.packages.keys() ^ current.packages.keys()
        if packages - list_conditional_packages(notebook.framework):
            return True
        return not stored.packages.items() <= read_locked_versions(notebook.framework)


def _check_languages(draft: Draft, fresh: Outputs) -> None:
    """Raise LessonError if a cell does not show the same in every language, each in its own words."""
    woven = {notebook.language: list_cells(node) for notebook, node in draft.woven.items()}
    first = draft.page.notebooks[0]
    tables = [read_translations(first.lesson, language) for language in woven]
    for number, cells in enumerate(zip(*woven.values(), strict=True)):
        outputs = {
            language: fresh[identify_cell(number, cell, draft.suffix)]
            for language, cell in zip(woven, cells, strict=True)
        }
        if error := find_language_error(outputs, tables):
            raise _make_lesson_error(first, cells[0].name, 0, error)


@contextmanager
def record_errors(*results: Result) -> Iterator[None]:
    """Record an exception in the results instead of raising it."""
    try:
        yield
    except LessonError as error:
        for result in results:
            result.error, result.outcome = str(error), "failed"
    except OSError as error:  # for example, a full disk
        for result in results:
            result.error, result.outcome = f"{result.notebook}: {error}", "failed"


def list_code_cells(node: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in node.cells if cell.cell_type == "code"]


def list_cells(node: NotebookNode) -> list[CodeCell]:
    return [CodeCell(cell.id, cell.source) for cell in list_code_cells(node)]


def _fill_outputs(draft: Draft, fresh: Outputs) -> dict[str, str]:
    """Give each cell its stored outputs, or the fresh ones if they differ. Return the differences by cell.

    So the last digits, which depend on the processor, change nothing for a reader or for git. The first cell whose code has
    changed, and the cells below it, have no stored outputs. A cell keeps its stored outputs in all languages or in
    none, so that all show the same numbers.
    """
    differences = {}
    by_language = zip(*map(list_code_cells, draft.woven.values()), strict=True)
    for count, cells in enumerate(by_language, 1):
        stored: dict[Identity, list[NotebookNode] | None] = {}
        identities = []
        for notebook, cell in zip(draft.woven, cells, strict=True):
            identity = identify_cell(count - 1, CodeCell(cell.id, cell.source), draft.suffix)
            stored.setdefault(identity, draft.stored[notebook].get(cell.id))
            identities.append(identity)
        new = {identity: _set_count(fresh[identity], count) for identity in stored}
        difference = _find_difference(stored, new, cells[0].metadata.get("tags", []))
        if difference:
            differences[cells[0].id] = difference
        for identity, cell in zip(identities, cells, strict=True):
            cell.outputs, cell.execution_count = (new if difference else stored)[identity], count
    return differences


def _find_difference(
    stored: dict[Identity, list[NotebookNode] | None], fresh: Outputs, tags: list[str]
) -> str | None:
    """Return the first difference between a cell's stored and fresh outputs in any language, or None."""
    if None in stored.values():
        return NOT_STORED
    if NOT_COMPARED in tags:
        return None
    tolerance = read_tolerance(tags)
    for identity, outputs in stored.items():
        if difference := compare_outputs(outputs, fresh[identity], tolerance):
            return difference
    return None


def _set_count(outputs: list[NotebookNode], count: int) -> list[NotebookNode]:
    for output in outputs:
        if "execution_count" in output:
            output.execution_count = count
    return outputs


def _read_stored_outputs(notebook: Notebook, woven: NotebookNode) -> dict[str, list[NotebookNode]]:
    """Return the stored outputs by cell, up to the first cell whose code has changed.

    The result is empty for a notebook that is missing or invalid.
    """
    try:
        node = nbformat.read(notebook.path, as_version=4)
        nbformat.validate(node)
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError, NameError):
        return {}  # NameError: nbformat raises it by mistake if a key is missing
    suffix = notebook.code.suffix
    outputs = {}
    for old, new in zip(list_code_cells(node), list_code_cells(woven), strict=False):
        old_program, new_program = (strip_comments(cell.source, suffix) for cell in (old, new))
        if old.get("id") != new.id or old_program != new_program:
            break
        outputs[old.id] = old.outputs
    return outputs


def _make_lesson_error(notebook: Notebook, name: str, number: int, message: str) -> LessonError:
    """Return an error in a cell, at the line of the failing statement or, if unknown, of the cell.

    ``number`` is the cell's execution count.
    """
    cell = read_code(notebook.code, notebook.language).get(name)
    message = f"in {notebook}, cell {name!r}: {message.strip()}"
    if cell is None:  # a cell that the weave has added
        return LessonError(message, notebook.code)
    # Take the last of several chained exceptions, and its first frame in this cell.
    last_traceback = message.rpartition("Traceback (most recent call last)")[2]
    for count, line in LINE_IN_CELL.findall(last_traceback):
        if int(count) == number:
            return LessonError(message, notebook.code, cell.line + int(line) - 1)
    return LessonError(message, notebook.code, cell.line)


def _write_if_changed(node: NotebookNode, path: Path) -> bool:
    """Write a notebook unless the file has the same content; return whether it was written."""
    text = nbformat.writes(node) + "\n"
    try:
        if path.exists() and path.read_bytes() == text.encode():
            return False
        write_atomically(path, text)
    except OSError as error:
        raise LessonError(f"cannot be written: {error.strerror}", path) from None
    return True
