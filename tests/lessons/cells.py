"""Execute a lesson's cells for its claims (LESSON/claims.py): a pytest plugin (conftest.py).

``.venv/bin/python -m pytest lessons/LESSON/claims.py --framework jax`` runs the code file from top to bottom, cell by
cell, and the tests check its variables, output and figures. Besides tests, a claims file defines constants for
tests/lessons/test_notebooks.py:

``DETERMINISTIC``
    the cells whose output is the same in every framework, to the last digit
``VARYING_FORM``
    the cells whose output has a different form in some frameworks

A lesson that trains models also has ``BUDGETS``: each framework's steps, examples per step, and learning rate.
"""

import ast
import inspect
import io
import os
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pytest

from d2l_compat._shared.arrays import to_numpy
from d2l_compat.frameworks import FRAMEWORKS
from tools.compare.numbers import NUMBER
from tools.weave.lessons import ROOT, Notebook, find_frameworks

if TYPE_CHECKING:
    from tools.weave.programs import ProgramCell


# Make failed assertions in that module show the compared values.
pytest.register_assert_rewrite("tests.lessons.shared_claims")

# The executed cells of a notebook, if claims are tested in its kernel.
EXECUTED_CELLS = pytest.StashKey[Mapping[str, "ExecutedCell"]]()


def import_claims(lesson: Path) -> ModuleType:
    return import_module(f"lessons.{lesson.name}.claims")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--as-needed",
        action="store_true",
        help="execute a lesson's cell when a test needs it",
    )
    parser.addoption("--first", metavar="CELL", help="begin with the claims about this cell")


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Deselect claims of lessons that the framework does not have."""
    if first := config.getoption("first"):
        items.sort(key=lambda item: not is_about(item, first))
    framework = config.getoption("framework")
    deselected = [
        item
        for item in items
        if item.path.name == "claims.py"
        and item.path.parent.name != "live"
        and framework not in find_frameworks(item.path.parent)
    ]
    if deselected:
        items[:] = [item for item in items if item not in deselected]
        config.hook.pytest_deselected(items=deselected)


def is_about(item: pytest.Item, cell: str) -> bool:
    """Check whether the test names this cell, in its code or as a parameter."""
    if not isinstance(item, pytest.Function):
        return False
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return cell in parameters or f'"{cell}"' in inspect.getsource(item.function)


@dataclass
class ExecutedCell:
    """A cell's source, and its variables, output and figures after execution."""

    source: str
    value: Any  # the last expression's
    printed: str
    figures: list[Any]
    names: dict[str, Any]

    def run_again(self, **names: Any) -> str:
        """Execute the cell again with some names replaced, and return what it prints."""
        with redirect_stdout(io.StringIO()) as printed:
            exec(self.source, {**self.names, **names})
        return printed.getvalue()

    @property
    def rows(self) -> list[list[float]]:
        """The numbers in each printed line that has any; the range 0.1-0.2 is read as 0.1 and -0.2."""
        return parse_rows(self.printed)

    @property
    def numbers(self) -> set[float]:
        """The numbers in its code, not those in comments and docstrings."""
        nodes = ast.walk(ast.parse(self.source))
        constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
        return {float(value) for value in constants if isinstance(value, int | float)}

    @property
    def panels(self) -> list[Any]:
        """The heat maps of its only figure."""
        (figure,) = self.figures
        return [image for axes in figure.axes for image in axes.get_images()]

    @property
    def curves(self) -> list[np.ndarray]:
        """The curves of its only figure, each of shape (2, points)."""
        (figure,) = self.figures
        return [np.array(line.get_data(), float) for line in figure.axes[0].get_lines()]

    @property
    def legend(self) -> list[str]:
        """The names of the curves, in order."""
        (figure,) = self.figures
        return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


