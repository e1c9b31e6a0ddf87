"""Test the lessons' claims while nbval executes the notebooks: a pytest plugin (conftest.py).

``pytest --nbval --claims notebooks/en/jax`` tests the claims of a lesson on the variables, output and figures of its
notebook, in the same kernel. So no lesson is executed twice, and claims are tested on what nbval has compared
(``--nbval-lax --claims``: on what it has executed). A lesson's notebooks in other languages have the same program,
so only the one in the original language is tested.

The claims, LESSON/claims.py, come after the last cell, and the results of each cell are recorded until then. In Python
they stay in the kernel, where the claims are tested; a Java kernel sends them (tests/lessons/java), and the claims are
tested here.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nbval.plugin import IPyNbCell

from d2l_compat.frameworks import FRAMEWORKS
from tests.lessons.cells import describe_missing_cells, find_claims_error
from tests.lessons.java.values import Java, JavaCell, JavaError, Names, find_assigned_names
from tools.run.page_kernel import Execution, KernelDiedError, PageKernel
from tools.run.regression import NotebookCell, NotebookFile
from tools.weave.lessons import ROOT, Notebook, list_notebooks
from tools.weave.programs import read_code

RECORDING = Path(__file__).with_name("recording.py")
START_RECORDING = "shell.recording = Recording(shell, sources)"
RUN_CLAIMS = """
import sys
sys.path.insert(0, root)
from tests.lessons.cells import run_recorded_claims
run_recorded_claims(shell.recording.results, printed, claims, framework)
"""


def _isolate(code: str, **names: Any) -> str:
    """Return code that runs in its own namespace, so that the notebook's names do not change."""
    return f"exec({code!r}, {{'shell': get_ipython(), **{names!r}}})"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--claims", action="store_true", help="test the lessons' claims in the notebooks, too"
    )


class Claims(pytest.Item):
    """The claims of a notebook's lesson, which come after its cells."""

    parent: NotebookFile

    def __init__(self, notebook: Notebook, **kwargs: Any) -> None:
        super().__init__("claims", **kwargs)
        self.add_marker(pytest.mark.random_order(disabled=True))
        self.notebook = notebook
        program = read_code(notebook.code, notebook.language)
        self.sources = {name: cell.source for name, cell in program.items()}
        self.claims = str(notebook.lesson / "claims.py")

    @property
    def kernel(self) -> PageKernel:
        return self.parent.kernel

    def find_error(self) -> str:
        """Return why the claims fail, or an empty string."""
        raise NotImplementedError

    def setup(self) -> None:
        # Like a cell, expect to fail if an earlier cell ended the kernel.
        IPyNbCell.setup(self)

    def runtest(self) -> None:
        try:
            message = self.find_error()
        except KernelDiedError:
            self.parent.timed_out = True
            message = "not tested: the kernel died"
        except TimeoutError:
            self.parent.timed_out = True
            message = f"not tested: longer than {self.kernel.cell_timeout:g} seconds"
        if message:
            pytest.fail(message, pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.nodeid


class PythonClaims(Claims):
    """The claims of a lesson in Python, tested in its kernel."""

    def __init__(self, cells: list[NotebookCell], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells = [cell for cell in cells if cell.code_cell.name in self.sources]

    def start_recording(self) -> None:
        """Start recording, before the notebook's first cell."""
        code = RECORDING.read_text(encoding="utf-8") + START_RECORDING
        result = self.kernel.execute_extra(_isolate(code, sources=self.sources))
        assert not result.traceback, result.traceback

    def find_error(self) -> str:
        printed = dict.fromkeys(self.sources, "")
        for cell in self.cells:
            if execution := _find_execution(cell):
                printed[cell.code_cell.name] = execution.printed
        names = {"root": str(ROOT), "claims": self.claims, "framework": self.notebook.framework}
        result = self.kernel.execute_extra(_isolate(RUN_CLAIMS, printed=printed, **names))
        return (result.printed or result.traceback) if result.traceback else ""


class JavaClaims(Claims):
    """The claims of a lesson in Java, tested on values from its kernel."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cells: dict[str, JavaCell] = {}
        self.keys: dict[str, str] = {}  # of stored variables, by their names
        self.java: Java | None = None
        self.error = ""  # of the first cell whose values could not be stored

    def store(self, cell: NotebookCell) -> None:
        """Store a cell's variables after it has run, since later cells may change them."""
        name = cell.code_cell.name
        execution = _find_execution(cell)
        if cell.code_cell.source != self.sources.get(name) or not execution or execution.traceback:
            return
        names = find_assigned_names(cell.code_cell.source)
        try:
            if self.java is None:
                self.java = Java(self.kernel)
                self.java.define_helpers()
            self.java.store(name, names, execution.num_figures)
        except JavaError as error:
            self.error = self.error or f"{name}: {error}"
            return
        self.keys = self.keys | {variable: f"{name}/{variable}" for variable in names}
        variables = Names(self.java, self.keys)
        self.cells[name] = JavaCell(self.java, name, cell.code_cell.source, execution, variables)

    def find_error(self) -> str:
        message = describe_missing_cells(self.sources, self.cells)
        if message:
            return f"{message}\n{self.error}".rstrip()
        return find_claims_error(self.cells, self.claims, self.notebook.framework)


def _find_execution(cell: NotebookCell) -> Execution | None:
    return cell.parent.kernel.find_execution(cell.cell_num, cell.code_cell)


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    if not config.getoption("claims"):
        return
    notebooks = {notebook.path: notebook for notebook in _list_tested_notebooks()}
    for file, cells in _group_by_notebook(items).items():
        if notebook := notebooks.get(file.path.resolve()):
            if FRAMEWORKS[notebook.framework].is_python:
                claims = PythonClaims.from_parent(file, notebook=notebook, cells=cells)
                cells[0].stash[PYTHON_CLAIMS] = claims
            else:
                claims = JavaClaims.from_parent(file, notebook=notebook)
                for cell in cells:
                    cell.stash[JAVA_CLAIMS] = claims
            items.insert(items.index(cells[-1]) + 1, claims)


def _list_tested_notebooks() -> Iterable[Notebook]:
    """Return a notebook for each lesson and framework, in the original language if there is one."""
    first: dict[Path, Notebook] = {}
    for notebook in list_notebooks():
        first.setdefault(notebook.code, notebook)
    return first.values()


PYTHON_CLAIMS = pytest.StashKey[PythonClaims]()
JAVA_CLAIMS = pytest.StashKey[JavaClaims]()


def _group_by_notebook(items: list[pytest.Item]) -> dict[NotebookFile, list[NotebookCell]]:
    cells: dict[NotebookFile, list[NotebookCell]] = {}
    for item in items:
        if isinstance(item, NotebookCell):
            cells.setdefault(item.parent, []).append(item)
    return cells


@pytest.hookimpl(trylast=True)  # after the kernel has started
def pytest_runtest_setup(item: pytest.Item) -> None:
    if claims := item.stash.get(PYTHON_CLAIMS, None):
        claims.start_recording()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        yield
    finally:
        if (claims := item.stash.get(JAVA_CLAIMS, None)) and isinstance(item, NotebookCell):
            with suppress(KernelDiedError, TimeoutError):  # the cell is then missing
                claims.store(item)
