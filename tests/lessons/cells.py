"""What a lesson's claims (LESSON/claims.py) are tested with: a pytest plugin (conftest.py).

``.venv/bin/python -m pytest lessons/LESSON/claims.py --framework jax``: the code file runs from top to
bottom, cell by cell, and each test looks at what the cells left behind. Besides its tests a file of claims
has what tests/lessons/test_notebooks.py holds all the lesson's notebooks to:

``DETERMINED``
    the cells that show the same in every framework, to the last digit
``IN_ANOTHER_FORM``
    those that a framework shows in its own way

A lesson that trains models has ``BUDGETS``, too: in each framework the steps, the examples in each, and the rate.
"""

import ast
import inspect
import io
import os
import re
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from d2l_compat._shared.arrays import to_numpy
from d2l_compat.frameworks import FRAMEWORKS
from tools.compare.numbers import NUMBER
from tools.weave.lessons import ROOT, Notebook, find_frameworks

if TYPE_CHECKING:
    from tools.weave.programs import ProgramCell


# A failed claim says what was compared, there too.
pytest.register_assert_rewrite("tests.lessons.shared_claims")

# What the cells of a notebook left behind, where claims are tested in its kernel.
LEFT_BEHIND = pytest.StashKey[Mapping[str, "ExecutedCell"]]()


WRITTEN = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?=f?\b)")


def claims_of(lesson: Path) -> ModuleType:
    name = f"lessons.{lesson.name}.claims"
    return import_module(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--as-needed",
        action="store_true",
        help="a lesson's cell is executed once a test asks for it",
    )
    parser.addoption("--first", metavar="CELL", help="begin with the claims about this cell")


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """A lesson claims nothing in a framework that it is not in."""
    if first := config.getoption("first"):
        items.sort(key=lambda item: not is_about(item, first))
    framework = config.getoption("framework")
    left_out = [
        item
        for item in items
        if item.path.name == "claims.py"
        and item.path.parent.name != "live"
        and framework not in find_frameworks(item.path.parent)
    ]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def is_about(item: pytest.Item, cell: str) -> bool:
    """Whether the test names this cell, or has its name from outside."""
    if not isinstance(item, pytest.Function):
        return False
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return cell in given or f'"{cell}"' in inspect.getsource(item.function)


@dataclass
class ExecutedCell:
    """What one cell left behind."""

    source: str
    value: Any  # of its last expression
    printed: str
    figures: list[Any]
    names: dict[str, Any]

    def again(self, **names: Any) -> str:
        """What it prints once more, where some names mean something else."""
        with redirect_stdout(io.StringIO()) as printed:
            exec(self.source, {**self.names, **names})
        return printed.getvalue()

    def passed_through(self, variable: str) -> list[Any]:
        """What its loop on the outermost level goes through that gives this name to each."""
        loops = [part for part in ast.parse(self.source).body if isinstance(part, ast.For)]
        (found,) = (loop for loop in loops if ast.unparse(loop.target) == variable)
        iterable = ast.Expression(found.iter)
        return list(eval(compile(iterable, "<loop>", "eval"), dict(self.names)))

    @property
    def rows(self) -> list[list[float]]:
        """The numbers of each line that it printed; lines without one are left out."""
        return rows_of(self.printed)

    @property
    def numbers(self) -> set[float]:
        """Those in its code, Java's too."""
        return {float(each) for each in WRITTEN.findall(self.source)}

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
        """The curves' names, in their order."""
        (figure,) = self.figures
        return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


class Cells(Mapping[str, ExecutedCell]):
    """A lesson's cells by their names, each executed once one of them or a later one is asked for."""

    def __init__(self, code: "list[ProgramCell]") -> None:
        # As in a notebook, where what cells define is that of the module __main__.
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._all = {cell.name: cell for cell in code}
        self._to_come = deque(code)
        self._executed: dict[str, ExecutedCell] = {}

    def __getitem__(self, name: str) -> ExecutedCell:
        while name in self._all and name not in self._executed:
            self._execute(self._to_come.popleft())
        return self._executed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def _execute(self, cell: "ProgramCell") -> None:
        # Here: this plugin is in every process that runs tests.
        import matplotlib.pyplot as plt

        names = self._names
        *statements, last = ast.parse(cell.source).body
        value = None
        with redirect_stdout(io.StringIO()) as printed:
            if isinstance(last, ast.Expr):
                exec(compile(ast.Module(statements, []), cell.name, "exec"), names)
                value = eval(compile(ast.Expression(last.value), cell.name, "eval"), names)
            else:
                exec(cell.source, names)
        figures = [plt.figure(number) for number in plt.get_fignums()]
        self._executed[cell.name] = ExecutedCell(
            cell.source, value, printed.getvalue(), figures, dict(names)
        )
        plt.close("all")


@pytest.fixture(scope="module")
def cells(request: pytest.FixtureRequest) -> Mapping[str, ExecutedCell]:
    """What each cell of the lesson left behind, in the framework asked for."""
    if left_behind := request.config.stash.get(LEFT_BEHIND, None):
        return left_behind
    from tools.weave.programs import read_code
    from tools.weave.prose import ORIGINAL

    framework = request.config.getoption("framework")
    code = Notebook(request.path.parent, ORIGINAL, framework).code
    cells = Cells([*read_code(code).values()])
    if not request.config.getoption("as_needed"):
        # From top to bottom: what a test draws at random leaves the next cell's numbers alone.
        list(cells.values())
    return cells


