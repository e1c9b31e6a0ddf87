"""nbval as this project teaches it (conftest.py): which changes of a notebook it lets pass.

A kernel takes seconds to start. So one run of pytest checks all notebooks, and a notebook holds
several changes, each in a cell of its own.
"""

import re
import shutil
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat import NotebookNode, v4

from tools.__main__ import main
from tools.agreement import FIGURE
from tools.lessons import ROOT

CODE = """\
# %% setup
from d2l_compat._plot import plot
n = 1

# %% figure
plot([0, 1, 2], [0, 1, 4], xlabel="x", ylabel="y")

# %% number
print(f"{2 / 3:.4f}")

# %% count
n = n + 1
n

# %% silent
n = n * 2

# %% object
object()

# %% ignored tags=["nbval-ignore-output"]
import time
time.time()
"""

Change = Callable[[NotebookNode], object]


def cell(notebook: NotebookNode, name: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if cell.id == name)


def stored(name: str, pattern: str, new: str) -> Change:
    """Changes what is stored of a cell's only output as text."""

    def change(notebook: NotebookNode) -> None:
        (output,) = cell(notebook, name).outputs
        place, key = (output.data, "text/plain") if "data" in output else (output, "text")
        place[key], count = re.subn(pattern, new, place[key])
        assert count == 1

    return change


def drawing(pattern: bytes, new: bytes) -> Change:
    """Changes the stored figure, but not the words beside it."""

    def change(notebook: NotebookNode) -> None:
        data = cell(notebook, "figure").outputs[0].data
        svg = FIGURE.fullmatch(data["text/html"])[1]
        changed, count = re.subn(pattern, new, b64decode(svg))
        assert count
        data["text/html"] = data["text/html"].replace(svg, b64encode(changed).decode())

    return change


def no_figure(notebook: NotebookNode) -> None:
    del cell(notebook, "figure").outputs[0].data["text/html"]


def cleared(name: str) -> Change:
    return lambda notebook: cell(notebook, name).update(outputs=[])


def source(name: str, code: str) -> Change:
    return lambda notebook: cell(notebook, name).update(source=code)


def one_more(notebook: NotebookNode) -> None:
    cell(notebook, "count").outputs *= 2


def one_from_nowhere(notebook: NotebookNode) -> None:
    cell(notebook, "silent").outputs = [v4.new_output("stream", text="0\n")]


def an_exception(notebook: NotebookNode) -> None:
    error = v4.new_output("error", ename="ValueError", evalue="no", traceback=["ValueError: no"])
    cell(notebook, "number").outputs = [error]


def reordered(notebook: NotebookNode) -> None:
    count, silent = (notebook.cells.index(cell(notebook, name)) for name in ("count", "silent"))
    notebook.cells.insert(count, notebook.cells.pop(silent))


ACCEPTED: list[Change] = [
    stored("number", "0.6667", "0.6666"),
    drawing(rb'(d="M \d+\.\d+)', rb"\g<1>9"),
    stored("object", "0x", "0xabc"),
    stored("ignored", r"\.", "1."),
]
# By the cell that tells: each change, and what is said of it.
REFUSED: dict[str, list[tuple[str, Change, str]]] = {
    "figure": [
        ("another colour", drawing(b"#0072b2", b"#d55e00"), "the fresh figure differs"),
        ("damaged", drawing(b"</svg>", b""), "the fresh figure differs"),
        ("lost", no_figure, "text/html"),
        ("other words", stored("figure", "plot of", "chart of"), "text/plain"),
    ],
    "number": [
        ("another", stored("number", "0.6667", "0.6600"), "0.6600"),
        ("cleared", cleared("number"), "Unexpected output fields"),
        ("an exception is stored", an_exception, "ename"),
        ("an exception is raised", source("number", "1 / 0"), "ZeroDivisionError"),
    ],
    "count": [
        ("another", stored("count", "2", "3"), "text/plain"),
        ("cleared", cleared("count"), "Unexpected output fields"),
        ("one more", one_more, "dissimilar number of outputs"),
        ("reordered", reordered, "text/plain"),
        ("other code", source("count", "n = n + 2\nn"), "text/plain"),
    ],
    "silent": [("one from nowhere", one_from_nowhere, "Missing output fields")],
    "object": [("of another type", stored("object", "object at", "subject at"), "subject")],
}
CASES = [
    pytest.param(turn, name, words, id=f"{name} {title}")
    for name, cases in REFUSED.items()
    for turn, (title, _, words) in enumerate(cases)
]

Report = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """What is said of each failed cell, by notebook; the n-th has each cell's n-th refused change."""
    root = tmp_path_factory.mktemp("project")
    lesson, checked = root / "lessons" / "tiny", root / "checked"
    for folder in (lesson, checked):
        folder.mkdir(parents=True)
    names = re.findall("# %% ([a-z]+)", CODE)
    (lesson / "text.en.md").write_text("".join(f"<<{name}>>\n" for name in names))
    (lesson / "code.a.py").write_text(CODE)
    assert main(["--root", str(root)]) == 0
    executed = root / "notebooks" / "en" / "a" / "tiny.ipynb"

    turns = zip_longest(*REFUSED.values())
    changes = [[], ACCEPTED, *([case[1] for case in turn if case] for turn in turns)]
    titles = ["unchanged", "accepted", *map(str, range(len(changes) - 2))]
    order = {}
    for title, changed in zip(titles, changes, strict=True):
        notebook = nbformat.read(executed, as_version=4)
        for change in changed:
            change(notebook)
        nbformat.write(notebook, checked / f"{title}.ipynb")
        order[title] = [cell.id for cell in notebook.cells]

    shutil.copy(ROOT / "conftest.py", checked)
    options = ["-c", ROOT / "pyproject.toml", "--rootdir", checked, "-p", "no:cacheprovider"]
    words = ["--nbval", "--color", "no", "--junit-xml", root / "report.xml"]
    command = [sys.executable, "-m", "pytest", *options, *words, checked]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    failed: Report = {title: {} for title in order}
    cells = ElementTree.parse(root / "report.xml").findall(".//testcase")
    assert len(cells) == len(order) * len(names)
    for item in cells:
        title, number = Path(item.get("classname")).stem, int(item.get("name").split()[1])
        faults = [*item.findall("failure"), *item.findall("error")]
        if faults:
            failed[title][order[title][number]] = faults[0].text
    return failed


@pytest.mark.parametrize("title", ["unchanged", "accepted"])
def test_what_makes_no_difference_passes(report, title):
    assert report[title] == {}


@pytest.mark.parametrize(("turn", "name", "words"), CASES)
def test_what_differs_fails_and_says_how(report, turn, name, words):
    assert words in report[str(turn)][name]


def test_only_what_differs_fails(report):
    for turn in range(max(map(len, REFUSED.values()))):
        names = {name for name, cases in REFUSED.items() if turn < len(cases)}
        assert report[str(turn)].keys() == names
