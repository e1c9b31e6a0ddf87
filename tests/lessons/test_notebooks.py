"""Tests of the committed notebooks: they are up to date, complete, and without traces of a machine."""

import re
from dataclasses import replace
from functools import cache
from unicodedata import east_asian_width
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat import NotebookNode

from tests.lessons.cells import claims_of
from tools.compare.figures import PNG, SVG
from tools.compare.languages import compare_languages
from tools.compare.numbers import NUMBER
from tools.compare.outputs import compare_outputs
from tools.compare.pictures import compare_png_with_svg
from tools.run.fingerprints import Fingerprints, compute_fingerprint
from tools.run.languages import find_language_fault
from tools.run.runner import list_cells
from tools.weave.fragments import strip_comments, strip_strings
from tools.weave.lessons import ROOT, Notebook, find_frameworks, list_notebooks
from tools.weave.notebooks import weave
from tools.weave.prose import find_original, read_passages
from tools.weave.words import read_translations

NOTEBOOKS = list(list_notebooks())
weave_once = cache(weave)
ALTERNATIVE = re.compile(r'("[^"]+": )?(Heat map|Line plot)|(「[^」]+」：)?(熱圖|折線圖)')


@pytest.fixture(params=NOTEBOOKS, ids=str)
def notebook(request: pytest.FixtureRequest) -> Notebook:
    return request.param


@pytest.fixture
def node(notebook: Notebook) -> NotebookNode:
    return nbformat.read(notebook.path, as_version=4)


def outputs(node: NotebookNode) -> list[NotebookNode]:
    return [output for cell in node.cells for output in cell.get("outputs", [])]


def test_every_notebook_belongs_to_a_page():
    # Without Jupyter's copies, which are in a hidden folder.
    paths = set((ROOT / "notebooks").glob("[!.]*/[!.]*/[!.]*.ipynb"))
    assert paths == {notebook.path for notebook in NOTEBOOKS}


def test_notebook_is_woven_from_lesson(notebook, node):
    woven = weave_once(notebook)
    assert node.metadata == woven.metadata
    for stored, fresh in zip(node.cells, woven.cells, strict=True):
        keys = ("id", "cell_type", "metadata", "source")
        assert [stored[key] for key in keys] == [fresh[key] for key in keys], "run `make`"


def test_outputs_are_up_to_date(notebook):
    """Test only the sources: with other package versions, make executes the notebook again."""
    stored = Fingerprints(ROOT / "notebooks" / "fingerprints.json").get(notebook)
    assert stored is not None, "run `make`"
    assert (
        stored.sources == compute_fingerprint(notebook, list_cells(weave_once(notebook))).sources
    ), "run `make`"


def test_notebook_was_executed_in_order_without_warnings(node):
    nbformat.validate(node)
    code = [cell for cell in node.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs(node) if output.output_type == "error"]
    assert not [output.text for output in outputs(node) if output.get("name") == "stderr"]


def test_printed_lines_fit_page(node):
    printed = [output.text for output in outputs(node) if "text" in output]
    assert printed
    assert [line for text in printed for line in text.splitlines() if width(line) > 84] == []


def width(line: str) -> int:
    """Return the width in columns; a Chinese character takes two."""
    return sum(2 if east_asian_width(letter) in "FW" else 1 for letter in line)


def test_figures_have_svg_png_and_description(node):
    displayed = [output for output in outputs(node) if "data" in output]
    figures = [output for output in displayed if output.data.keys() != {"text/plain"}]
    assert figures
    for figure in figures:
        assert figure.data.keys() == {SVG, PNG, "text/plain"}
        words = figure.data["text/plain"]
        assert re.match(ALTERNATIVE, words)
        assert figure.metadata[PNG].alt == words
        points = float(re.search(r'<svg [^>]*\bwidth="([\d.]+)pt"', figure.data[SVG])[1])
        assert figure.metadata[PNG].width == pytest.approx(points * 4 / 3, abs=1)
        drawing = ElementTree.fromstring(figure.data[SVG])
        assert drawing.findtext("{*}desc") == words
        assert words.startswith(drawing.findtext("{*}title"))
        assert not drawing.findall(".//{*}image")  # some viewers blur one
    for cell in node.cells:
        if cell.cell_type == "markdown":
            assert "![" not in cell.source
            for drawing in re.findall("<img .*", cell.source):  # as PNG: Colab shows no SVG there
                attributes = rf'src="data:{PNG};base64,[^"]*" width="\d+" alt="[^"]{{30,}}"'
                assert re.fullmatch(f"<img {attributes}>", drawing)


