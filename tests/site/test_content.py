"""Test that pages and decks show, cell by cell, the content of their notebooks and texts.

The tests need no browser, and do not use the code that makes the site.
"""

import re
from base64 import b64decode
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup, Tag
from markdown_it.token import Token
from nbformat import NotebookNode

from d2l_compat.frameworks import FRAMEWORKS
from tests.lessons.prose import MARKDOWN
from tests.site.conftest import FIRST_NOTEBOOKS, NOTEBOOKS, PAGES, find_notebooks, mark_release
from tests.site.figures import is_same_figure
from tools.compare.figures import SVG
from tools.weave.launch import INSTALL
from tools.weave.lessons import ROOT, Notebook

SLIDE = re.compile(r"^:::\{slide\}\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^:::\{(\w+)\} ?(.*)\n((?:.|\n)*?)^:::$", re.MULTILINE)
REQUEST = re.compile(
    r"^<<(?:live (?P<live>[\w-]+)|(?P<cell>[\w-]+)(?: (?P<part>\w+))?)>>$", re.MULTILINE
)
DRAWING = re.compile(r"!\[(?P<alt>[^]]*)\]\((?P<file>[^)]+\.svg)\)")
REQUEST_OR_DRAWING = re.compile(f"{REQUEST.pattern}|{DRAWING.pattern}", re.MULTILINE)


@dataclass(frozen=True)
class Part:
    """A part of a page: prose, code, printed output, a live figure, or a figure."""

    kind: str
    text: str  # the name of a live figure, the alternative text of a figure
    svg: str = ""


# The content of texts and notebooks


@cache
def read_cells(notebook: Notebook) -> dict[str, NotebookNode]:
    cells = nbformat.read(notebook.path, as_version=4).cells
    return {cell.id: cell for cell in cells if cell.cell_type == "code" and cell.id != INSTALL}


def list_outputs(cell: NotebookNode) -> list[Part]:
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if SVG in data:
            parts.append(Part("figure", data["text/plain"], data[SVG]))
        else:
            parts.append(Part("printed", (output.get("text") or data["text/plain"]).rstrip()))
    return parts


def make_code_part(cell: NotebookNode) -> Part:
    return Part("code", cell.source.strip())


def keep_letters(text: str) -> str:
    """Keep only letters and digits, because typesetting changes quotation marks and spaces."""
    return "".join(re.findall(r"\w", text))


def reduce_prose(markdown: str) -> str:
    """Return the letters of Markdown, and the digits of its formulas, which are the same in TeX and MathML."""

    def reduce_token(token: Token) -> str:
        if token.type.startswith("math"):
            return f"({keep_digits(token.content)})"
        if token.children:
            return "".join(map(reduce_token, token.children))
        return keep_letters(token.content)

    return "".join(map(reduce_token, MARKDOWN.parse(markdown)))


def keep_digits(formula: str) -> str:
    return "".join(re.findall(r"\d", formula))


def list_expected_parts(slide: str, notebook: Notebook) -> list[Part]:
    """List the parts that a slide must have, from its text."""
    parts = []
    end = 0
    for match in [*REQUEST_OR_DRAWING.finditer(slide), None]:
        if text := reduce_prose(slide[end : match.start() if match else None]):
            parts.append(Part("prose", text))
        end = match.end() if match else end
        if match and match["file"]:
            parts.append(make_drawing_part(match, notebook))
        elif match and match["live"]:
            parts.append(Part("live", match["live"]))
        elif match:
            cell = read_cells(notebook)[match["cell"]]
            if match["part"] != "output":
                parts.append(make_code_part(cell))
            if match["part"] != "code":
                parts += list_outputs(cell)
    return parts


def select_blocks(text: str, frameworks: set[str], keep_live: bool) -> str:
    """Remove cells, blocks for other frameworks and, unless ``keep_live``, blocks of live figures from a text."""

    def select(block: re.Match[str]) -> str:
        is_kept = keep_live if block[1] == "live" else frameworks & {*block[2].split()}
        return block[3] if is_kept else ""

    return REQUEST.sub("", BLOCK.sub(select, text))


def make_drawing_part(image: re.Match[str], notebook: Notebook) -> Part:
    svg = (notebook.lesson / image["file"]).read_text(encoding="utf-8")
    return Part("figure", " ".join(image["alt"].split()), svg)


# The content of pages and decks


def parse(file: Path) -> BeautifulSoup:
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


def read_prose(*elements: Tag) -> str:
    """Return the letters of elements, with the digits of formulas and the alternative texts of images."""
    texts = []
    for element in elements:
        copy = BeautifulSoup(str(element), "html.parser")
        for formula in copy("math"):
            formula.replace_with(f"\0{keep_digits(formula.get_text())}\1")
        for image in copy("img"):
            image.replace_with(str(image["alt"]))
        text = "".join(re.findall(r"[\w\0\1]", copy.get_text()))
        texts.append(text.replace("\0", "(").replace("\1", ")"))
    return "".join(texts)


def read_figure(image: Tag, page: Path) -> Part:
    source = str(image["src"])
    embedded = source.partition("data:image/svg+xml;base64,")[2]
    svg = b64decode(embedded).decode() if embedded else (page.parent / source).read_text("utf-8")
    return Part("figure", str(image["alt"]), svg)


def read_tab(content: Tag, page: Path) -> list[Part]:
    """List the code and the outputs of a cell in a tab."""
    parts = []
    for element in content.find_all(recursive=False):
        if element.name == "img":
            parts.append(read_figure(element, page))
        elif "output" in element["class"]:
            parts.append(Part("printed", element.get_text().rstrip()))
        else:
            parts.append(Part("code", element.get_text().strip()))
    return parts


