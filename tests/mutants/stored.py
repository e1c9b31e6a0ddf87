"""Faults in stored notebooks: an edit by hand, a bad merge, the outputs of another run."""

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from tests.mutants.fault import Change, OutdatedFaultError
from tools.compare.figures import SVG


def find_cell(notebook: NotebookNode, name: str) -> NotebookNode:
    cells = [cell for cell in notebook.cells if cell.id == name]
    if len(cells) != 1:
        raise OutdatedFaultError(f"{len(cells)} cells named {name!r}: need one")
    return cells[0]


def replace_once(text: str, pattern: str, new: str) -> str:
    result, num_replaced = re.subn(pattern, new, text, count=1)
    if not num_replaced:
        raise OutdatedFaultError(f"{pattern!r} does not occur")
    return result


# Each function below returns a function that changes a notebook.


def change_cell(name: str, change: Callable[[NotebookNode], None]) -> Change:
    return lambda notebook, _: change(find_cell(notebook, name))


def change_text(name: str, pattern: str, new: str) -> Change:
    def change(cell: NotebookNode) -> None:
        (output,) = (output for output in cell.outputs if "text" in output)
        output.text = replace_once(output.text, pattern, new)

    return change_cell(name, change)


def change_figure(name: str, pattern: str, new: str) -> Change:
    def change(cell: NotebookNode) -> None:
        (data,) = (output.data for output in cell.outputs if "data" in output)
        data[SVG] = replace_once(data[SVG], pattern, new)

    return change_cell(name, change)


def change_source(name: str, pattern: str, new: str) -> Change:
    def change(cell: NotebookNode) -> None:
        cell.source = replace_once(cell.source, pattern, new)

    return change_cell(name, change)


def replace_by_exception(name: str) -> Change:
    error = v4.new_output("error", ename="RuntimeError", evalue="out of memory", traceback=[])
    return change_cell(name, lambda cell: cell.update(outputs=[error]))


def replace_outputs(name: str, other: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        find_cell(notebook, name).outputs = deepcopy(find_cell(notebook, other).outputs)

    return change


def remove_cell(name: str) -> Change:
    return lambda notebook, _: notebook.cells.remove(find_cell(notebook, name))


def move_cell(name: str, before: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        cell = find_cell(notebook, name)
        notebook.cells.remove(cell)
        position = notebook.cells.index(find_cell(notebook, before))
        notebook.cells.insert(position, cell)

    return change


def replace_notebook(folder: str) -> Change:
    def change(notebook: NotebookNode, project: Path) -> None:
        name = f"{notebook.metadata.d2l_compat.lesson}.ipynb"
        other = nbformat.read(project / "notebooks" / folder / name, as_version=4)
        notebook.clear()
        notebook.update(other)

    return change


CHANGES = [
    ("en/pytorch", "a number changed", change_text("order-seen", r"0\.0", "0.2")),
    ("en/pytorch", "a figure's colour changed", change_figure("column-plot", "#0072b2", "#56b4e9")),
    (
        "en/pytorch",
        "a red rectangle over a figure",
        change_figure(
            "encoding-heatmap", "</svg>", '<rect width="600" height="600" fill="red"/></svg>'
        ),
    ),
    ("en/pytorch", "code edited and not run", change_source("solution-fading", r"0\.8", "0.9")),
    ("en/tensorflow", "an exception in place of an output", replace_by_exception("wavelengths")),
    (
        "en/tensorflow",
        "the figure of another cell",
        replace_outputs("column-plot", "solution-fading-figure"),
    ),
    ("en/jax", "PyTorch's notebook instead", replace_notebook("en/pytorch")),
    ("zh-TW/jax", "an integer changed", change_text("influence-heatmaps", "28 對", "27 對")),
    ("en/mxnet", "two cells exchanged", move_cell("column-plot", before="scale-and-sum")),
    ("en/paddle", "the Chinese notebook instead", replace_notebook("zh-TW/paddle")),
    ("zh-TW/paddle", "a sign lost", change_text("rotation", r"-0\.9900", " 0.9900")),
    ("en/mlx", "a cell missing", remove_cell("encoding-heatmap")),
    ("en/djl", "one name in a legend changed", change_figure("column-plot", ">Col 9<", ">Col 8<")),
]
