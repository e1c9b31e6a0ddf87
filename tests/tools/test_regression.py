"""nbval as this project teaches it (conftest.py): which changes of a notebook it lets pass.

A kernel takes seconds to start. So one run of pytest checks all notebooks, and a notebook holds
several changes, each in a cell of its own.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from base64 import b64encode, encodebytes
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import numpy as np
import pytest
from nbformat import NotebookNode, v4
from PIL import Image

from tests.conftest import list_lessons
from tools.__main__ import main
from tools.compare.figures import PNG, SVG
from tools.compare.pictures import as_png
from tools.weave.lessons import ROOT

CODE = """\
# %% setup
from d2l_compat._shared.plot import plot
n = 1

# %% figure
plot([0, 1, 2], [0, 1, 4], xlabel="x", ylabel="y")

# %% picture
from io import BytesIO
from IPython.display import Image
from PIL import Image as Pixels
file = BytesIO()
Pixels.new("RGB", (30, 20), "blue").save(file, "png")
Image(file.getvalue())

# %% number
print(f"{2 / 3:.4f}")

# %% count
n = n + 1
n

# %% loose tags=["tolerance:relative=0.02"]
print(f"{2 / 3:.3f}")

# %% tight tags=["tolerance:last_digits=0", "tolerance:relative=0"]
print(f"{2 / 3:.4f}")

# %% both
print("words")
7

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


def drawing(pattern: str, new: str, is_drawn: bool = False) -> Change:
    """Changes the stored figure, its PNG as well if ``is_drawn``, but not the words beside it."""

    def change(notebook: NotebookNode) -> None:
        data = cell(notebook, "figure").outputs[0].data
        data[SVG], count = re.subn(pattern, new, data[SVG])
        assert count
        if is_drawn:
            data[PNG] = b64encode(as_png(data[SVG])).decode()

    return change


def another_png(notebook: NotebookNode) -> None:
    """Of a pixel."""
    png = as_png('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')
    cell(notebook, "figure").outputs[0].data[PNG] = b64encode(png).decode()


def encode(image: Image.Image, **options: object) -> str:
    """In base64, broken into lines as some kernels do."""
    file = BytesIO()
    image.save(file, "png", **options)
    return encodebytes(file.getvalue()).decode()


def another_picture(png: str) -> Change:
    """Changes the PNG that has no SVG beside it."""
    return lambda notebook: cell(notebook, "picture").outputs[0].data.update({PNG: png})


def no_picture(notebook: NotebookNode) -> None:
    del cell(notebook, "picture").outputs[0].data[PNG]


BLUE = Image.new("RGB", (30, 20), "blue")
SPOTTED = BLUE.copy()
SPOTTED.paste("black", (4, 4, 8, 8))


def cleared(name: str) -> Change:
    return lambda notebook: cell(notebook, name).update(outputs=[])


def source(name: str, code: str) -> Change:
    return lambda notebook: cell(notebook, name).update(source=code)


def one_more(notebook: NotebookNode) -> None:
    cell(notebook, "count").outputs *= 2


def one_from_nowhere(notebook: NotebookNode) -> None:
    cell(notebook, "silent").outputs = [v4.new_output("stream", text="0\n")]


def turned(notebook: NotebookNode) -> None:
    cell(notebook, "both").outputs.reverse()


def reordered(notebook: NotebookNode) -> None:
    count, silent = (notebook.cells.index(cell(notebook, name)) for name in ("count", "silent"))
    notebook.cells.insert(count, notebook.cells.pop(silent))


