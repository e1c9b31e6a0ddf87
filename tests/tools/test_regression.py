"""Test which changes of a notebook the extended nbval (tools/run/regression.py) accepts.

A kernel takes seconds to start. So one run of pytest tests all notebooks, and a notebook has
several changes, each in its own cell.
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

from tests.conftest import write_chapter
from tools.__main__ import main
from tools.compare.figures import PNG, SVG
from tools.compare.pixels import render_png
from tools.weave.lessons import ROOT

CODE = """\
# %% setup
from d2l_compat._shared.plot import plot
n = 1

# %% figure
plot([0, 1, 2], [0, 1, 4], xlabel="x", ylabel="y")

# %% image
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


def find_cell(notebook: NotebookNode, name: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if cell.id == name)


def change_output(name: str, pattern: str, new: str) -> Change:
    """Return a change of the stored text of a cell's only output."""

    def change(notebook: NotebookNode) -> None:
        (output,) = find_cell(notebook, name).outputs
        data, key = (output.data, "text/plain") if "data" in output else (output, "text")
        data[key], count = re.subn(pattern, new, data[key])
        assert count == 1

    return change


def change_figure(pattern: str, new: str, with_png: bool = False) -> Change:
    """Return a change of the stored figure's SVG and, if ``with_png``, of its PNG, but not of its text."""

    def change(notebook: NotebookNode) -> None:
        data = find_cell(notebook, "figure").outputs[0].data
        data[SVG], count = re.subn(pattern, new, data[SVG])
        assert count
        if with_png:
            data[PNG] = b64encode(render_png(data[SVG])).decode()

    return change


def replace_png_of_figure(notebook: NotebookNode) -> None:
    """Replace the figure's PNG by one of a single CSS pixel."""
    png = render_png('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')
    find_cell(notebook, "figure").outputs[0].data[PNG] = b64encode(png).decode()


def encode(image: Image.Image, **options: object) -> str:
    """Encode a PNG in base64, broken into lines as some kernels do."""
    file = BytesIO()
    image.save(file, "png", **options)
    return encodebytes(file.getvalue()).decode()


def replace_image(png: str) -> Change:
    """Return a change of the PNG that has no SVG beside it."""
    return lambda notebook: find_cell(notebook, "image").outputs[0].data.update({PNG: png})


def remove_image(notebook: NotebookNode) -> None:
    del find_cell(notebook, "image").outputs[0].data[PNG]


BLUE = Image.new("RGB", (30, 20), "blue")
BLUE_WITH_SPOT = BLUE.copy()
BLUE_WITH_SPOT.paste("black", (4, 4, 8, 8))


def clear_outputs(name: str) -> Change:
    return lambda notebook: find_cell(notebook, name).update(outputs=[])


def change_source(name: str, code: str) -> Change:
    return lambda notebook: find_cell(notebook, name).update(source=code)


def duplicate_output(notebook: NotebookNode) -> None:
    find_cell(notebook, "count").outputs *= 2


def add_output(notebook: NotebookNode) -> None:
    find_cell(notebook, "silent").outputs = [v4.new_output("stream", text="0\n")]


def reverse_outputs(notebook: NotebookNode) -> None:
    find_cell(notebook, "both").outputs.reverse()


def move_cell(notebook: NotebookNode) -> None:
    count, silent = (
        notebook.cells.index(find_cell(notebook, name)) for name in ("count", "silent")
    )
    notebook.cells.insert(count, notebook.cells.pop(silent))


