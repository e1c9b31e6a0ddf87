"""Test that the committed notebooks are up to date, complete, and without traces of a machine."""

import re
from dataclasses import replace
from functools import cache
from unicodedata import east_asian_width
from xml.etree import ElementTree

import nbformat
import pytest
from nbformat import NotebookNode

from tests.lessons.cells import import_claims
from tools.compare.figures import PNG, SVG
from tools.compare.languages import compare_languages
from tools.compare.numbers import NUMBER
from tools.compare.outputs import compare_outputs
from tools.compare.pixels import compare_png_with_svg
from tools.run.fingerprints import Fingerprints, compute_fingerprint
from tools.run.languages import find_language_error
from tools.run.runner import list_cells
from tools.weave.fragments import strip_comments, strip_strings
from tools.weave.lessons import ROOT, Notebook, find_frameworks, list_notebooks
from tools.weave.notebooks import weave
from tools.weave.prose import find_original, read_passages
from tools.weave.words import read_translations

NOTEBOOKS = list(list_notebooks())
cached_weave = cache(weave)
DESCRIPTION = re.compile(r'("[^"]+": )?(Heat map|Line plot)|(「[^」]+」：)?(熱圖|折線圖)')


@pytest.fixture(params=NOTEBOOKS, ids=str)
def notebook(request: pytest.FixtureRequest) -> Notebook:
    return request.param


@pytest.fixture
def node(notebook: Notebook) -> NotebookNode:
    return nbformat.read(notebook.path, as_version=4)


def list_outputs(node: NotebookNode) -> list[NotebookNode]:
    return [output for cell in node.cells for output in cell.get("outputs", [])]


def test_every_notebook_belongs_to_a_page():
    # Leave out Jupyter's copies, which are in hidden folders.
    paths = set((ROOT / "notebooks").glob("[!.]*/[!.]*/[!.]*.ipynb"))
    assert paths == {notebook.path for notebook in NOTEBOOKS}


def test_notebook_is_woven_from_lesson(notebook, node):
    woven = cached_weave(notebook)
    assert node.metadata == woven.metadata
    for stored, fresh in zip(node.cells, woven.cells, strict=True):
        keys = ("id", "cell_type", "metadata", "source")
        assert [stored[key] for key in keys] == [fresh[key] for key in keys], "run `make`"


def test_outputs_are_up_to_date(notebook):
    """Test only the sources: with other package versions, make executes the notebook again."""
    stored = Fingerprints(ROOT / "notebooks" / "fingerprints.json").get(notebook)
    assert stored is not None, "run `make`"
    assert (
        stored.sources == compute_fingerprint(notebook, list_cells(cached_weave(notebook))).sources
    ), "run `make`"


def test_notebook_was_executed_in_order_without_warnings(node):
    nbformat.validate(node)
    code = [cell for cell in node.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in list_outputs(node) if output.output_type == "error"]
    assert not [output.text for output in list_outputs(node) if output.get("name") == "stderr"]


def test_printed_lines_fit_page(node):
    printed = [output.text for output in list_outputs(node) if "text" in output]
    assert printed
    lines = [line for text in printed for line in text.splitlines()]
    assert [line for line in lines if count_columns(line) > 84] == []


def count_columns(line: str) -> int:
    """Return the width in columns; a Chinese character takes two."""
    return sum(2 if east_asian_width(letter) in "FW" else 1 for letter in line)


def test_figures_have_svg_png_and_description(node):
    displayed = [output for output in list_outputs(node) if "data" in output]
    figures = [output for output in displayed if output.data.keys() != {"text/plain"}]
    assert figures
    for figure in figures:
        assert figure.data.keys() == {SVG, PNG, "text/plain"}
        words = figure.data["text/plain"]
        assert re.match(DESCRIPTION, words)
        assert figure.metadata[PNG].alt == words
        points = float(re.search(r'<svg [^>]*\bwidth="([\d.]+)pt"', figure.data[SVG])[1])
        assert figure.metadata[PNG].width == pytest.approx(points * 4 / 3, abs=1)
        drawing = ElementTree.fromstring(figure.data[SVG])
        assert drawing.findtext("{*}desc") == words
        assert words.startswith(drawing.findtext("{*}title"))
        assert not drawing.findall(".//{*}image")  # some viewers blur an embedded image
    for cell in node.cells:
        if cell.cell_type == "markdown":
            assert "![" not in cell.source
            # Drawings are PNGs, since Colab shows no SVG in Markdown.
            for drawing in re.findall("<img .*", cell.source):
                attributes = rf'src="data:{PNG};base64,[^"]*" width="\d+" alt="[^"]{{30,}}"'
                assert re.fullmatch(f"<img {attributes}>", drawing)


