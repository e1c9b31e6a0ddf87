"""The committed notebooks: in step with the lessons, whole, and free of one machine's traces."""

import re
from dataclasses import replace

import nbformat
import pytest
from nbformat import NotebookNode

from tools.agreement import difference
from tools.figures import FIGURE
from tools.lessons import ROOT, Edition, editions
from tools.numbers import NUMBER
from tools.programs import read_code
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
    assert not re.findall(r"(?:/(?:home|root|Users|tmp)/|site-packages|\.venv)[^\"]{0,40}", text)


# The same page, in every language and framework

OF_EVERY_LANGUAGE = [edition for edition in EDITIONS if edition.language != "en"]
# What does not depend on random numbers is the same in every framework, to the last digit.
DETERMINED = [
    "shape-check",
    "by-hand",
    "weights-check",
    "influence",
    "receptive-field",
    "multiply-adds",
    "encoding-checks",
    "column-plot",
    "binary",
    "encoding-heatmap",
    "dot-products",
    "rotation",
    "solution-causal",
    "solution-dilated",
    "solution-decoding",
]
# Java shows a map in its own way; PyTorch's attention is fused, and takes a step less.
IN_ANOTHER_FORM = ["three-layers", "sequential-operations"]


def code_cells(edition: Edition) -> dict[str, NotebookNode]:
    cells = nbformat.read(edition.notebook, as_version=4).cells
    return {cell.id: cell for cell in cells if cell.cell_type == "code"}


def shown(cell: NotebookNode) -> list[str]:
    """What a cell printed and drew; a figure in the words that stand for it."""
    outputs = (
        output.data["text/plain"] if "data" in output else output.text for output in cell.outputs
    )
    return [text.replace("IllegalArgumentException", "ValueError") for text in outputs]  # Java's


@pytest.mark.parametrize("edition", OF_EVERY_LANGUAGE, ids=str)
def test_code_and_outputs_are_those_of_the_english_notebook(edition):
    ours, english = code_cells(edition), code_cells(replace(edition, language="en"))
    in_this_language = {
        name
        for name, cell in read_code(edition.code, edition.language).items()
        if cell.source != read_code(edition.code)[name].source
    }
    assert in_this_language == {"binary"}
    assert list(ours) == list(english)
    for name in ours.keys() - in_this_language:
        assert ours[name].source == english[name].source
        assert ours[name].metadata == english[name].metadata
        assert ours[name].outputs == english[name].outputs, name
    (here,), (there,) = shown(ours["binary"]), shown(english["binary"])
    assert NUMBER.findall(here) == NUMBER.findall(there)


def test_every_framework_shows_the_same_page(edition):
    ours, pytorchs = code_cells(edition), code_cells(replace(edition, framework="pytorch"))
    assert [name for name in ours if name in pytorchs] == list(pytorchs)
    for name in pytorchs.keys() - {*IN_ANOTHER_FORM}:
        here, there = shown(ours[name]), shown(pytorchs[name])
        words = [[NUMBER.sub("0", text).split() for text in texts] for texts in (here, there)]
        assert words[0] == words[1], name
        if name in DETERMINED:
            assert difference(there, here) is None, name


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def named(figure: str) -> list[str]:
    """The curves' names, in their order."""
    return re.findall(r"\. ([^.]+): \d+ points", figure)


def test_what_depends_on_chance_is_as_the_text_claims(edition):
    """tests/faces/test_lesson.py holds the Python editions to more; this is for Java's as well."""
    cells = {name: shown(cell) for name, cell in code_cells(edition).items()}
    for line in cells["scaling"][0].splitlines():
        width, spread, scaled = numbers(line)
        assert spread == pytest.approx(width**0.5, rel=0.1)
        assert scaled == pytest.approx(1, rel=0.1)
    assert cells["three-layers"][0].count("(1, 10, 16)") == 3
    without, with_positions = numbers(cells["equivariance"][0])
    assert without == 0
    assert with_positions > 0.01
    lengths = numbers(cells["scale-and-sum"][0])
    assert lengths == pytest.approx([1, 512**0.5, 16, 768**0.5], rel=0.02)
    for n, cnn, rnn, attention in map(numbers, cells["sequential-operations"][0].splitlines()[1:]):
        assert (cnn, rnn, attention) == (1, n, 3 if edition.framework == "pytorch" else 4)
    example, exchanged = map(numbers, cells["solution-learned-data"][0].splitlines())
    for *tokens, label in (example, exchanged):
        assert label == (tokens.index(0) < tokens.index(1))
    assert exchanged == [1 - number if number < 2 else number for number in example]
    none, fixed, learned = numbers(cells["solution-learned-training"][0])
    assert none == 50
    assert min(fixed, learned) > 99
    # A curve's last point, and its extent: "from (0, 0.83) to (8, 0.63), values from 0.63 to 0.83."
    stacking, fading = cells["solution-stacking"][0], cells["solution-fading"][0]
    assert named(stacking) == ["attention alone", "with skip connections"]
    alone, skip = map(numbers, stacking.split("points")[1:])
    assert alone[3] == 0
    assert skip[3] > 0.5
    assert named(fading) == ["RNN", "self-attention"]
    rnn, attention = map(numbers, fading.split("points")[1:])
    assert rnn[3] == 0
    assert attention[4] > 0.1
