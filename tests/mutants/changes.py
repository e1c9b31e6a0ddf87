"""The kinds of change that a lesson's faults make to a stored notebook."""

import re
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


def figure(notebook: NotebookNode, name: str) -> NotebookNode:
    """The data of a cell's figure."""
    found = [output.data for output in cell(notebook, name).outputs if "data" in output]
    if len(found) != 1 or SVG not in found[0]:
        raise DoesNotFitError(f"cell {name!r} has not one figure")
    return found[0]


def replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise DoesNotFitError(f"{old!r} is {text.count(old)} times in the output")
    return text.replace(old, new)


def stream(notebook: NotebookNode, name: str) -> NotebookNode:
    """What a cell prints."""
    found = [output for output in cell(notebook, name).outputs if "text" in output]
    if len(found) != 1:
        raise DoesNotFitError(f"cell {name!r} has not one stream")
    return found[0]


def printed(name: str, old: str, new: str) -> Change:
    def change(notebook: NotebookNode, _: Path) -> None:
        output = stream(notebook, name)
        output.text = replaced(output.text, old, new)

    return change


def printed_as(name: str, pattern: str, new: str) -> Change:
    """Wherever the pattern is found."""

    def change(notebook: NotebookNode, _: Path) -> None:
        output = stream(notebook, name)
        output.text, count = re.subn(pattern, new, output.text)
        if not count:
            raise DoesNotFitError(f"{pattern!r} is not in what {name!r} prints")

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
        name = f"{notebook.metadata.d2l_compat.lesson}.ipynb"
        other = nbformat.read(project / "notebooks" / folder / name, as_version=4)
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
        ours[SVG] = theirs[SVG]

    return change


def drawing(name: str, pattern: str, new: str) -> Change:
    """Another drawing, wherever the pattern is found in it; the words for it stay."""

    def change(notebook: NotebookNode, _: Path) -> None:
        data = figure(notebook, name)
        data[SVG], count = re.subn(pattern, new, data[SVG])
        if not count:
            raise DoesNotFitError(f"{pattern!r} is not in the drawing of {name!r}")

    return change