def test_notebook_has_no_trace_of_a_machine(notebook):
    text = re.sub('"image/png": "[^"]*"', "", notebook.path.read_text(encoding="utf-8"))
    assert not re.findall(r"(?:/(?:home|root|Users|tmp)/|site-packages|\.venv)[^\"]{0,40}", text)


# The same page, in every language and framework


def get_original(notebook: Notebook) -> Notebook:
    """Return the notebook in the lesson's original language."""
    return replace(notebook, language=find_original(notebook.lesson).name.split(".")[1])


ORIGINALS = [notebook for notebook in NOTEBOOKS if notebook == get_original(notebook)]
TRANSLATIONS = [notebook for notebook in NOTEBOOKS if notebook != get_original(notebook)]


@pytest.mark.parametrize(
    "notebook",
    [
        *(pytest.param(each, id=str(each)) for each in ORIGINALS),
        *(pytest.param(each, id=str(each), marks=pytest.mark.release) for each in TRANSLATIONS),
    ],
)
def test_uncompared_png_matches_its_svg(node):
    for cell in node.cells:
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            for output in cell.outputs:
                if SVG in (data := output.get("data", {})):
                    assert compare_png_with_svg(data[PNG], data[SVG]) is None, cell.id


def read_code_cells(notebook: Notebook) -> dict[str, NotebookNode]:
    cells = nbformat.read(notebook.path, as_version=4).cells
    return {cell.id: cell for cell in cells if cell.cell_type == "code"}


def list_output_texts(cell: NotebookNode) -> list[str]:
    """Return a cell's printed text, and the descriptions of its figures."""
    outputs = (
        output.data["text/plain"] if "data" in output else output.text for output in cell.outputs
    )
    return [text.replace("IllegalArgumentException", "ValueError") for text in outputs]  # Java's


@pytest.mark.parametrize("notebook", TRANSLATIONS, ids=str)
def test_code_and_outputs_match_original_notebook(notebook):
    cells = read_code_cells(notebook)
    originals = read_code_cells(get_original(notebook))
    suffix = notebook.code.suffix
    assert list(cells) == list(originals)
    for name, cell in cells.items():
        original = originals[name]
        assert cell.metadata == original.metadata
        assert strip_strings(cell.source, suffix) == strip_strings(original.source, suffix)
        if strip_comments(cell.source, suffix) == strip_comments(original.source, suffix):
            assert cell.outputs == original.outputs, name
        else:
            assert compare_languages(cell.outputs, original.outputs) is None, name


@pytest.mark.parametrize("notebook", TRANSLATIONS, ids=str)
def test_outputs_are_in_the_notebooks_language(notebook):
    words = read_translations(notebook.lesson, notebook.language)
    original = get_original(notebook)
    cells_by_language = {each.language: read_code_cells(each) for each in (notebook, original)}
    for name in cells_by_language[notebook.language]:
        outputs = {language: cells[name].outputs for language, cells in cells_by_language.items()}
        assert find_language_error(outputs, [words]) is None, name


def split_words(texts: list[str]) -> list[list[str]]:
    """Return the words of each text, with 0 for each number, and without ranges: one seed has none."""
    return [NUMBER.sub("0", text).replace("(00)", "").split() for text in texts]


def test_every_framework_shows_the_same_page(notebook):
    claims = import_claims(notebook.lesson)
    first = find_frameworks(notebook.lesson)[0]
    assert {*claims.DETERMINISTIC, *claims.VARYING_FORM} <= read_code_cells(notebook).keys()
    optional = {
        passage.cell
        for passage in read_passages(find_original(notebook.lesson))
        if passage.block and passage.block.kind == "only"
    }
    cells, first_cells = (
        {name: cell for name, cell in read_code_cells(each).items() if name not in optional}
        for each in (notebook, replace(notebook, framework=first))
    )
    assert list(cells) == list(first_cells)
    for name in first_cells.keys() - {*claims.VARYING_FORM}:
        texts = list_output_texts(cells[name])
        first_texts = list_output_texts(first_cells[name])
        assert split_words(texts) == split_words(first_texts), name
        if name in claims.DETERMINISTIC:
            assert compare_outputs(first_texts, texts) is None, name