ACCEPTED_CHANGES: list[Change] = [
    change_output("loose", "0.667", "0.660"),
    change_output("number", "0.6667", "0.6666"),
    change_figure(r'(d="M \d+\.\d+)', r"\g<1>9"),
    change_output("object", "0x", "0xabc"),
    change_output("ignored", r"\.", "1."),
    replace_image(encode(BLUE.convert("P"), compress_level=0)),
]
# Keys are the cells that must fail; values are the changes, each with a part of the message.
REJECTED_CHANGES: dict[str, list[tuple[Change, str]]] = {
    "figure": [
        (change_figure("#0072b2", "#d55e00", with_png=True), "the fresh figure differs"),
        (replace_png_of_figure, "differs from the SVG: 2 x 2 pixels"),
        (change_output("figure", "plot of", "chart of"), "text/plain"),
    ],
    "image": [
        (replace_image(encode(BLUE_WITH_SPOT)), "16 of 600 pixels differ"),
        (remove_image, "Unexpected output fields from running code: {'image/png'}"),
    ],
    "number": [
        (change_output("number", "0.6667", "0.6600"), "0.6600"),
        (clear_outputs("number"), "Unexpected output fields"),
        (change_source("number", "1 / 0"), "ZeroDivisionError"),
    ],
    "count": [
        (change_output("count", "2", "3"), "text/plain"),
        (duplicate_output, "dissimilar number of outputs"),
        (move_cell, "text/plain"),
    ],
    "loose": [(change_output("loose", "0.667", "0.600"), "0.600")],
    "tight": [(change_output("tight", "0.6667", "0.6666"), "0.6666")],
    "both": [(reverse_outputs, "outputs in another order")],
    "silent": [(add_output, "Missing output fields")],
    "object": [(change_output("object", "object at", "subject at"), "subject")],
}

Report = dict[str, dict[str, str]]


def make_nbval_command(notebooks: Path, *options: str | Path) -> list[str | Path]:
    shutil.copy(ROOT / "conftest.py", notebooks)
    settings = ["-c", ROOT / "pyproject.toml", "--rootdir", notebooks, "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", *settings, "--nbval", *options, notebooks]


