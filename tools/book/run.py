"""Run the cells of a page in a fresh kernel until one fails, and find the cause of the failure."""

import asyncio
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from tools.book import image_data, stand_ins
from tools.book.compare import find_difference, read_outputs
from tools.book.epochs import EPOCHS, cap_epochs
from tools.book.pages import Page
from tools.book.results import read_edition
from tools.run.kernels import KernelWorkspace
from tools.weave.lessons import ROOT

# A kernel's first cell imports one of the packages, and sets up the record of what the page shows.
SHIM_SETUP = """\
import d2l_compat.alias
from d2l_compat._shared.data import hub
hub.verify_check_sum = lambda path, check_sum: None  # the files are stand-ins with other checksums
import matplotlib  # reads the variable MPLBACKEND before the tools remove it
from tools.book import record
record.start({framework!r})
"""
UPSTREAM_SETUP = """\
import matplotlib
from tools.book import record
record.use_upstream({framework!r}, {version!r})
record.start({framework!r})
"""
# A page that loads Fashion-MNIST with the framework, which would download it.
OWN_IMAGES = re.compile(r"(datasets|vision)\.FashionMNIST\(|fashion_mnist\.load_data\(")
# Settings that let today's libraries run the pages' old code. Readers need them as well.
SWITCHES = {"TF_USE_LEGACY_KERAS": "1", "PANDAS_FUTURE_INFER_STRING": "0"}
# The versions of d2l for which the editions of the book were written; other editions use the newest.
VERSIONS = {"zh": "0.17.6"}
NEWEST = "1.0.3"
MISSING_PACKAGE = re.compile(r"it is not installed|^ImportError: Failed importing \w+\.")
GPU = re.compile(r"\bGPU\b|CUDA|NVIDIA|gpu:\d|num_gpus|\.cuda\(|non cpu device", re.IGNORECASE)
# A line of a traceback that indexes the list of GPUs, or the parts of a batch that was split among them.
INDEXED_GPU = re.compile(r"^-*> ?\d+ .*\b(devices(\('gpu'\))?|[xy]_shards)\[\d\]", re.MULTILINE)
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
    passed: int  # number of cells before the one that failed
    seconds: float
    error: str = ""  # first line of the message
    line: int = 0  # of the failed cell, in the page
    cause: str = ""  # a key of CAUSES
    compared: int = 0  # number of cells that print or draw something, here and on upstream
    equal: int = 0
    difference: str = ""  # the first, with its line in the page

    @property
    def has_passed(self) -> bool:
        return self.passed == self.cells


CAUSES = {
    "name": "a name that the shim does not have yet",
    "shim": "the shim",
    "framework": "today's framework, or another package",
    "page": "the page itself, or its assumptions about an older framework",
    "package": "a package that is not installed",
    "gpu": "there is no GPU",
    "network": "the page needs a download of its own",
    "time": "the time limit",
}


@dataclass(frozen=True)
class Run:
    passed: int  # number of cells after the setup
    cells: list[NotebookNode]  # with their outputs
    error: str = ""
    cause: str = ""


