"""Executes editions, several at a time, and keeps what is on disk whole whatever happens."""

import asyncio
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from tools import agreement
from tools.lessons import Edition, LessonError
from tools.weave import read_code, weave

ANSI = re.compile(r"\x1b\[[0-9;]*m")
# IPython's and the kernels' way to say where in a cell it happened.
LINE_IN_CELL = re.compile(r"Cell In\[(\d+)\], line (\d+)")
NEUTRAL = {
    "MATPLOTLIBRC": os.devnull,
    "PYTHONHASHSEED": "0",
    # Sums in one order each time. The lessons' tensors are small: more threads would only wait
    # for each other, and for those of the notebook beside.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass
class Result:
    edition: Edition
    cells: int = 0
    seconds: float = 0.0
    outcome: str = "failed"  # or "written" or "unchanged"
    fault: str = ""  # of a failed one: where, and what happened


Progress = Callable[[Edition, int, int], None]  # edition, cells done, cells in all


async def execute_all(
    editions: list[Edition], jobs: int, limit: float, progress: Progress = lambda *_: None
) -> list[Result]:
    """Weave, execute and write each edition; one that fails does not stop the others.

    ``limit`` is in seconds, for one notebook. Raises nothing: faults are in the results.
    """
    free = asyncio.Semaphore(jobs)

    async def run(edition: Edition) -> Result:
        async with free:
            return await _execute_one(edition, limit, progress)

    with neutral_environment():
        return await asyncio.gather(*map(run, editions))


@contextmanager
def neutral_environment() -> Iterator[None]:
    """For the kernels started within: no settings of the user's, so that all show the same."""
    # Builds matplotlib's cache of fonts where there is none, which a kernel would report on.
    import matplotlib.font_manager  # noqa: F401

    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="ipython-") as empty:
        os.environ.pop("MPLBACKEND", None)
        os.environ.update(NEUTRAL, IPYTHONDIR=empty)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


async def _execute_one(edition: Edition, limit: float, progress: Progress) -> Result:
    result = Result(edition)
    start = time.monotonic()
    try:
        notebook = weave(edition)
        result.cells = sum(cell.cell_type == "code" for cell in notebook.cells)
        await _run(notebook, edition, limit, progress)
        result.outcome = _store(notebook, edition.notebook)
    except LessonError as error:
        result.fault = str(error)
    except OSError as error:  # no room for a kernel's own files, say
        result.fault = f"{edition}: {error}"
    result.seconds = time.monotonic() - start
    return result


class _Client(NotebookClient):
    """nbclient, but Ctrl-C is left to asyncio: it means all notebooks, not the one started last."""

    @asynccontextmanager
    async def async_setup_kernel(self, **settings: Any) -> AsyncIterator[None]:
        await self.async_start_new_kernel(**settings)
        await self.async_start_new_kernel_client()
        yield


async def _run(notebook: NotebookNode, edition: Edition, limit: float, progress: Progress) -> None:
    """Execute in place, in a fresh kernel. Raises LessonError that names the cell."""
    names = [cell.id for cell in notebook.cells if cell.cell_type == "code"]
    started: list[str] = []

    def on_start(cell: NotebookNode, cell_index: int) -> None:
        if cell.cell_type == "code":
            progress(edition, len(started), len(names))
            started.append(cell.id)

    woven_metadata = notebook.metadata.copy()
    # An empty folder to work in, as a reader's will hold none of the lesson's files.
    scratch = tempfile.TemporaryDirectory(prefix="kernel-")
    # Files rather than ports: nobody else can reach the kernel, and no two can meet on a port.
    # Java's kernel knows ports only.
    is_python = notebook.metadata.kernelspec.language == "python"
    files = {"transport": "ipc", "ip": str(Path(scratch.name, "kernel"))}
    manager = AsyncKernelManager(
        kernel_name=notebook.metadata.kernelspec.name, **(files if is_python else {})
    )
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
            await client.async_execute(cwd=scratch.name)
    except CellExecutionError as error:
        # Java's kernel says what is wrong in the cell's output alone.
        shown = [o for cell in notebook.cells for o in cell.get("outputs", []) if "evalue" in o]
        what = ANSI.sub("", error.traceback if is_python else "\n".join(shown[-1].traceback))
    except (DeadKernelError, TimeoutError):
        # nbclient takes whatever ends its waiting for the kernel's death.
        if task.cancelling() and not timer.expired():
            raise asyncio.CancelledError from None
        over = f"over the limit of {limit:g} s for the notebook"
        what = over if timer.expired() else "the kernel died"
    except (RuntimeError, OSError, NoSuchKernel) as error:
        what = f"no kernel came up: {error}"
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
        if manager.has_kernel:
            await manager.shutdown_kernel(now=True)
        scratch.cleanup()
    if what:
        raise _fault(edition, (started or names[:1])[-1], len(started), what)
    progress(edition, len(names), len(names))
    # The interpreter's version is this machine's affair.
    notebook.metadata = woven_metadata


def _fault(edition: Edition, name: str, number: int, what: str) -> LessonError:
    """What happened in a cell, at its line in the code file, down to the statement if known."""
    cell = read_code(edition.code, edition.language)[name]
    # The last exception of a chain, and in it the frame of this very cell.
    last = what.rpartition("Traceback (most recent call last)")[2]
    inside = [
        int(line) for cell_number, line in LINE_IN_CELL.findall(last) if int(cell_number) == number
    ]
    line = cell.line + (inside[0] - 1 if inside else 0)
    return LessonError(f"in {edition}, cell {name!r}: {what.strip()}", edition.code, line)


def _store(notebook: NotebookNode, path: Path) -> str:
    """Write the notebook, unless what is there already shows the same; tell which.

    Another processor's last digits are so no change to a reader, or to git.
    """
    try:
        stored = nbformat.read(path, as_version=4)
        nbformat.validate(stored)
    # Missing, or not a notebook.
    except (OSError, ValueError, KeyError, AttributeError, nbformat.ValidationError):
        stored = None
    if stored is not None and _shows_the_same(stored, notebook):
        return "unchanged"
    try:
        _write_whole(path, nbformat.writes(notebook) + "\n")
    except OSError as error:
        raise LessonError(f"cannot be written: {error.strerror}", path) from None
    return "written"


def _shows_the_same(stored: NotebookNode, fresh: NotebookNode) -> bool:
    """The same in all but its outputs, and outputs that agree."""

    def without_outputs(notebook: NotebookNode) -> dict[str, Any]:
        cells = [{**cell, "outputs": None} for cell in notebook.cells]
        return {**notebook, "cells": cells}

    def outputs(notebook: NotebookNode) -> list[Any]:
        return [cell.get("outputs", []) for cell in notebook.cells]

    same_lesson = without_outputs(stored) == without_outputs(fresh)
    return same_lesson and agreement.difference(outputs(stored), outputs(fresh)) is None


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