def run_nbval(notebooks: Path, *options: str, **environment: str) -> list[ElementTree.Element]:
    """Return the test cases, one for each code cell, of a run in which some fail."""
    report = notebooks.parent / "report.xml"
    process = subprocess.run(
        make_nbval_command(notebooks, "--color", "no", "--junit-xml", report, *options),
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1, process.stdout + process.stderr
    return ElementTree.parse(report).findall(".//testcase")


def read_error(case: ElementTree.Element) -> str:
    """Return the message of a failed test case, or ""."""
    errors = [*case.findall("failure"), *case.findall("error")]
    return errors[0].text if errors else ""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the message of each failed cell, by notebook; the n-th notebook has each cell's n-th rejected change."""
    root = tmp_path_factory.mktemp("project")
    lesson, checked_folder = root / "lessons" / "tiny", root / "checked"
    for folder in (lesson, checked_folder):
        folder.mkdir(parents=True)
    write_chapter(root, "tiny")
    names = re.findall("# %% ([a-z]+)", CODE)
    (lesson / "text.en.md").write_text("".join(f"<<{name}>>\n" for name in names))
    (lesson / "code.a.py").write_text(CODE)
    assert main(["--root", str(root)]) == 0
    executed = root / "notebooks" / "en" / "a" / "tiny.ipynb"

    changes_by_title = {"accepted": ACCEPTED_CHANGES}
    for cases in REJECTED_CHANGES.values():
        for index, (change, _) in enumerate(cases):
            changes_by_title.setdefault(str(index), []).append(change)
    order = {}
    for title, changes in changes_by_title.items():
        notebook = nbformat.read(executed, as_version=4)
        for change in changes:
            change(notebook)
        nbformat.write(notebook, checked_folder / f"{title}.ipynb")
        order[title] = [cell.id for cell in notebook.cells]

    test_cases = run_nbval(checked_folder)
    assert len(test_cases) == len(order) * len(names)
    messages: Report = {title: {} for title in order}
    for case in test_cases:
        title = Path(case.get("classname")).stem
        number = int(case.get("name").split()[1])
        if message := read_error(case):
            messages[title][order[title][number]] = message
    return messages


def test_equivalent_outputs_pass(report):
    assert report["accepted"] == {}


@pytest.mark.parametrize("index", range(3))
def test_exactly_the_cells_that_differ_fail_with_a_reason(report, index):
    expected = {
        name: cases[index][1] for name, cases in REJECTED_CHANGES.items() if index < len(cases)
    }
    assert report[str(index)].keys() == expected.keys()
    for name, words in expected.items():
        assert words in report[str(index)][name]


def test_a_comparison_of_differing_figures_is_saved(report):
    """Check that nothing is saved for figures that agree."""
    messages = "\n".join(text for cells in report.values() for text in cells.values())
    files = {Path(path) for path in re.findall(r"see (.*\.png)", messages)}
    assert {*next(iter(files)).parent.iterdir()} == files
    names = {file.stem.partition("checked-")[2] for file in files}
    assert names == {"0-figure", "0-image"}
    for file in files:
        pixels = np.asarray(Image.open(file).convert("RGB"), int)
        is_red = (pixels == (213, 0, 0)).all(axis=-1)
        third = len(is_red) // 3
        assert not is_red[: 2 * third].any()  # the stored and the fresh figure
        assert is_red[2 * third :].any()


# Errors of kernels and files


def make_notebook(*sources: str, kernel: str = "python3") -> str:
    language = {"name": kernel, "display_name": kernel, "language": "python"}
    notebook = v4.new_notebook(metadata={"kernelspec": language})
    for number, code in enumerate(sources, 1):
        notebook.cells.append(v4.new_code_cell(code, id=f"c{number}", execution_count=number))
    return nbformat.writes(notebook)


# Nothing is installed under nbval (d2l_compat/_install.py).
NO_INSTALLATION = "import os\nassert os.environ['D2L_COMPAT_INSTALL'] == 'never'"
PASSING_NOTEBOOK = make_notebook(NO_INSTALLATION, "import matplotlib.pyplot")
ENDLESS_LOOP = "import time\nwhile True:\n    time.sleep(0.1)"
# Each notebook, with a part of the message of its first cell that fails.
BROKEN_NOTEBOOKS = {
    "dies": (make_notebook("x = 1", "import os; os._exit(1)", "y = 2"), "The kernel died"),
    "hangs": (make_notebook("x = 1", ENDLESS_LOOP, "y = 2"), "Timeout of 5 seconds exceeded"),
    "hangs for good": (
        make_notebook(f"import signal; signal.signal(2, signal.SIG_IGN)\n{ENDLESS_LOOP}"),
        "Failed to interrupt kernel",
    ),
    "prints without end": (make_notebook("print('x' * 20_000_000)"), "{'stdout'}"),
    "no kernel": (
        make_notebook("x = 1", kernel="no-such-kernel"),
        "no kernel started: No such kernel",
    ),
    "truncated": (PASSING_NOTEBOOK[:150], "not a notebook: NotJSONError"),
    "empty": ("", "not a notebook: NotJSONError"),
    "passing": (PASSING_NOTEBOOK, ""),
}


@pytest.fixture(scope="module")
def first_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the message of each notebook's first error, in a shell with unusual variables."""
    root = tmp_path_factory.mktemp("broken") / "notebooks"
    shell = {"MPLBACKEND": "no-such-backend", "TMPDIR": str(root / ("long" * 40))}
    Path(shell["TMPDIR"]).mkdir(parents=True)  # too long a path for a socket
    for name, (notebook, _) in BROKEN_NOTEBOOKS.items():
        (root / f"{name}.ipynb").write_text(notebook)
    messages = dict.fromkeys(BROKEN_NOTEBOOKS, "")
    for case in run_nbval(root, "--nbval-cell-timeout", "5", **shell):
        name = Path(case.get("classname") or case.get("name")).stem
        messages[name] = messages[name] or read_error(case)
    for name, (notebook, _) in BROKEN_NOTEBOOKS.items():
        assert (root / f"{name}.ipynb").read_text() == notebook
    return messages


@pytest.mark.parametrize("name", BROKEN_NOTEBOOKS)
def test_a_broken_notebook_fails_and_the_others_are_tested(first_errors, name):
    assert BROKEN_NOTEBOOKS[name][1] in first_errors[name]
    assert bool(BROKEN_NOTEBOOKS[name][1]) == bool(first_errors[name])
    assert len(first_errors[name]) < 5000


def test_ctrl_c_leaves_no_kernel_and_no_file(tmp_path, interrupt):
    notebooks, temporary = tmp_path / "notebooks", tmp_path / "tmp"
    for folder in (notebooks, temporary):
        folder.mkdir()
    start_files = [tmp_path / name for name in "ab"]
    for file in start_files:
        code = f"open({str(file)!r}, 'w').close()\nimport time; time.sleep(1000)"
        (notebooks / f"{file.name}.ipynb").write_text(make_notebook(code))
    options = ["--nbval-kernel-startup-timeout", "1000", "-n", "2"]
    process = subprocess.Popen(
        make_nbval_command(notebooks, *options),
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a terminal's Ctrl-C reaches all its processes
        text=True,
    )
    output = interrupt(
        process, start_files, lambda: os.killpg(process.pid, signal.SIGINT), min_children=3
    )
    assert process.returncode == 2, output
    assert not [path for path in temporary.rglob("*") if not path.name.startswith("pytest-")]


# Several languages


TRANSLATED_CODE = """\
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
        (output,) = find_cell(notebook, name).outputs
        output.text = output.text.replace(old, new)

    return change


def remove_cell(name: str) -> Change:
    return lambda notebook: notebook.cells.remove(find_cell(notebook, name))


# Each change of the Chinese notebook, with the numbers of the cells that must fail.
CHINESE_CHANGES: dict[str, tuple[Change, list[int]]] = {
    "unchanged": (lambda notebook: None, []),
    "a shared cell's output": (change_output("three", "2", "3"), [2]),
    "its own cell's output": (change_text("two", "1", "3"), [1]),
    "the English cell": (change_text("two", "數字", "number"), [1]),
    "a missing cell": (remove_cell("one"), [0, 1]),
}


@pytest.fixture(scope="module")
def translated_results(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, list[int]], list[str]]:
    """Return the numbers of the cells that failed in each Chinese notebook, and two logs.

    The cells write the logs when the runner executes them, and when nbval does.
    """
    root = tmp_path_factory.mktemp("translated")
    lesson, log = root / "lessons" / "tiny", root / "log"
    lesson.mkdir(parents=True)
    write_chapter(root, "tiny")
    for language in ("en", "zh-TW", "zz"):
        (lesson / f"text.{language}.md").write_text("<<one>>\n\n<<two>>\n\n<<three>>\n")
    for language, table in WORDS.items():
        table = f'strings = ["{log}-a"]\n{table}'
        (lesson / f"words.{language}.toml").write_text(table, encoding="utf-8")
    (lesson / "code.a.py").write_text(TRANSLATED_CODE.replace("LOG", f"{log}-a"))
    assert main(["--root", str(root)]) == 0
    runner_log = Path(f"{log}-a").read_text(encoding="utf-8")
    Path(f"{log}-a").unlink()
    title_by_framework = dict(zip("abcdefgh", CHINESE_CHANGES, strict=False))
    for path in root.glob("notebooks/*/a/tiny.ipynb"):
        executed = path.read_text(encoding="utf-8")
        for framework, title in title_by_framework.items():
            text = executed.replace(f"{log}-a", f"{log}-{framework}")
            notebook = nbformat.reads(text, as_version=4)
            if path.parts[-3] == "zh-TW":
                CHINESE_CHANGES[title][0](notebook)
            copy = path.parents[1] / framework / path.name
            copy.parent.mkdir(exist_ok=True)
            nbformat.write(notebook, copy)
    failed_cells: dict[str, list[int]] = {title: [] for title in CHINESE_CHANGES}
    test_cases = run_nbval(root / "notebooks")
    assert len(test_cases) == 9 * len(title_by_framework) - 1
    for case in test_cases:
        language, framework, *_ = case.get("classname").split(".")
        if read_error(case):
            assert language == "zh-TW"
            title = title_by_framework[framework]
            failed_cells[title].append(int(case.get("name").split()[1]))
    return failed_cells, [runner_log, Path(f"{log}-a").read_text(encoding="utf-8")]


@pytest.mark.parametrize("title", CHINESE_CHANGES)
def test_a_difference_in_one_language_fails_in_this_language(translated_results, title):
    assert translated_results[0][title] == CHINESE_CHANGES[title][1]


def test_only_cells_with_words_are_executed_in_each_language(translated_results):
    """Check the order, too: n is 1 only before the last cell. Two of the three languages share their words."""
    assert translated_results[1] == ["122", "122"]