class Cells(Mapping[str, ExecutedCell]):
    """A lesson's cells by name, executed in order when one of them is needed."""

    def __init__(self, code: "list[ProgramCell]") -> None:
        # As in a notebook, cells define names of the module __main__.
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._all = {cell.name: cell for cell in code}
        self._remaining = deque(code)
        self._executed: dict[str, ExecutedCell] = {}

    def __getitem__(self, name: str) -> ExecutedCell:
        while name in self._all and name not in self._executed:
            self._execute(self._remaining.popleft())
        return self._executed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _execute(self, cell: "ProgramCell") -> None:
        # Imported here, since every process that runs tests imports this plugin.
        import matplotlib.pyplot as plt

        names = self._names
        *statements, last = ast.parse(cell.source).body
        value = None
        figures: list[Any] = []

        def close_figures() -> None:
            figures.extend(plt.figure(number) for number in plt.get_fignums())
            plt.close("all")

        # As in a notebook, a figure that is shown is closed.
        show = patch.object(plt, "show", close_figures)
        with show, redirect_stdout(io.StringIO()) as printed:
            if isinstance(last, ast.Expr):
                exec(compile(ast.Module(statements, []), cell.name, "exec"), names)
                value = eval(compile(ast.Expression(last.value), cell.name, "eval"), names)
            else:
                exec(cell.source, names)
        close_figures()
        self._executed[cell.name] = ExecutedCell(
            cell.source, value, printed.getvalue(), figures, dict(names)
        )


@pytest.fixture(scope="module")
def cells(request: pytest.FixtureRequest) -> Mapping[str, ExecutedCell]:
    """Return the lesson's executed cells in the framework."""
    if executed := request.config.stash.get(EXECUTED_CELLS, None):
        return executed
    from tools.weave.programs import read_code
    from tools.weave.prose import ORIGINAL

    framework = request.config.getoption("framework")
    code = Notebook(request.path.parent, ORIGINAL, framework).code
    cells = Cells([*read_code(code).values()])
    if not request.config.getoption("as_needed"):
        # Execute all cells first, so that random draws in tests do not change later cells.
        list(cells.values())
    return cells


class Rows(Mapping[str, list[list[float]]]):
    """The numbers in each line that a cell printed, by the cell's name."""

    def __init__(self, cells: Mapping[str, ExecutedCell]) -> None:
        self._cells = cells

    def __getitem__(self, name: str) -> list[list[float]]:
        return self._cells[name].rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)


@pytest.fixture(scope="module")
def rows(cells: Mapping[str, ExecutedCell]) -> Rows:
    return Rows(cells)


@pytest.fixture
def python_only(request: pytest.FixtureRequest) -> None:
    """Skip, in Java, a test that parses a cell, or executes it with other names."""
    if not FRAMEWORKS[request.config.getoption("framework")].is_python:
        pytest.skip("a cell in Java cannot be executed with other names")


@pytest.fixture
def replace_names(monkeypatch: pytest.MonkeyPatch, python_only: None) -> Callable[..., None]:
    """Return a function that replaces names in the module of one of the lesson's functions."""

    def replace(function: Any, **others: Any) -> None:
        for name, other in others.items():
            monkeypatch.setitem(function.__globals__, name, other)

    return replace


@pytest.fixture
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.config.getoption("framework")
    return name


@pytest.fixture
def assert_budget(
    request: pytest.FixtureRequest, cells: Mapping[str, ExecutedCell], framework: str
) -> Callable[..., None]:
    """Return a function that checks steps, examples per step and learning rate against the lesson's BUDGETS.

    In Python, the function also executes the cell again, and checks the length of the sequences that the cell draws.
    """
    budgets = request.module.BUDGETS
    budget = budgets.get(framework, budgets["others"])
    steps, batch, *_ = budget

    def check(cell: str, draw_function: str, *, length: int) -> None:
        assert {*budget} <= cells["train"].numbers
        if not FRAMEWORKS[framework].is_python:
            return
        replace_names = request.getfixturevalue("replace_names")
        names = cells[cell].names
        train = "fit" if "fit" in names else "train"

        def run(record_result: Callable[..., Any]) -> None:
            replace_names(names[train], **{draw_function: record_result})
            cells[cell].run_again()

        sequences = [first for first, *_ in record_first_calls(run, names[draw_function])]
        assert {len(x) for x in sequences} <= {1, batch, steps * batch}
        assert {x.shape[1] for x in sequences} == {length}

    return check


