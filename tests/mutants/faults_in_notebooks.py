"""Faults in what the notebooks store: an edit by hand, a bad merge, a run of something else."""

import re
from base64 import b64decode, b64encode
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from tests.mutants.fault import Change, DoesNotFitError, Fault
from tools.figures import FIGURE

LESSON = "self-attention-and-positional-encoding.ipynb"


def cell(notebook: NotebookNode, name: str) -> NotebookNode:
    found = [cell for cell in notebook.cells if cell.id == name]
    if len(found) != 1:
        raise DoesNotFitError(f"{len(found)} cells {name!r}")
    return found[0]


def figure(notebook: NotebookNode, name: str) -> NotebookNode:
    """The data of a cell's figure."""
    found = [output.data for output in cell(notebook, name).outputs if "data" in output]
    if len(found) != 1 or not FIGURE.fullmatch(found[0].get("text/html", "")):
        raise DoesNotFitError(f"cell {name!r} has not one figure")
    return found[0]


def replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise DoesNotFitError(f"{old!r} is {text.count(old)} times in the output")
    return text.replace(old, new)


def printed(name: str, old: str, new: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        streams = [output for output in cell(notebook, name).outputs if "text" in output]
        if len(streams) != 1:
            raise DoesNotFitError(f"cell {name!r} has not one stream")
        streams[0].text = replaced(streams[0].text, old, new)

    return change


def source(name: str, old: str, new: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        target = cell(notebook, name)
        target.source = replaced(target.source, old, new)

    return change


def cleared(name: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        cell(notebook, name).outputs = []

    return change


def an_exception(name: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        words = {"ename": "RuntimeError", "evalue": "out of memory", "traceback": []}
        cell(notebook, name).outputs = [v4.new_output("error", **words)]

    return change


def to_stderr(name: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        for output in cell(notebook, name).outputs:
            output.name = "stderr"

    return change


def the_other_way_round(name: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        cell(notebook, name).outputs.reverse()

    return change


def missing(name: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        notebook.cells.remove(cell(notebook, name))

    return change


def twice(name: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        original = cell(notebook, name)
        copy = {**deepcopy(original), "id": f"{name}-copy"}
        notebook.cells.insert(notebook.cells.index(original) + 1, nbformat.from_dict(copy))

    return change


def earlier(name: str, than: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        moved = cell(notebook, name)
        notebook.cells.remove(moved)
        notebook.cells.insert(notebook.cells.index(cell(notebook, than)), moved)

    return change


def whole_notebook_of(folder: str) -> Change:
    def change(notebook: NotebookNode, project: Path) -> None:
        other = nbformat.read(project / "notebooks" / folder / LESSON, as_version=4)
        notebook.clear()
        notebook.update(other)

    return change


def output_of(name: str, other: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        cell(notebook, name).outputs = deepcopy(cell(notebook, other).outputs)

    return change


def drawing_of(name: str, other: str) -> Change:
    """Another cell's drawing; the words for it stay."""

    def change(notebook: NotebookNode, _: Path) -> None:
        ours, theirs = figure(notebook, name), figure(notebook, other)
        drawings = [FIGURE.fullmatch(data["text/html"])[1] for data in (ours, theirs)]
        ours["text/html"] = ours["text/html"].replace(*drawings)

    return change


def drawing(name: str, pattern: str, new: str) -> Change:
    """Another drawing, wherever the pattern is found in it; the words for it stay."""

    def change(notebook: NotebookNode, _: Path) -> None:
        data = figure(notebook, name)
        svg = FIGURE.fullmatch(data["text/html"])[1]
        changed, count = re.subn(pattern, new, b64decode(svg).decode())
        if not count:
            raise DoesNotFitError(f"{pattern!r} is not in the drawing of {name!r}")
        data["text/html"] = data["text/html"].replace(svg, b64encode(changed.encode()).decode())

    return change


TABLE = {
    "en/pytorch": [
        ("a number changed", printed("by-hand", "0.00000", "0.00020")),
        ("one colour of a figure changed", drawing("column-plot", "#0072b2", "#56b4e9")),
        (
            "code edited and not run",
            source("solution-fading", "0.8 * W_hh", "0.9 * W_hh"),
        ),
    ],
    "en/tensorflow": [
        ("an exception for an output", an_exception("weights-check")),
        ("the figure of another cell", output_of("column-plot", "solution-fading")),
        ("a cell missing", missing("encoding-heatmap")),
    ],
    "en/jax": [
        ("PyTorch's notebook in its place", whole_notebook_of("en/pytorch")),
        ("an output cleared", cleared("multiply-adds")),
        ("a figure before the words", the_other_way_round("dot-products")),
    ],
    "zh-TW/jax": [("an integer changed", printed("influence", "28 of 100", "27 of 100"))],
    "en/mxnet": [
        (
            "another drawing under the right words",
            drawing_of("solution-causal", "influence-heatmaps"),
        ),
        ("printed as if it were a complaint", to_stderr("rotation")),
        ("two cells in the other order", earlier("column-plot", than="scale-and-sum")),
    ],
    "en/paddle": [
        ("a cell twice", twice("solution-dilated")),
        ("the notebook in the other language", whole_notebook_of("zh-TW/paddle")),
    ],
    "zh-TW/paddle": [("a line lost", printed("rotation", "delta -5:", "delta 5:"))],
    "en/djl": [
        (
            "a curve dashed as another",
            drawing("dot-products", 'stroke-dasharray="5.55 2.4"', 'stroke-dasharray="none"'),
        ),
        ("one result of an earlier run", printed("scale-and-sum", "22.67", "22.76")),
        ("one name in a legend changed", drawing("column-plot", ">Col 9<", ">Col 8<")),
    ],
}

FAULTS = [
    Fault(folder.split("/")[1], name, f"notebooks/{folder}/{LESSON}", change=change)
    for folder, rows in TABLE.items()
    for name, change in rows
]
