"""Executes pages, several at a time, and keeps what is on disk whole whatever happens."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode, v4

from tools import agreement
from tools.kernels import Workplace, neutral_environment
from tools.lessons import Edition, LessonError, Page
from tools.numbers import tolerance
from tools.programs import read_code
from tools.weave import weave

MOST_PRINTED = 5_000_000  # characters, of a page
ANSI = re.compile(r"\x1b\[[0-9;]*m")
# IPython's and the kernels' way to say where in a cell it happened.
LINE_IN_CELL = re.compile(r"Cell In\[(\d+)\], line (\d+)")


@dataclass
class Result:
    edition: Edition
    cells: int = 0
    seconds: float = 0.0  # of the execution, which the languages of a code file share
    outcome: str = "failed"  # or "written" or "unchanged"
    fault: str = ""  # of a failed one: where, and what happened


Shown = dict[tuple[str, str], list[NotebookNode]]  # a cell's outputs, by its name and code
Progress = Callable[[Page, int, int], None]  # page, cells done, cells in all


async def execute_all(
    pages: list[Page], jobs: int, limit: float, progress: Progress = lambda *_: None
) -> list[Result]:
    """Weave, execute and write each page in its languages; one that fails does not stop the others.

    ``limit`` is in seconds, for one page. Raises nothing: faults are in the results.
    """
    free = asyncio.Semaphore(jobs)

    async def run(page: Page) -> list[Result]:
        async with free:
            return await _execute_page(page, limit, progress)

    with neutral_environment():
        return list(chain.from_iterable(await asyncio.gather(*map(run, pages))))


async def _execute_page(page: Page, limit: float, progress: Progress) -> list[Result]:
    start = time.monotonic()
    results = {edition: Result(edition) for edition in page.editions}
    woven: dict[Edition, NotebookNode] = {}
    for edition, result in results.items():
        with _fault_into([result]):
            woven[edition] = weave(edition)
            result.cells = len(_code_cells(woven[edition]))
    with _fault_into([results[edition] for edition in woven]):
        if woven:
            execution = await _execute(page, woven, limit, progress)
            _distribute(execution, woven)
            for edition, notebook in woven.items():
                with _fault_into([results[edition]]):
                    results[edition].outcome = _store(notebook, edition.notebook)
    for result in results.values():
        result.seconds = time.monotonic() - start
    return list(results.values())


@contextmanager
def _fault_into(results: list[Result]) -> Iterator[None]:
    try:
        yield
    except LessonError as error:
        for result in results:
            result.fault = str(error)
    except OSError as error:  # no room for a kernel's own files, say
        for result in results:
            result.fault = f"{result.edition}: {error}"


def _code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


class _TooMuchError(Exception):
    pass


class _Client(NotebookClient):
    """nbclient, but Ctrl-C is left to asyncio: it means all notebooks, not the one started last.

    And no more is taken than a reader could open.
    """

    printed = 0

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        if msg["msg_type"] == "stream":
            self.printed += len(msg["content"]["text"])
            if self.printed > MOST_PRINTED:
                raise _TooMuchError
        return super().process_message(msg, cell, cell_index)

    @asynccontextmanager
    async def async_setup_kernel(self, **settings: Any) -> AsyncIterator[None]:
        await self.async_start_new_kernel(**settings)
        await self.async_start_new_kernel_client()
        yield


async def _execute(
    page: Page, woven: dict[Edition, NotebookNode], limit: float, progress: Progress
) -> Shown:
    """Execute all distinct cells of a page, in a fresh kernel.

    Raises LessonError that names the cell.
    """
    asked: list[tuple[Edition, NotebookNode]] = []
    # The weave holds all languages to the same cells in the same order.
    for in_all_languages in zip(*map(_code_cells, woven.values()), strict=True):
        distinct = {cell.source: (e, cell) for e, cell in zip(woven, in_all_languages, strict=True)}
        asked.extend(distinct.values())
    cells = [v4.new_code_cell(cell.source) for _, cell in asked]
    started: list[NotebookNode] = []

    def on_start(cell: NotebookNode, cell_index: int) -> None:
        progress(page, len(started), len(cells))
        started.append(cell)

    kernelspec = next(iter(woven.values())).metadata.kernelspec
    notebook = v4.new_notebook(metadata={"kernelspec": kernelspec}, cells=cells)
    workplace = Workplace(kernelspec.name)
    manager = AsyncKernelManager(**workplace.settings)
    client = _Client(
        notebook,
        km=manager,
        timeout=None,
        record_timing=False,
        coalesce_streams=True,
        on_cell_start=on_start,
    )
    what = ""
    task = asyncio.current_task()
    assert task is not None
    try:
        async with asyncio.timeout(limit) as timer:
            await client.async_execute(cwd=workplace.folder)
    except CellExecutionError as error:
        # Java's kernel says what is wrong in the cell's output alone.
        (shown,) = (output for output in started[-1].outputs if "traceback" in output)
        is_python = kernelspec.language == "python"
        what = ANSI.sub("", error.traceback if is_python else "\n".join(shown.traceback))
    except (DeadKernelError, TimeoutError):
        # nbclient takes whatever ends its waiting for the kernel's death.
        if task.cancelling() and not timer.expired():
            raise asyncio.CancelledError from None
        over = f"over the limit of {limit:g} s for the notebook"
        what = over if timer.expired() else "the kernel died"
    except _TooMuchError:
        what = f"it prints more than {MOST_PRINTED:,} characters"
    except (RuntimeError, OSError, NoSuchKernel) as error:
        what = f"no kernel came up: {error}"
    finally:
        if await manager.is_alive():
            await manager.shutdown_kernel(now=True)
        await manager.cleanup_resources()
        if client.kc is not None:
            client.kc.stop_channels()
        workplace.cleanup()
    if what:
        turn = max(len(started), 1)
        edition, cell = asked[turn - 1]
        raise _fault(edition, cell.id, turn, what)
    progress(page, len(cells), len(cells))
    return {
        (cell.id, cell.source): executed.outputs
        for (_, cell), executed in zip(asked, cells, strict=True)
    }


def _distribute(execution: Shown, woven: dict[Edition, NotebookNode]) -> None:
    """Give each notebook's cells what they showed: what is stored already, where that agrees.

    Another processor's last digits are so no change to a reader, or to git; and in every language
    a cell shows the same.
    """
    settled: Shown = {}
    for edition, notebook in woven.items():
        stored = _stored_outputs(edition.notebook)
        for number, cell in enumerate(_code_cells(notebook), 1):
            key = cell.id, cell.source
            if key not in settled:
                outputs = execution[key]
                for output in outputs:
                    if "execution_count" in output:
                        output.execution_count = number
                allowed = tolerance(cell.metadata.get("tags", []))
                agrees = agreement.difference(stored.get(cell.id), outputs, allowed) is None
                settled[key] = stored[cell.id] if agrees else outputs
            cell.outputs, cell.execution_count = settled[key], number


def _stored_outputs(path: Path) -> dict[str, list[NotebookNode]]:
    """By cell; none where there is no notebook, or none that is whole."""
    try:
        stored = nbformat.read(path, as_version=4)
        nbformat.validate(stored)
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError):
        return {}
    return {cell.id: cell.outputs for cell in _code_cells(stored)}


def _fault(edition: Edition, name: str, number: int, what: str) -> LessonError:
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


def _store(notebook: NotebookNode, path: Path) -> str:
    """Write the notebook, unless it is there already; tell which."""
    text = nbformat.writes(notebook) + "\n"
    try:
        if path.exists() and path.read_bytes() == text.encode():
            return "unchanged"
        _write_whole(path, text)
    except OSError as error:
        raise LessonError(f"cannot be written: {error.strerror}", path) from None
    return "written"


def _write_whole(path: Path, text: str) -> None:
    """The new text or, after any failure, the old one: never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