class Rows(Mapping[str, list[list[float]]]):
    """The numbers of each line that a cell printed, by the cell's name."""

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
def python_alone(request: pytest.FixtureRequest) -> None:
    """For a test that executes a lesson's cell or function again with other names, or reads its syntax."""
    if not FRAMEWORKS[request.config.getoption("framework")].is_python:
        pytest.skip("a cell in Java cannot be executed with other names")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, python_alone: None) -> Callable[..., None]:
    """Has one of the lesson's functions find others in place of those that it calls, by their names."""

    def exchange(function: Any, **others: Any) -> None:
        for name, other in others.items():
            monkeypatch.setitem(function.__globals__, name, other)

    return exchange


@pytest.fixture
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.config.getoption("framework")
    return name


@pytest.fixture
def assert_trained_on(
    request: pytest.FixtureRequest, cells: Mapping[str, ExecutedCell], framework: str
) -> Callable[[str, str, int], None]:
    """Check what models are trained on: so many steps, each with so many examples, and the rate, as the lesson's BUDGETS
    have them; and where the cell can be executed again, that what it draws is of this length."""
    budgets = request.module.BUDGETS
    steps, batch, *_ = budget = budgets.get(framework, budgets["others"])

    def check(cell: str, draws: str, length: int) -> None:
        assert {*budget} <= cells["train"].numbers
        if not FRAMEWORKS[framework].is_python:
            return
        watch, names = request.getfixturevalue("watch"), cells[cell].names

        def run(watched: Callable[..., Any]) -> None:
            watch(names["train"], **{draws: watched})
            cells[cell].again()

        drawn = [first for first, *_ in first_calls(run, names[draws])]
        assert {len(each) for each in drawn} <= {1, batch, steps * batch}
        assert {each.shape[1] for each in drawn} == {length}

    return check


class EnoughError(Exception):
    """Ends a function that was watched, once it has told what it does."""


def first_calls(
    run: Callable[[Callable[..., Any]], Any], function: Callable[..., Any]
) -> list[Any]:
    """What ``function`` gives in its first calls while ``run`` runs, which is handed it, and then ended."""
    results: list[Any] = []

    def watched(*args: Any, **kwargs: Any) -> Any:
        if len(results) == 4:  # one is for a layer that takes its sizes from its input
            raise EnoughError
        results.append(function(*args, **kwargs))
        return results[-1]

    with suppress(EnoughError):
        run(watched)
    return results


# What cells leave behind, print and draw, read


def array(x: Any) -> np.ndarray:
    """Of any framework, in double precision."""
    return to_numpy("the lesson's", x).astype(float)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def rows_of(text: str) -> list[list[float]]:
    """The numbers of each line that has any."""
    return [*filter(None, map(numbers, text.splitlines()))]


def assert_printed(rows: Any, expected: Any, digits: int = 2) -> None:
    """These numbers, as they are rounded."""
    np.testing.assert_allclose(rows, expected, atol=0.51 * 10**-digits)


def assert_axes(cell: Any, across: str, down: str) -> None:
    """The names of its figure's axes, along its edges."""
    (figure,) = cell.figures
    named = [axes for axes in figure.axes if axes.get_images()]
    assert {axes.get_xlabel() for axes in named} - {""} == {across}
    assert {axes.get_ylabel() for axes in named} - {""} == {down}


def named(figure: str) -> list[str]:
    """The curves' names, in their order."""
    return re.findall(r"\. ([^.]+): \d+ points", figure)


def hold_recorded(
    left_behind: dict[str, dict[str, Any]], printed: dict[str, str], claims: str, framework: str
) -> None:
    """In the kernel: tests the claims; prints what pytest says of them. Raises AssertionError where one fails."""
    os.chdir(ROOT)
    fault = lacking_cells(printed, left_behind)
    if not fault:
        cells = {
            name: ExecutedCell(printed=printed[name], **left) for name, left in left_behind.items()
        }
        fault = claims_fault(cells, claims, framework)
    print(fault)
    assert not fault


def lacking_cells(names: Iterable[str], executed: Container[str]) -> str:
    """What is said where some cells were not executed; nothing where all were."""
    lacking = [name for name in names if name not in executed]
    return f"not tested, for these cells were not executed: {', '.join(lacking)}" if lacking else ""


def claims_fault(cells: Mapping[str, ExecutedCell], claims: str, framework: str) -> str:
    """Test a lesson's claims by what its cells left behind; return what pytest says where one fails."""

    class Given:
        def pytest_configure(self, config: pytest.Config) -> None:
            config.stash[LEFT_BEHIND] = cells

    options = ["-q", "--capture=sys", "--color=no", "--no-header", "--framework", framework]
    # What claims need, and no more: the start takes longer than most of them.
    options += ["--disable-plugin-autoload", "--noconftest", "--override-ini", "addopts="]
    options += ["--import-mode", "importlib", "--rootdir", str(ROOT)]
    for plugin in (
        "tests.frameworks",
        "tests.lessons.cells",
        "no:cacheprovider",
        "no:unraisableexception",
    ):
        options += ["-p", plugin]
    # Of plugins that are here already.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    with redirect_stdout(io.StringIO()) as said:
        code = pytest.main([claims, *options], plugins=[Given()])
    return said.getvalue() if code else ""