def read_slide(section: Tag, page: Path) -> list[Part]:
    """List the parts of a slide; neighbouring elements of prose are one part."""
    parts: list[Part] = []
    for element in section.find_all(recursive=False):
        classes = element.get("class") or []
        if element.name == "aside":
            continue
        if element.name == "img":
            parts.append(read_figure(element, page))
        elif "live" in classes:
            parts.append(Part("live", str(element["data-live"])))
        elif "printed" in classes:
            parts.append(Part("printed", element.get_text().rstrip()))
        elif "highlight" in classes:
            parts.append(Part("code", element.get_text().strip()))
        elif parts and parts[-1].kind == "prose":
            parts[-1] = Part("prose", parts[-1].text + read_prose(element))
        elif text := read_prose(element):
            parts.append(Part("prose", text))
    return parts


def assert_same(actual: list[Part], expected: list[Part], location: str) -> None:
    kinds_and_texts = [(part.kind, part.text) for part in expected]
    assert [(part.kind, part.text) for part in actual] == kinds_and_texts, location
    for actual_part, expected_part in zip(actual, expected, strict=True):
        svg, expected_svg = actual_part.svg, expected_part.svg
        assert svg == expected_svg or is_same_figure(svg, expected_svg), (
            f"{location}: the figures differ"
        )


@cache
def read_tabs(page: Path) -> dict[str, dict[str, Tag]]:
    """Return the tabs of a page by cell and framework; the key "" stands for the tabs below the title."""
    tabs: dict[str, dict[str, Tag]] = {}
    for tab_set in parse(page).select(".sd-tab-set"):
        labels = tab_set.find_all("label", recursive=False)
        contents = tab_set.find_all("div", recursive=False)
        frameworks = [str(label["data-sync-id"]) for label in labels]
        titles = [label.get_text(strip=True) for label in labels]
        assert titles == [FRAMEWORKS[framework].title for framework in frameworks]
        name = str(tab_set.get("id", "")).removeprefix("cell-")
        assert name not in tabs
        tabs[name] = dict(zip(frameworks, contents, strict=True))
    return tabs


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_every_tab_shows_the_code_and_outputs_of_its_notebook(site: Path, notebook: Notebook):
    page = site / notebook.language / f"{notebook.lesson.name}.html"
    contents = {
        name: tabs[notebook.framework]
        for name, tabs in read_tabs(page).items()
        if name and notebook.framework in tabs
    }
    assert [*contents] == [*read_cells(notebook)]
    for name, cell in read_cells(notebook).items():
        expected = [make_code_part(cell), *list_outputs(cell)]
        assert_same(read_tab(contents[name], page), expected, name)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_only_the_tabs_of_its_notebooks(site: Path, path: str):
    for name, tabs in read_tabs(site / path).items():
        expected = [
            notebook.framework
            for notebook in find_notebooks(path)
            if not name or name in read_cells(notebook)
        ]
        assert [*tabs] == expected
    for notebook in find_notebooks(path):
        file = notebook.path.relative_to(ROOT).as_posix()
        links = [str(link["href"]) for link in read_tabs(site / path)[""][notebook.framework]("a")]
        *services, deck = [link.replace("%2F", "/") for link in links]
        assert services
        assert all(file in link for link in services)
        assert deck == f"../slides/{notebook}.html"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_the_prose_of_its_text(site: Path, path: str):
    notebook = find_notebooks(path)[0]
    article = parse(site / path).select_one("article section")
    assert article
    for element in article.select(".sd-tab-set, .only-title, .headerlink, .back, .live"):
        element.decompose()
    text = notebook.text.read_text(encoding="utf-8")
    frameworks = {notebook.framework for notebook in find_notebooks(path)}
    expected = select_blocks(SLIDE.sub("", text), frameworks, keep_live=True)
    assert read_prose(article) == reduce_prose(expected)
    drawings = [make_drawing_part(image, notebook) for image in DRAWING.finditer(expected)]
    assert [read_figure(image, site / path) for image in article("img")] == drawings


# One notebook per page is enough, because the tabs of pages are tested with the cells of all notebooks.
@pytest.mark.parametrize("notebook", mark_release(NOTEBOOKS, always=FIRST_NOTEBOOKS), ids=str)
def test_every_deck_shows_its_text_and_its_notebook(site: Path, notebook: Notebook):
    path = site / "slides" / f"{notebook}.html"
    sections = parse(path).select("section > section")
    text = notebook.text.read_text(encoding="utf-8")
    _, *parts = SLIDE.split(text)  # each slide, and the prose after it
    slides, notes = parts[::2], parts[1::2]
    for index in reversed(range(len(notes) - 1)):  # slides with no prose between them share notes
        notes[index] = notes[index].strip() or notes[index + 1]
    headings = [slide.splitlines()[0] for slide in slides]
    actual_headings = [read_prose(section.find(["h1", "h2"])) for section in sections]
    assert actual_headings == [*map(reduce_prose, headings)]
    sections[0].select_one(".credit").extract()  # test_credit.py tests it
    for section, slide, prose in zip(sections, slides, notes, strict=True):
        assert_same(read_slide(section, path), list_expected_parts(slide, notebook), slide)
        expected = select_blocks(prose, {notebook.framework}, keep_live=False)
        assert read_prose(*section.select("aside.notes")) == reduce_prose(expected)
