"""Faults in what a notebook stores: an edit by hand, a bad merge, a run of something else."""

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from tests.mutants.fault import Change, DoesNotFitError
from tools.compare.figures import SVG


def cell(notebook: NotebookNode, name: str) -> NotebookNode:
    found = [cell for cell in notebook.cells if cell.id == name]
    if len(found) != 1:
        raise DoesNotFitError(f"{len(found)} cells {name!r}")
    return found[0]


def replaced(text: str, old: str, new: str) -> str:
    changed, found = re.subn(old, new, text, count=1)
    if not found:
        raise DoesNotFitError(f"{old!r} is not in it")
    return changed


def on_cell(name: str, change: Callable[[NotebookNode], None]) -> Change:
    return lambda notebook, _: change(cell(notebook, name))


def printed(name: str, old: str, new: str) -> Change:
    def change(found: NotebookNode) -> None:
        (output,) = (each for each in found.outputs if "text" in each)
        output.text = replaced(output.text, old, new)

    return on_cell(name, change)


def drawing(name: str, old: str, new: str) -> Change:
    def change(found: NotebookNode) -> None:
        (data,) = (each.data for each in found.outputs if "data" in each)
        data[SVG] = replaced(data[SVG], old, new)

    return on_cell(name, change)


def source(name: str, old: str, new: str) -> Change:
    return on_cell(name, lambda found: found.update(source=replaced(found.source, old, new)))


def an_exception(name: str) -> Change:
    words = {"ename": "RuntimeError", "evalue": "out of memory", "traceback": []}
    return on_cell(name, lambda found: found.update(outputs=[v4.new_output("error", **words)]))


def output_of(name: str, other: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        cell(notebook, name).outputs = deepcopy(cell(notebook, other).outputs)

    return change


def missing(name: str) -> Change:
    return lambda notebook, _: notebook.cells.remove(cell(notebook, name))


def earlier(name: str, than: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        moved = cell(notebook, name)
        notebook.cells.remove(moved)
        notebook.cells.insert(notebook.cells.index(cell(notebook, than)), moved)

    return change


def whole_notebook_of(folder: str) -> Change:
    def change(notebook: NotebookNode, project: Path) -> None:
        name = f"{notebook.metadata.d2l_compat.lesson}.ipynb"
        other = nbformat.read(project / "notebooks" / folder / name, as_version=4)
        notebook.clear()
        notebook.update(other)

    return change


CHANGES = [
    ("en/pytorch", "a number changed", printed("by-hand-difference", r"0\.00000", "0.00020")),
    ("en/pytorch", "a figure's colour changed", drawing("column-plot", "#0072b2", "#56b4e9")),
    (
        "en/pytorch",
        "a red rectangle over a figure",
        drawing("encoding-heatmap", "</svg>", '<rect width="600" height="600" fill="red"/></svg>'),
    ),
    ("en/pytorch", "code edited and not run", source("solution-fading", r"0\.8", "0.9")),
    ("en/tensorflow", "an exception for an output", an_exception("wavelengths")),
    (
        "en/tensorflow",
        "the figure of another cell",
        output_of("column-plot", "solution-fading-figure"),
    ),
    ("en/jax", "PyTorch's notebook in its place", whole_notebook_of("en/pytorch")),
    ("zh-TW/jax", "an integer changed", printed("influence-heatmaps", "28 對", "27 對")),
    ("en/mxnet", "two cells in the other order", earlier("column-plot", than="scale-and-sum")),
    ("en/paddle", "the notebook in the other language", whole_notebook_of("zh-TW/paddle")),
    ("zh-TW/paddle", "a sign lost", printed("rotation", r"-0\.9900", " 0.9900")),
    ("en/mlx", "a cell missing", missing("encoding-heatmap")),
    ("en/djl", "one name in a legend changed", drawing("column-plot", ">Col 9<", ">Col 8<")),
]