ACCEPTED: list[Change] = [
    stored("loose", "0.667", "0.660"),
    stored("number", "0.6667", "0.6666"),
    drawing(r'(d="M \d+\.\d+)', r"\g<1>9"),
    stored("object", "0x", "0xabc"),
    stored("ignored", r"\.", "1."),
    another_picture(encode(BLUE.convert("P"), compress_level=0)),
]
# By the cell that tells: each change, and what is said of it.
REFUSED: dict[str, list[tuple[Change, str]]] = {
    "figure": [
        (drawing("#0072b2", "#d55e00", is_drawn=True), "the fresh figure differs"),
        (another_png, "another picture than the SVG: 2 x 2 pixels"),
        (stored("figure", "plot of", "chart of"), "text/plain"),
    ],
    "picture": [
        (another_picture(encode(SPOTTED)), "16 of 600 pixels differ"),
        (no_picture, "Unexpected output fields from running code: {'image/png'}"),
    ],
    "number": [
        (stored("number", "0.6667", "0.6600"), "0.6600"),
        (cleared("number"), "Unexpected output fields"),
        (source("number", "1 / 0"), "ZeroDivisionError"),
    ],
    "count": [
        (stored("count", "2", "3"), "text/plain"),
        (one_more, "dissimilar number of outputs"),
        (reordered, "text/plain"),
    ],
    "loose": [(stored("loose", "0.667", "0.600"), "0.600")],
    "tight": [(stored("tight", "0.6667", "0.6666"), "0.6666")],
    "both": [(turned, "outputs in another order")],
    "silent": [(one_from_nowhere, "Missing output fields")],
    "object": [(stored("object", "object at", "subject at"), "subject")],
}

Report = dict[str, dict[str, str]]


def nbval(notebooks: Path, *options: str | Path) -> list[str | Path]:
    shutil.copy(ROOT / "conftest.py", notebooks)
    where = ["-c", ROOT / "pyproject.toml", "--rootdir", notebooks, "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", *where, "--nbval", *options, notebooks]


