"""The claims of the lessons, tested while nbval executes the notebooks: a pytest plugin (conftest.py).

``pytest --nbval --claims notebooks/en/jax``: after a notebook's last cell, what its cells left behind is held to
LESSON/claims.py, in the same kernel. So no lesson is executed twice, and what the claims are held to is what
nbval has compared. A lesson's notebooks in other languages have the same program: one of them is held to its
claims, that in the original language. Java's claims are asked in tests/test_claims_in_java.py.
"""

import contextlib
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from d2l_compat.frameworks import FACES
from tests.lessons import LEFT_BEHIND, ExecutedCell
from tools.run.page_kernel import KernelDiedError
from tools.run.regression import Cell, Notebook
from tools.weave.lessons import ROOT, Edition, editions
from tools.weave.programs import read_code

RECORDING = Path(__file__).with_name("recording.py")
BEGIN = "shell.recording = Recording(shell, sources)"
END = """
import sys
sys.path.insert(0, root)
from tests.claims_in_notebooks import hold
hold(shell.recording.left_behind, printed, claims, framework)
"""


def _apart(code: str, **given: Any) -> str:
    """To be executed in a kernel, where the notebook's names stay as they are."""
    return f"exec({code!r}, {{'shell': get_ipython(), **{given!r}}})"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--claims", action="store_true", help="hold the notebooks to their lessons' claims, too"
    )


class Claims(pytest.Item):
    """Those of a notebook's lesson; they come after its last cell."""

    parent: Notebook

    def __init__(self, edition: Edition, cells: list[Cell], **given: Any) -> None:
        super().__init__(name="claims", **given)
        self.edition = edition
        program = read_code(edition.code, edition.language)
        self.sources = {name: cell.source for name, cell in program.items()}
        self.cells = [cell for cell in cells if cell.shared.name in self.sources]
        self.add_marker(pytest.mark.random_order(disabled=True))

    def begin(self) -> None:
        """Before the notebook's first cell."""
        code = RECORDING.read_text(encoding="utf-8") + BEGIN
        said, fails = self.parent.kernel.tell(_apart(code, sources=self.sources))
        assert not fails, said

    def runtest(self) -> None:
        kernel = self.parent.kernel
        printed = dict.fromkeys(self.sources, "")
        for cell in self.cells:
            printed[cell.shared.name] = kernel.printed(cell.cell_num, cell.shared)
        claims, framework = str(self.edition.folder / "claims.py"), self.edition.framework
        given = {"root": str(ROOT), "claims": claims, "framework": framework}
        try:
            said, fails = kernel.tell(_apart(END, printed=printed, **given))
        except KernelDiedError:
            said, fails = "not tested: the kernel died", True
        if fails:
            pytest.fail(said, pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self.path.name}: the claims of its lesson"


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    if not config.getoption("claims"):
        return
    held = {edition.notebook: edition for edition in _to_be_held()}
    for notebook, cells in _cells_of_notebooks(items).items():
        if edition := held.get(notebook.path.resolve()):
            claims = Claims.from_parent(notebook, edition=edition, cells=cells)
            cells[0].stash[BEGINS] = claims
            items.insert(items.index(cells[-1]) + 1, claims)


def _to_be_held() -> Iterable[Edition]:
    """Of each lesson in each framework the first language, which is the original wherever it is told in it."""
    first: dict[Path, Edition] = {}
    for edition in editions(frameworks=[*FACES]):
        first.setdefault(edition.code, edition)
    return first.values()


BEGINS = pytest.StashKey[Claims]()


def _cells_of_notebooks(items: list[pytest.Item]) -> dict[Notebook, list[Cell]]:
    found: dict[Notebook, list[Cell]] = {}
    for item in items:
        if isinstance(item, Cell):
            found.setdefault(item.parent, []).append(item)
    return found


@pytest.hookimpl(trylast=True)  # once there is a kernel
def pytest_runtest_setup(item: pytest.Item) -> None:
    if claims := item.stash.get(BEGINS, None):
        claims.begin()


def hold(
    left_behind: dict[str, dict[str, Any]], printed: dict[str, str], claims: str, framework: str
) -> None:
    """In the kernel: tests the claims; prints what pytest says of them. Raises AssertionError where one fails."""
    if lacking := [name for name in printed if name not in left_behind]:
        print(f"not tested, for these cells were not executed: {', '.join(lacking)}")
        raise AssertionError
    cells = {
        name: ExecutedCell(printed=printed[name], **left) for name, left in left_behind.items()
    }

    class Given:
        def pytest_configure(self, config: pytest.Config) -> None:
            config.stash[LEFT_BEHIND] = cells

    os.chdir(ROOT)
    options = ["-q", "--capture=sys", "-p", "no:cacheprovider", "--color=no", "--no-header"]
    options += [
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]  # of plugins that are here already
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = pytest.main([claims, "--framework", framework, *options], plugins=[Given()])
    print(said.getvalue())
    assert code == 0