def test_notebook_has_no_trace_of_a_machine(notebook):
    text = re.sub('"image/png": "[^"]*"', "", notebook.path.read_text(encoding="utf-8"))
    assert not re.findall(r"(?:/(?:home|root|Users|tmp)/|site-packages|\.venv)[^\"]{0,40}", text)


# The same page, in every language and framework


def original_of(notebook: Notebook) -> Notebook:
    """Return the notebook in the lesson's original language."""
    return replace(notebook, language=find_original(notebook.lesson).name.split(".")[1])


ORIGINALS = [notebook for notebook in NOTEBOOKS if notebook == original_of(notebook)]
TRANSLATED = [notebook for notebook in NOTEBOOKS if notebook != original_of(notebook)]


@pytest.mark.parametrize(
    "notebook",
    [
        *(pytest.param(each, id=str(each)) for each in ORIGINALS),
        *(pytest.param(each, id=str(each), marks=pytest.mark.release) for each in TRANSLATED),
    ],
)
def test_uncompared_png_matches_its_svg(node):
    for cell in node.cells:
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            for output in cell.outputs:
                if SVG in (data := output.get("data", {})):
                    assert compare_png_with_svg(data[PNG], data[SVG]) is None, cell.id


def code_cells(notebook: Notebook) -> dict[str, NotebookNode]:
    cells = nbformat.read(notebook.path, as_version=4).cells
    return {cell.id: cell for cell in cells if cell.cell_type == "code"}


def output_texts(cell: NotebookNode) -> list[str]:
    """Return a cell's printed text, and the descriptions of its figures."""
    outputs = (
        output.data["text/plain"] if "data" in output else output.text for output in cell.outputs
    )
    return [text.replace("IllegalArgumentException", "ValueError") for text in outputs]  # Java's


@pytest.mark.parametrize("notebook", TRANSLATED, ids=str)
def test_code_and_outputs_match_original_notebook(notebook):
    ours, theirs = code_cells(notebook), code_cells(original_of(notebook))
    suffix = notebook.code.suffix
    assert list(ours) == list(theirs)
    for name, here in ours.items():
        there = theirs[name]
        assert here.metadata == there.metadata
        assert strip_strings(here.source, suffix) == strip_strings(there.source, suffix)
        if strip_comments(here.source, suffix) == strip_comments(there.source, suffix):
            assert here.outputs == there.outputs, name
        else:
            assert compare_languages(here.outputs, there.outputs) is None, name


@pytest.mark.parametrize("notebook", TRANSLATED, ids=str)
def test_each_language_shows_its_own_words(notebook):
    words = read_translations(notebook.lesson, notebook.language)
    ours, theirs = code_cells(notebook), code_cells(original_of(notebook))
    for name in ours:
        cells = {notebook.language: ours[name], original_of(notebook).language: theirs[name]}
        outputs = {language: cell.outputs for language, cell in cells.items()}
        assert find_language_fault(outputs, [words]) is None, name


def test_every_framework_shows_same_page(notebook):
    claims = claims_of(notebook.lesson)
    first = find_frameworks(notebook.lesson)[0]
    assert {*claims.DETERMINED, *claims.IN_ANOTHER_FORM} <= code_cells(notebook).keys()
    optional = {
        each.cell
        for each in read_passages(find_original(notebook.lesson))
        if each.block and each.block.kind == "only"
    }
    ours, firsts = (
        {name: cell for name, cell in code_cells(each).items() if name not in optional}
        for each in (notebook, replace(notebook, framework=first))
    )
    assert list(ours) == list(firsts)
    for name in firsts.keys() - {*claims.IN_ANOTHER_FORM}:
        here, there = output_texts(ours[name]), output_texts(firsts[name])
        words = [[NUMBER.sub("0", text).split() for text in texts] for texts in (here, there)]
        assert words[0] == words[1], name
        if name in claims.DETERMINED:
            assert compare_outputs(there, here) is None, name