class EnoughCallsError(Exception):
    """Stops code that calls a recorded function, after enough calls."""


def record_first_calls(
    run: Callable[[Callable[..., Any]], Any], function: Callable[..., Any]
) -> list[Any]:
    """Call ``run`` with a recording version of ``function``, stop it after four calls, and return their results."""
    results: list[Any] = []

    def record_result(*args: Any, **kwargs: Any) -> Any:
        # One of the calls may only be to infer the sizes of a layer, from a small input.
        if len(results) == 4:
            raise EnoughCallsError
        results.append(function(*args, **kwargs))
        return results[-1]

    with suppress(EnoughCallsError):
        run(record_result)
    return results


# Reading variables, output and figures


def array(x: Any) -> np.ndarray:
    """Convert a tensor of any framework to a NumPy array in double precision."""
    return to_numpy("the lesson's", x).astype(float)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax over the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def read_words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def read_numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def parse_rows(text: str) -> list[list[float]]:
    """Return the numbers in each line that has any."""
    return [*filter(None, map(read_numbers, text.splitlines()))]


def assert_printed(rows: Any, expected: Any, digits: int = 2) -> None:
    """Check numbers that are rounded to this many digits."""
    np.testing.assert_allclose(rows, expected, atol=0.51 * 10**-digits)


def assert_axes(cell: Any, xlabel: str, ylabel: str) -> None:
    """Check the labels of the axes of a figure's heat maps."""
    (figure,) = cell.figures
    panels = [axes for axes in figure.axes if axes.get_images()]
    assert {axes.get_xlabel() for axes in panels} - {""} == {xlabel}
    assert {axes.get_ylabel() for axes in panels} - {""} == {ylabel}


def run_recorded_claims(
    recorded: dict[str, dict[str, Any]], printed: dict[str, str], claims: str, framework: str
) -> None:
    """Test the claims in a notebook's kernel, and print pytest's output. Raises AssertionError if one fails."""
    os.chdir(ROOT)
    message = describe_missing_cells(printed, recorded)
    if not message:
        cells = {name: ExecutedCell(printed=printed[name], **x) for name, x in recorded.items()}
        message = find_claims_error(cells, claims, framework)
    print(message)
    assert not message


def describe_missing_cells(names: Iterable[str], executed: Container[str]) -> str:
    """Return a message about cells that were not executed, empty if all were."""
    missing = [name for name in names if name not in executed]
    cells = ", ".join(missing)
    return f"not tested, because these cells were not executed: {cells}" if missing else ""


def find_claims_error(cells: Mapping[str, ExecutedCell], claims: str, framework: str) -> str:
    """Test a lesson's claims on its executed cells; return pytest's output if one fails."""

    class ExecutedCells:
        def pytest_configure(self, config: pytest.Config) -> None:
            config.stash[EXECUTED_CELLS] = cells

    options = ["-q", "--capture=sys", "--color=no", "--no-header", "--framework", framework]
    # Load only what claims need, because starting pytest takes longer than most claims.
    options += ["--disable-plugin-autoload", "--noconftest", "--override-ini", "addopts="]
    options += ["--import-mode", "importlib", "--rootdir", str(ROOT)]
    for plugin in (
        "tests.frameworks",
        "tests.lessons.cells",
        "no:cacheprovider",
        "no:unraisableexception",
    ):
        options += ["-p", plugin]
    # The plugins are imported already.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    with redirect_stdout(io.StringIO()) as output:
        code = pytest.main([claims, *options], plugins=[ExecutedCells()])
    return output.getvalue() if code else ""
