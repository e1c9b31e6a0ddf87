"""The claims of the lessons, tested while nbval executes the notebooks: a pytest plugin (conftest.py).

``pytest --nbval --claims notebooks/en/jax``: what a notebook's cells leave behind is held to the claims of its
lesson, in the same kernel. So no lesson is executed twice, and what the claims are held to is what nbval has
compared (``--nbval-lax --claims``: what it has executed). A lesson's notebooks in other languages have the
same program: one of them is held to its claims, that in the original language.

The claims, LESSON/claims.py, come after the last cell: of each cell it is kept what it leaves behind. In Python that stays in
the kernel, and the claims are tested there; a kernel of Java hands it over (tests/lessons/java), and they are tested here.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nbval.plugin import IPyNbCell

from d2l_compat.frameworks import FRAMEWORKS
from tests.lessons.cells import claims_fault, lacking_cells
from tests.lessons.java.values import Java, JavaCell, JavaError, Names, assigned_names
from tools.run.page_kernel import Execution, KernelDiedError, PageKernel
from tools.run.regression import NotebookCell, NotebookFile
from tools.weave.lessons import ROOT, Notebook, list_notebooks
from tools.weave.programs import read_code

RECORDING = Path(__file__).with_name("recording.py")
BEGIN = "shell.recording = Recording(shell, sources)"
END = """
import sys
sys.path.insert(0, root)
from tests.lessons.cells import hold_recorded
hold_recorded(shell.recording.left_behind, printed, claims, framework)
"""


def _apart(code: str, **given: Any) -> str:
    """To be executed in a kernel, where the notebook's names stay as they are."""
    return f"exec({code!r}, {{'shell': get_ipython(), **{given!r}}})"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--claims", action="store_true", help="hold the notebooks to their lessons' claims, too"
    )


class Claims(pytest.Item):
    """About what a notebook's cells leave behind, after which they come."""

    parent: NotebookFile

    def __init__(self, notebook: Notebook, **given: Any) -> None:
        super().__init__("claims", **given)
        self.add_marker(pytest.mark.random_order(disabled=True))
        self.notebook = notebook
        program = read_code(notebook.code, notebook.language)
        self.sources = {name: cell.source for name, cell in program.items()}
        self.claims = str(notebook.lesson / "claims.py")

    @property
    def kernel(self) -> PageKernel:
        return self.parent.kernel

    def fault(self) -> str:
        """What is wrong with them; nothing where all is well."""
        raise NotImplementedError

    def setup(self) -> None:
        IPyNbCell.setup(self)  # they are cells: below one that ends the kernel, expected to fail

    def runtest(self) -> None:
        try:
            said = self.fault()
        except (KernelDiedError, TimeoutError) as error:
            self.parent.timed_out = True
            died = isinstance(error, KernelDiedError)
            limit = self.kernel.cell_timeout
            said = f"not tested: {'the kernel died' if died else f'longer than {limit:g} seconds'}"
        if said:
            pytest.fail(said, pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.nodeid


class ClaimsOfPython(Claims):
    """All those of a lesson."""

    def __init__(self, cells: list[NotebookCell], **given: Any) -> None:
        super().__init__(**given)
        self.cells = [cell for cell in cells if cell.code_cell.name in self.sources]

    def begin(self) -> None:
        """Before the notebook's first cell."""
        code = RECORDING.read_text(encoding="utf-8") + BEGIN
        told = self.kernel.execute_extra(_apart(code, sources=self.sources))
        assert not told.fault, told.fault

    def fault(self) -> str:
        printed = dict.fromkeys(self.sources, "")
        for cell in self.cells:
            if execution := _execution_of(cell):
                printed[cell.code_cell.name] = execution.printed
        given = {"root": str(ROOT), "claims": self.claims, "framework": self.notebook.framework}
        told = self.kernel.execute_extra(_apart(END, printed=printed, **given))
        return (told.printed or told.fault) if told.fault else ""


class ClaimsOfJava(Claims):
    """All those of a lesson, about what its cells in Java leave behind."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.kept: dict[str, JavaCell] = {}
        self.places: dict[str, str] = {}  # of the variables, by their names
        self.java: Java | None = None
        self.error = ""  # of the first cell whose values could not be kept

    def keep(self, cell: NotebookCell) -> None:
        """Once a cell has run: what it has set is another after the next."""
        name, execution = cell.code_cell.name, _execution_of(cell)
        if cell.code_cell.source != self.sources.get(name) or not execution or execution.fault:
            return
        names = assigned_names(cell.code_cell.source)
        try:
            if self.java is None:
                self.java = Java(self.kernel)
                self.java.begin()
            self.java.keep(name, names, execution.num_figures)
        except JavaError as error:
            self.error = self.error or f"{name}: {error}"
            return
        self.places = self.places | {each: f"{name}/{each}" for each in names}
        of_cell = Names(self.java, self.places)
        self.kept[name] = JavaCell(self.java, name, cell.code_cell.source, execution, of_cell)

    def fault(self) -> str:
        fault = lacking_cells(self.sources, self.kept)
        if fault:
            return f"{fault}\n{self.error}".rstrip()
        return claims_fault(self.kept, self.claims, self.notebook.framework)


def _execution_of(cell: NotebookCell) -> Execution | None:
    return cell.parent.kernel.find_execution(cell.cell_num, cell.code_cell)


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    if not config.getoption("claims"):
        return
    held = {notebook.path: notebook for notebook in _to_be_held()}
    for file, cells in _cells_of_notebooks(items).items():
        if notebook := held.get(file.path.resolve()):
            if FRAMEWORKS[notebook.framework].is_python:
                claims = ClaimsOfPython.from_parent(file, notebook=notebook, cells=cells)
                cells[0].stash[BEGINS] = claims
            else:
                claims = ClaimsOfJava.from_parent(file, notebook=notebook)
                for cell in cells:
                    cell.stash[KEEPS] = claims
            items.insert(items.index(cells[-1]) + 1, claims)


def _to_be_held() -> Iterable[Notebook]:
    """Of each lesson in each framework the first language, which is the original wherever it is told in it."""
    first: dict[Path, Notebook] = {}
    for notebook in list_notebooks():
        first.setdefault(notebook.code, notebook)
    return first.values()


BEGINS = pytest.StashKey[ClaimsOfPython]()
KEEPS = pytest.StashKey[ClaimsOfJava]()


def _cells_of_notebooks(items: list[pytest.Item]) -> dict[NotebookFile, list[NotebookCell]]:
    found: dict[NotebookFile, list[NotebookCell]] = {}
    for item in items:
        if isinstance(item, NotebookCell):
            found.setdefault(item.parent, []).append(item)
    return found


@pytest.hookimpl(trylast=True)  # once there is a kernel
def pytest_runtest_setup(item: pytest.Item) -> None:
    if claims := item.stash.get(BEGINS, None):
        claims.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        yield
    finally:
        if (claims := item.stash.get(KEEPS, None)) and isinstance(item, NotebookCell):
            with suppress(KernelDiedError, TimeoutError):  # its claims lack the cell then
                claims.keep(item)