def run_page(page: Page, framework: str, limit: float, epochs: int = EPOCHS) -> Outcome:
    """Run a page in a temporary folder, with small stand-ins for its data; run it on upstream too, and compare.

    ``limit`` is in seconds, for all cells of one run together; training stops after ``epochs`` epochs.
    """
    cells = page.cells(framework)
    book = page.path.parent.parent
    code = "\n".join(cell.source for cell in cells)
    sources = [cap_epochs(cell.source, epochs) for cell in cells]
    num_images = stand_ins.FEW_IMAGES if "resize=" in code else stand_ins.MANY_IMAGES
    if OWN_IMAGES.search(code):
        num_images = stand_ins.OWN_IMAGES
    num_sentences = stand_ins.LONG_NOVEL if "TimeMachine(" in code else stand_ins.SHORT_NOVEL
    version = VERSIONS.get(read_edition(book), NEWEST)
    started = time.monotonic()
    with TemporaryDirectory(prefix="book-") as folder:
        data = Path(folder) / "data"
        stand_ins.make_data(data, num_images, num_sentences)
        image_data.make_archives(data, code)
        environment = {
            **os.environ,
            **SWITCHES,
            "D2L_VERSION": "" if version == NEWEST else "0.17",
            "D2L_DATA": str(data),
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            # Let pages import whatever the caller can import.
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.getenv("PYTHONPATH")))),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }

        def run(name: str, setup: str) -> Run:
            # Two levels down, so that ../data and ../img are within the folder.
            work = Path(folder) / name / "work"
            work.mkdir(parents=True)
            image_data.copy_figures(work.parent / "img", code, book)
            return asyncio.run(_execute([setup, *sources], work, environment, limit))

        setup = SHIM_SETUP.format(framework=framework) + stand_ins.make_setup(framework, code)
        if OWN_IMAGES.search(code):
            setup += f"\nrecord.replace_images({framework!r})"
        ours = run("shim", setup)
        upstream_setup = UPSTREAM_SETUP.format(framework=framework, version=version)
        theirs = run("upstream", upstream_setup) if ours.passed else Run(0, [])
    differences = {}
    for page_cell, *pair in zip(cells, ours.cells, theirs.cells, strict=False):
        outputs = [read_outputs(cell) for cell in pair]
        if any(outputs):
            differences[page_cell.line] = find_difference(*outputs)
    first = (f"line {line}: {text}" for line, text in differences.items() if text)
    return Outcome(
        page.name,
        framework,
        len(cells),
        ours.passed,
        time.monotonic() - started,
        ours.error,
        cells[ours.passed].line if ours.error else 0,
        ours.cause,
        len(differences),
        sum(not text for text in differences.values()),
        next(first, ""),
    )


async def _execute(
    sources: list[str], work: Path, environment: dict[str, str], limit: float
) -> Run:
    """Return the cells that passed after the setup, and the error of the next one with its cause."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    workspace = KernelWorkspace("python3")
    manager = AsyncKernelManager(**workspace.settings)
    client = NotebookClient(notebook, km=manager, record_timing=False)
    deadline = time.monotonic() + limit
    passed = 0
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def finish(error: str = "", cause: str = "") -> Run:
        return Run(passed, notebook.cells[1 : passed + 1], error, cause)

    try:
        await client.async_start_new_kernel(cwd=str(work), env=environment, **quiet)
        await client.async_start_new_kernel_client()
        for number, cell in enumerate(notebook.cells):
            client.timeout = max(1, int(deadline - time.monotonic()))
            passed = max(0, number - 1)
            await client.async_execute_cell(cell, number)
        passed = len(sources) - 1
        return finish()
    except CellTimeoutError:
        return finish(f"more than {limit:.0f} seconds", "time")
    except DeadKernelError:
        return finish("the kernel died", "framework")
    except CellExecutionError as failure:
        return finish(*_describe_failure(failure, cell))
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
        await manager.shutdown_kernel(now=True)
        workspace.cleanup()


def _describe_failure(failure: CellExecutionError, cell: NotebookNode) -> tuple[str, str]:
    """Return the error of a failed cell and its cause."""
    lines = [line for output in cell.outputs for line in output.get("traceback", [])]
    trace = ANSI.sub("", "\n".join(lines))
    message, *more = ANSI.sub("", failure.evalue).strip().splitlines() or [""]
    if more and message.startswith("Traceback"):  # MXNet's engine puts its message last
        message = more[-1]
    return f"{failure.ename}: {message}", find_cause(failure.ename, message, trace)


def find_cause(name: str, message: str, trace: str) -> str:
    """Return the cause of an error, from its message and from the last frame of its traceback."""
    files = [match["file"] for match in FRAME.finditer(trace)]  # None for a cell
    last_file = files[-1] if files else None
    if "has no such name" in message:
        return "name"
    if name == "ModuleNotFoundError" or MISSING_PACKAGE.search(f"{name}: {message}"):
        return "package"
    # The second condition holds for a page that uses more GPUs than the machine has.
    if GPU.search(f"{name} {message}") or (name == "IndexError" and INDEXED_GPU.search(trace)):
        return "gpu"
    if NETWORK.search(f"{name} {message}"):
        return "network"
    if last_file is None:
        return "page"
    is_ours = Path(last_file).expanduser().is_relative_to(ROOT / "d2l_compat")
    return "shim" if is_ours else "framework"
