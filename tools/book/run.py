"""A page's cells, one after the other in a fresh kernel, until one fails; and where the failure comes from."""

import asyncio
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook

from tools.book import pictures, stand_ins
from tools.book.epochs import EPOCHS, with_fewer
from tools.book.pages import Cell, Page
from tools.book.results import edition_of
from tools.run.kernels import Workplace
from tools.weave.lessons import ROOT

BEFORE = """\
import d2l_compat.alias
from d2l_compat._shared.data import hub
hub.check = lambda path, check_sum: None  # the files are stand-ins, whatever sum a page names
"""
# What libraries keep for code of the time when the pages were written; their readers set them as well.
SWITCHES = {"TF_USE_LEGACY_KERAS": "1", "PANDAS_FUTURE_INFER_STRING": "0"}
# The d2l for which an edition of the book was written; of the others it is the newest.
VERSIONS = {"zh": "0.17"}
PACKAGE = re.compile(r"it is not installed|^ImportError: Failed importing \w+\.")
GPU = re.compile(r"\bGPU\b|CUDA|NVIDIA|gpu:\d|num_gpus|\.cuda\(|non cpu device", re.IGNORECASE)
# A line of a trace that takes one of the GPUs, or what had been split over them.
TAKEN = re.compile(r"^-*> ?\d+ .*\b(devices(\('gpu'\))?|[xy]_shards)\[\d\]", re.MULTILINE)
NETWORK = re.compile(
    r"ConnectionError|URLError|URL fetch|[Dd]ownload|Max retries|resolve host|gaierror"
)
FRAME = re.compile(r"^(?:File (?P<file>\S+?):\d+|Cell In\[\d+\], line \d+)", re.MULTILINE)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Outcome:
    page: str
    framework: str
    cells: int
    passed: int  # before the first that failed
    seconds: float
    error: str = ""  # its first line
    line: int = 0  # of the page
    cause: str = ""  # of CAUSES

    @property
    def ran(self) -> bool:
        return self.passed == self.cells


CAUSES = {
    "name": "a name that the shim does not have yet",
    "shim": "the shim",
    "framework": "today's framework, or another package",
    "page": "the page itself, or what it expects of an older framework",
    "package": "a package that is not installed",
    "gpu": "there is no GPU",
    "network": "the page fetches something itself",
    "time": "the time limit",
}


def run(page: Page, framework: str, limit: float, epochs: int = EPOCHS) -> Outcome:
    """With small stand-ins for the data, in a folder that is thrown away; ``limit`` seconds for all cells.

    Where training is told to go on for more, it ends after so many ``epochs``.
    """
    cells, book = page.cells(framework), page.path.parent.parent
    code = "\n".join(cell.source for cell in cells)
    images = stand_ins.FEW if "resize=" in code else stand_ins.MANY
    sentences = stand_ins.LONG if "TimeMachine(" in code else stand_ins.SHORT
    started = time.monotonic()
    with TemporaryDirectory(prefix="book-") as folder:
        work = Path(folder) / "page" / "work"  # ../data and ../img are in the folder as well
        work.mkdir(parents=True)
        stand_ins.make(Path(folder) / "data", images, sentences)
        pictures.make(Path(folder) / "data", code)
        pictures.show(work.parent / "img", code, book)
        before = BEFORE + stand_ins.before(framework, code)
        environment = {
            **os.environ,
            **SWITCHES,
            "D2L_VERSION": VERSIONS.get(edition_of(book), ""),
            "D2L_DATA": str(Path(folder) / "data"),
            "OMP_NUM_THREADS": "1",
            # What the caller has there is installed for pages, too.
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.getenv("PYTHONPATH")))),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
        short = [Cell(cell.line, with_fewer(cell.source, epochs)) for cell in cells]
        passed, error, why = asyncio.run(_execute(before, short, work, environment, limit))
    line = cells[passed].line if error else 0
    return Outcome(
        page.name, framework, len(cells), passed, time.monotonic() - started, error, line, why
    )


async def _execute(
    before: str, cells: list[Cell], work: Path, environment: dict[str, str], limit: float
) -> tuple[int, str, str]:
    """How many passed; of the next one the error, and its cause."""
    sources = before, *(cell.source for cell in cells)
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    workplace = Workplace("python3")
    manager = AsyncKernelManager(**workplace.settings)
    client = NotebookClient(notebook, km=manager, record_timing=False)
    end, passed = time.monotonic() + limit, 0
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        await client.async_start_new_kernel(cwd=str(work), env=environment, **quiet)
        await client.async_start_new_kernel_client()
        for number, cell in enumerate(notebook.cells):
            client.timeout = max(1, int(end - time.monotonic()))
            passed = max(0, number - 1)
            await client.async_execute_cell(cell, number)
    except CellTimeoutError:
        return passed, f"more than {limit:.0f} seconds", "time"
    except DeadKernelError:
        return passed, "the kernel died", "framework"
    except CellExecutionError as failure:
        return passed, *_told(failure, cell)
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
        await manager.shutdown_kernel(now=True)
        workplace.cleanup()
    return len(cells), "", ""


def _told(failure: CellExecutionError, cell: nbformat.NotebookNode) -> tuple[str, str]:
    # A figure may come after it.
    lines = [x for each in cell.outputs for x in each.get("traceback", [])]
    trace = ANSI.sub("", "\n".join(lines))
    first, *others = ANSI.sub("", failure.evalue).strip().splitlines() or [""]
    if others and first.startswith("Traceback"):  # MXNet's engine; its words come last
        first = others[-1]
    return f"{failure.ename}: {first}", cause(failure.ename, first, trace)


def cause(name: str, words: str, trace: str) -> str:
    """Of an error, by what it says and by where it was raised, the last frame of its trace."""
    files = [match["file"] for match in FRAME.finditer(trace)]
    last = files[-1] if files else None
    if "has no such name" in words:
        return "name"
    if name == "ModuleNotFoundError" or PACKAGE.search(f"{name}: {words}"):
        return "package"
    # It asks for one more than there are.
    if GPU.search(f"{name} {words}") or (name == "IndexError" and TAKEN.search(trace)):
        return "gpu"
    if NETWORK.search(f"{name} {words}"):
        return "network"
    if last is None:
        return "page"
    is_ours = Path(last).expanduser().is_relative_to(ROOT / "d2l_compat")
    return "shim" if is_ours else "framework"