def nbval_on(notebooks: Path, *options: str, **environment: str) -> list[ElementTree.Element]:
    """The test cases, one for each code cell, of a run in which some fail."""
    report = notebooks.parent / "report.xml"
    done = subprocess.run(
        nbval(notebooks, "--color", "no", "--junit-xml", report, *options),
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return ElementTree.parse(report).findall(".//testcase")


def fault_of(case: ElementTree.Element) -> str:
    faults = [*case.findall("failure"), *case.findall("error")]
    return faults[0].text if faults else ""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """What is said of each failed cell, by notebook; the n-th has each cell's n-th refused change."""
    root = tmp_path_factory.mktemp("project")
    lesson, checked = root / "lessons" / "tiny", root / "checked"
    for folder in (lesson, checked):
        folder.mkdir(parents=True)
    list_lessons(root, "tiny")
    names = re.findall("# %% ([a-z]+)", CODE)
    (lesson / "text.en.md").write_text("".join(f"<<{name}>>\n" for name in names))
    (lesson / "code.a.py").write_text(CODE)
    assert main(["--root", str(root)]) == 0
    executed = root / "notebooks" / "en" / "a" / "tiny.ipynb"

    changes = {"accepted": ACCEPTED}
    for cases in REFUSED.values():
        for turn, (change, _) in enumerate(cases):
            changes.setdefault(str(turn), []).append(change)
    order = {}
    for title, changed in changes.items():
        notebook = nbformat.read(executed, as_version=4)
        for change in changed:
            change(notebook)
        nbformat.write(notebook, checked / f"{title}.ipynb")
        order[title] = [cell.id for cell in notebook.cells]

    cells = nbval_on(checked)
    assert len(cells) == len(order) * len(names)
    failed: Report = {title: {} for title in order}
    for item in cells:
        title, number = Path(item.get("classname")).stem, int(item.get("name").split()[1])
        if fault := fault_of(item):
            failed[title][order[title][number]] = fault
    return failed


def test_what_makes_no_difference_passes(report):
    assert report["accepted"] == {}


@pytest.mark.parametrize("turn", range(3))
def test_what_differs_fails_and_says_how_and_nothing_else_fails(report, turn):
    expected = {name: cases[turn][1] for name, cases in REFUSED.items() if turn < len(cases)}
    assert report[str(turn)].keys() == expected.keys()
    for name, words in expected.items():
        assert words in report[str(turn)][name]


def test_a_figure_that_differs_is_kept_as_a_picture(report):
    """And no other."""
    said = [text for cells in report.values() for text in cells.values()]
    kept = {Path(each) for text in said for each in re.findall(r"see (.*\.png)", text)}
    assert {*next(iter(kept)).parent.iterdir()} == kept
    names = {each.stem.partition("checked-")[2] for each in kept}
    assert names == {"0-figure", "0-picture"}
    for file in kept:
        picture = np.asarray(Image.open(file).convert("RGB"), int)
        red = (picture == (213, 0, 0)).all(axis=-1)
        third = len(red) // 3
        assert not red[: 2 * third].any()  # the stored one, and the fresh one
        assert red[2 * third :].any()


# Faults of kernels and files


def notebook_of(*sources: str, kernel: str = "python3") -> str:
    language = {"name": kernel, "display_name": kernel, "language": "python"}
    notebook = v4.new_notebook(metadata={"kernelspec": language})
    for number, code in enumerate(sources, 1):
        notebook.cells.append(v4.new_code_cell(code, id=f"c{number}", execution_count=number))
    return nbformat.writes(notebook)


# What is missing is not installed, under nbval neither (d2l_compat/_install.py).
CHECK = "import os\nassert os.environ['D2L_COMPAT_INSTALL'] == 'never'"
PLAIN = notebook_of(CHECK, "import matplotlib.pyplot")
HANGS = "import time\nwhile True:\n    time.sleep(0.1)"
# Each notebook, and what is said of its first cell that fails.
FAULTY = {
    "dies": (notebook_of("x = 1", "import os; os._exit(1)", "y = 2"), "The kernel died"),
    "hangs": (notebook_of("x = 1", HANGS, "y = 2"), "Timeout of 5 seconds exceeded"),
    "hangs for good": (
        notebook_of(f"import signal; signal.signal(2, signal.SIG_IGN)\n{HANGS}"),
        "Failed to interrupt kernel",
    ),
    "prints without end": (notebook_of("print('x' * 20_000_000)"), "{'stdout'}"),
    "no kernel": (
        notebook_of("x = 1", kernel="no-such-kernel"),
        "no kernel came up: No such kernel",
    ),
    "truncated": (PLAIN[:150], "no notebook: NotJSONError"),
    "empty": ("", "no notebook: NotJSONError"),
    "plain": (PLAIN, ""),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each notebook's first fault; what stands in a user's shell does no harm."""
    root = tmp_path_factory.mktemp("faulty") / "notebooks"
    shell = {"MPLBACKEND": "no-such-backend", "TMPDIR": str(root / ("long" * 40))}
    Path(shell["TMPDIR"]).mkdir(parents=True)  # no socket has such a path
    for name, (notebook, _) in FAULTY.items():
        (root / f"{name}.ipynb").write_text(notebook)
    said = dict.fromkeys(FAULTY, "")
    for item in nbval_on(root, "--nbval-cell-timeout", "5", **shell):
        name = Path(item.get("classname") or item.get("name")).stem
        said[name] = said[name] or fault_of(item)
    for name, (notebook, _) in FAULTY.items():
        assert (root / f"{name}.ipynb").read_text() == notebook
    return said


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_told_and_the_others_are_checked_all_the_same(faulty, name):
    assert FAULTY[name][1] in faulty[name]
    assert bool(FAULTY[name][1]) == bool(faulty[name])
    assert len(faulty[name]) < 5000


def test_control_c_leaves_no_kernel_and_no_file(tmp_path, control_c):
    notebooks, places = tmp_path / "notebooks", tmp_path / "tmp"
    for folder in (notebooks, places):
        folder.mkdir()
    marks = [tmp_path / name for name in "ab"]
    for mark in marks:
        wait = f"open({str(mark)!r}, 'w').close()\nimport time; time.sleep(1000)"
        (notebooks / f"{mark.name}.ipynb").write_text(notebook_of(wait))
    options = ["--nbval-kernel-startup-timeout", "1000", "-n", "2"]
    run = subprocess.Popen(
        nbval(notebooks, *options),
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(places)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a terminal's Ctrl-C reaches all its processes
        text=True,
    )
    said = control_c(run, marks, lambda: os.killpg(run.pid, signal.SIGINT), at_least=3)
    assert run.returncode == 2, said
    assert not [path for path in places.rglob("*") if not path.name.startswith("pytest-")]


# In several languages


SHARED = """\
# %% one
n = 1
open("LOG", "a").write("1")

# %% two
open("LOG", "a").write("2" * n)
print("number", n)

# %% three
n = n + 1  # a comment
n
"""
WORDS = {
    "zh-TW": '[words]\n"number" = "數字"\n"a comment" = "註解"',
    "zz": '[words]\n"number" = "數字"\n"a comment" = "。"',
}


def change_text(name: str, old: str, new: str) -> Change:
    def change(notebook: NotebookNode) -> None:
        (output,) = cell(notebook, name).outputs
        output.text = output.text.replace(old, new)

    return change


def without(name: str) -> Change:
    return lambda notebook: notebook.cells.remove(cell(notebook, name))


# In the Chinese notebook, and which of its cells tell.
IN_ONE_LANGUAGE: dict[str, tuple[Change, list[int]]] = {
    "unchanged": (lambda notebook: None, []),
    "a shared cell's output": (stored("three", "2", "3"), [2]),
    "its own cell's output": (change_text("two", "1", "3"), [1]),
    "the English cell": (change_text("two", "數字", "number"), [1]),
    "a cell left out": (without("one"), [0, 1]),
}


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[int]], list[str]]:
    """Of each page, by framework: the numbers of the Chinese notebook's cells that failed; and
    what the cells logged, with the runner and with nbval."""
    root = tmp_path_factory.mktemp("translated")
    lesson, log = root / "lessons" / "tiny", root / "log"
    lesson.mkdir(parents=True)
    list_lessons(root, "tiny")
    for language in ("en", "zh-TW", "zz"):
        (lesson / f"text.{language}.md").write_text("<<one>>\n\n<<two>>\n\n<<three>>\n")
    for language, table in WORDS.items():
        table = f'strings = ["{log}-a"]\n{table}'
        (lesson / f"words.{language}.toml").write_text(table, encoding="utf-8")
    (lesson / "code.a.py").write_text(SHARED.replace("LOG", f"{log}-a"))
    assert main(["--root", str(root)]) == 0
    logged = [Path(f"{log}-a").read_text()]
    Path(f"{log}-a").unlink()
    frameworks = dict(zip("abcdefgh", IN_ONE_LANGUAGE, strict=False))
    for path in root.glob("notebooks/*/a/tiny.ipynb"):
        executed = path.read_text(encoding="utf-8")
        for framework, title in frameworks.items():
            own = executed.replace(f"{log}-a", f"{log}-{framework}")
            notebook = nbformat.reads(own, as_version=4)
            if path.parts[-3] == "zh-TW":
                IN_ONE_LANGUAGE[title][0](notebook)
            copy = path.parents[1] / framework / path.name
            copy.parent.mkdir(exist_ok=True)
            nbformat.write(notebook, copy)
    failed: dict[str, list[int]] = {title: [] for title in IN_ONE_LANGUAGE}
    cells = nbval_on(root / "notebooks")
    assert len(cells) == 9 * len(frameworks) - 1
    for item in cells:
        language, framework, *_ = item.get("classname").split(".")
        if fault_of(item):
            assert language == "zh-TW"
            failed[frameworks[framework]].append(int(item.get("name").split()[1]))
    return failed, [*logged, Path(f"{log}-a").read_text()]


@pytest.mark.parametrize("title", IN_ONE_LANGUAGE)
def test_a_fault_in_one_language_is_noticed_in_this_language(translated, title):
    assert translated[0][title] == IN_ONE_LANGUAGE[title][1]


def test_a_cell_with_words_is_executed_in_each_at_its_place_and_all_others_once(translated):
    """The words of two of the three languages are the same. At the page's end n were 2."""
    assert translated[1] == ["122", "122"]
