"""Test functions of tools/site without a browser."""

import re
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tests.conftest import write_chapter
from tests.site.conftest import NOTEBOOKS, list_stored_figures
from tests.site.figures import is_same_figure
from tools.compare.figures import SVG
from tools.site.figures import shrink_figure
from tools.site.mathematics import to_mathml
from tools.site.pages import make_page
from tools.site.search import SearchTraditionalChinese
from tools.site.slides import make_deck
from tools.weave.credit import render_credit
from tools.weave.lessons import LessonError, list_notebooks

ENGLISH = [notebook for notebook in NOTEBOOKS if notebook.language == "en"]


def test_a_shrunken_figure_shows_the_same():
    figures = [figure for notebook in ENGLISH for figure in list_stored_figures(notebook)]
    assert len(figures) >= 48
    for figure in figures:
        small = shrink_figure(figure)
        assert is_same_figure(small, figure)
        assert small == figure or len(small) < 0.5 * len(figure)  # Java's are not changed
        ids = set(re.findall(r'\bid="([^"]*)"', small))
        assert set(re.findall(r"#([a-zA-Z][-\w]+-\w+|[mp][0-9a-f]{9,})", small)) <= ids


@pytest.mark.parametrize(
    ("formula", "markup"),
    [
        (r"\mathrm{softmax}(x)", "<mi>softmax</mi>"),
        (r"\sin a \sin b", '<mi>a</mi><mspace width="0.17em"/><mi>sin</mi>'),
        (r"\sin^2", "<msup><mi>sin</mi><mn>2</mn></msup>"),
        (r"\boldsymbol{\Pi}", '<mi mathvariant="normal" class="bold">&#x003A0;</mi>'),
        (r"\begin{aligned} a &= b \\ &= c \end{aligned}", "<mtable"),
    ],
)
def test_formulas_become_mathml(formula: str, markup: str):
    assert markup in to_mathml(formula)
    ElementTree.fromstring(to_mathml(formula, "block"))


def test_chinese_is_indexed_by_pairs_of_characters():
    language = SearchTraditionalChinese({})
    assert language.split("自注意力 (self-attention) 與 P") == [
        *("自", "注", "意", "力", "自注", "注意", "意力"),
        *("self", "attention", "與", "P"),
    ]


# A small lesson


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    folder = tmp_path / "lessons" / "tiny"
    (folder / "live").mkdir(parents=True)
    write_chapter(tmp_path, "tiny")
    (folder / "live" / "clock.js").touch()
    for framework in ("jax", "mxnet"):
        (folder / f"code.{framework}.py").write_text("# %% one\n1\n")
        content = nbformat.v4.new_notebook(
            metadata={"language_info": {"name": "python"}},
            cells=[
                nbformat.v4.new_markdown_cell("# Title"),
                nbformat.v4.new_code_cell(
                    "1",
                    id="one",
                    execution_count=1,
                    outputs=[nbformat.v4.new_output("stream", text=f"{framework}: 1\n")],
                ),
            ],
        )
        path = tmp_path / "notebooks" / "en" / framework / "tiny.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(content, path)
    (folder / "text.en.md").write_text(
        ":::{slide}\n# On a slide\n\n<<one output>>\n:::\n\n# Title\n\nBefore $x$.\n\n<<one>>\n\n"
        ":::{only} jax\nFor JAX.\n:::\n\n:::{live} clock\nA clock.\n:::\n\n## A part: two\n\nAfter.\n"
    )
    return tmp_path


def test_a_page_has_the_cells_of_all_frameworks_and_no_slides(lesson: Path):
    cells = make_page(list(list_notebooks(root=lesson))).cells
    text = "\n".join(cell.source for cell in cells)
    code_cells = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.metadata["d2l"]["framework"] for cell in code_cells] == ["jax", "mxnet"]
    assert "On a slide" not in text
    assert "{div} only for-jax" in text
    assert 'data-live="clock"' in text
    assert "(tiny-a-part-two)=\n## A part: two" in text


def test_each_figure_of_a_cell_has_its_own_alternative(lesson: Path):
    path = lesson / "notebooks" / "en" / "jax" / "tiny.ipynb"
    content = nbformat.read(path, as_version=4)
    content.cells[1].outputs += [
        nbformat.v4.new_output(
            "display_data", {SVG: f'<svg width="{width}"/>', "text/plain": f"{width} wide"}
        )
        for width in (1, 2)
    ]
    nbformat.write(content, path)
    sources, site = lesson / "sources", lesson / "site"
    sources.mkdir()
    nbformat.write(make_page(list(list_notebooks(root=lesson))), sources / "index.ipynb")
    with patch_docutils(), docutils_namespace():
        extensions = ["myst_nb", "sphinx_design", "tools.site.code", "tools.site.tabs"]
        settings = {
            "extensions": extensions,
            "nb_execution_mode": "off",
            "myst_enable_extensions": ["colon_fence"],
        }
        Sphinx(sources, None, site, site, "html", settings, status=None).build()
    html = (site / "index.html").read_text(encoding="utf-8")
    images = re.findall(r'<img [^>]*alt="(\d wide)"[^>]*src="([^"]+)"', html)
    assert [alternative for alternative, _ in images] == ["1 wide", "2 wide"]
    for alternative, file in images:
        assert f'width="{alternative[0]}"' in (site / file).read_text()


def test_a_deck_has_the_slides_and_the_other_prose_as_notes(lesson: Path):
    jax, mxnet = (make_deck(notebook) for notebook in list_notebooks(root=lesson))
    kinds = [cell.metadata.slideshow.slide_type for cell in jax.cells]
    assert kinds == ["slide", "-", "-", "notes"]
    assert jax.cells[0].source.strip() == "# On a slide"
    assert jax.cells[1].metadata.parts == ("output",)
    assert jax.cells[1].outputs[0].text == "jax: 1\n"
    assert render_credit("en", "slides") in jax.cells[2].source
    notes = jax.cells[3].source
    assert "**Title**" in notes
    assert "<mi>x</mi>" in notes
    assert "For JAX." in notes
    assert "For JAX." not in mxnet.cells[3].source
    assert "A clock." not in notes


def test_the_error_for_a_missing_notebook_says_what_to_do(lesson: Path):
    (lesson / "notebooks" / "en" / "jax" / "tiny.ipynb").unlink()
    with pytest.raises(LessonError, match=r"jax/tiny\.ipynb: No such file.*: run `make` first"):
        make_page(list(list_notebooks(root=lesson)))


def test_a_text_without_slides_is_an_error(lesson: Path):
    (lesson / "lessons" / "tiny" / "text.en.md").write_text("# Title\n\n<<one>>\n")
    with pytest.raises(LessonError, match="no slide"):
        make_deck(next(list_notebooks(root=lesson)))
