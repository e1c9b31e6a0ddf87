"""The committed notebooks: in step with the lessons, whole, and free of one machine's traces."""

import re

import nbformat
import pytest
from nbformat import NotebookNode

from tools.agreement import FIGURE
from tools.lessons import ROOT, Edition, editions
from tools.weave import weave

EDITIONS = list(editions())


@pytest.fixture(params=EDITIONS, ids=str)
def edition(request: pytest.FixtureRequest) -> Edition:
    return request.param


@pytest.fixture
def notebook(edition: Edition) -> NotebookNode:
    return nbformat.read(edition.notebook, as_version=4)


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_every_notebook_belongs_to_an_edition():
    # Not Jupyter's own copies, which are in a hidden folder.
    there_are = set((ROOT / "notebooks").glob("[!.]*/[!.]*/[!.]*.ipynb"))
    assert there_are == {edition.notebook for edition in EDITIONS}


def test_notebook_is_what_the_lesson_weaves(edition, notebook):
    woven = weave(edition)
    assert notebook.metadata == woven.metadata
    for stored, fresh in zip(notebook.cells, woven.cells, strict=True):
        kept = ("id", "cell_type", "metadata", "source")
        assert [stored[key] for key in kept] == [fresh[key] for key in kept], "run `make`"


def test_notebook_was_executed_from_top_to_bottom_without_a_complaint(notebook):
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    assert not [output.text for output in outputs(notebook) if output.get("name") == "stderr"]


def test_figures_are_svg_and_have_a_text_alternative(notebook):
    shown = [output.data for output in outputs(notebook) if "data" in output]
    figures = [data for data in shown if "text/html" in data]
    assert figures
    for data in figures:
        figure = FIGURE.fullmatch(data["text/html"])
        assert figure
        assert re.match(r'("[^"]+": )?(Heat map|Line plot)', data["text/plain"])
    assert not [data for data in shown if "image/png" in data]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert "![" not in cell.source
            assert all(len(alt) > 40 for alt in re.findall(r'<img [^>]*alt="([^"]*)"', cell.source))


def test_notebook_holds_no_trace_of_a_machine(edition):
    text = edition.notebook.read_text(encoding="utf-8")
    assert not re.findall(r"(?:/home/|/root/|/Users/|/tmp/|site-packages|\.venv)[^\"]{0,40}", text)
