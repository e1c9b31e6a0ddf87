"""Pages and decks show, cell by cell, what their notebooks and texts have.

This needs no browser, and does not use the code that makes the site.
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
ASK = re.compile(
    r"^<<(?:live (?P<live>[\w-]+)|(?P<cell>[\w-]+)(?: (?P<part>\w+))?)>>$", re.MULTILINE
)
DRAWING = re.compile(r"!\[(?P<alt>[^]]*)\]\((?P<file>[^)]+\.svg)\)")
ASK_OR_DRAWING = re.compile(f"{ASK.pattern}|{DRAWING.pattern}", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """A part of a page: prose, code, printed output, a live figure, or a figure."""

    kind: str
    text: str  # the name of a live figure, the alternative text of a figure
    svg: str = ""


# What texts and notebooks have


@cache
def read_cells(notebook: Notebook) -> dict[str, NotebookNode]:
    found = nbformat.read(notebook.path, as_version=4).cells
    return {cell.id: cell for cell in found if cell.cell_type == "code" and cell.id != INSTALL}


def list_outputs(cell: NotebookNode) -> list[Shown]:
    found = []
    for output in cell.outputs:
        data = output.get("data", {})
        if SVG in data:
            found.append(Shown("figure", data["text/plain"], data[SVG]))
        else:
            found.append(Shown("printed", (output.get("text") or data["text/plain"]).rstrip()))
    return found


def show_code(cell: NotebookNode) -> Shown:
    return Shown("code", cell.source.strip())


def keep_letters(text: str) -> str:
    """Remove all but letters and digits: typesetting changes quotation marks and blanks."""
    return "".join(re.findall(r"\w", text))


def show_prose(markdown: str) -> str:
    """Return the letters of Markdown; of formulas only the digits, which MathML keeps."""

    def show(token: Token) -> str:
        if token.type.startswith("math"):
            return f"({keep_digits(token.content)})"
        return "".join(map(show, token.children)) if token.children else keep_letters(token.content)

    return "".join(map(show, MARKDOWN.parse(markdown)))


def keep_digits(formula: str) -> str:
    return "".join(re.findall(r"\d", formula))


def list_expected(slide: str, notebook: Notebook) -> list[Shown]:
    """List the parts that a slide must have, from its text."""
    found = []
    end = 0
    for match in [*ASK_OR_DRAWING.finditer(slide), None]:
        if text := show_prose(slide[end : match.start() if match else None]):
            found.append(Shown("prose", text))
        end = match.end() if match else end
        if match and match["file"]:
            found.append(show_drawing(match, notebook))
        elif match and match["live"]:
            found.append(Shown("live", match["live"]))
        elif match:
            cell = read_cells(notebook)[match["cell"]]
            found += [show_code(cell)] * (match["part"] != "output")
            found += list_outputs(cell) * (match["part"] != "code")
    return found


def select_blocks(text: str, frameworks: set[str], live: bool) -> str:
    """Return a text without cells and without the blocks that these frameworks do not show."""

    def select(block: re.Match[str]) -> str:
        is_shown = live if block[1] == "live" else frameworks & {*block[2].split()}
        return block[3] if is_shown else ""

    return ASK.sub("", BLOCK.sub(select, text))


def show_drawing(image: re.Match[str], notebook: Notebook) -> Shown:
    svg = (notebook.lesson / image["file"]).read_text(encoding="utf-8")
    return Shown("figure", " ".join(image["alt"].split()), svg)


# What pages and decks show


def parse(file: Path) -> BeautifulSoup:
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


def read_prose(*elements: Tag) -> str:
    """Return the letters of elements; of formulas the digits, of images the alternative text."""
    found = []
    for element in elements:
        copy = BeautifulSoup(str(element), "html.parser")
        for formula in copy("math"):
            formula.replace_with(f"\0{keep_digits(formula.get_text())}\1")
        for image in copy("img"):
            image.replace_with(str(image["alt"]))
        text = "".join(re.findall(r"[\w\0\1]", copy.get_text()))
        found.append(text.replace("\0", "(").replace("\1", ")"))
    return "".join(found)


def read_figure(image: Tag, page: Path) -> Shown:
    source = str(image["src"])
    embedded = source.partition("data:image/svg+xml;base64,")[2]
    svg = b64decode(embedded).decode() if embedded else (page.parent / source).read_text("utf-8")
    return Shown("figure", str(image["alt"]), svg)


def read_tab(content: Tag, page: Path) -> list[Shown]:
    """List the code and the outputs of a cell in a tab."""
    found = []
    for element in content.find_all(recursive=False):
        if element.name == "img":
            found.append(read_figure(element, page))
        else:
            is_output = "output" in element["class"]
            text = element.get_text()
            found.append(
                Shown("printed", text.rstrip()) if is_output else Shown("code", text.strip())
            )
    return found


def read_slide(section: Tag, page: Path) -> list[Shown]:
    """List the parts of a slide; neighbouring elements of prose are one part."""
    found: list[Shown] = []
    for element in section.find_all(recursive=False):
        classes = element.get("class") or []
        if element.name == "aside":
            continue
        if element.name == "img":
            found.append(read_figure(element, page))
        elif "live" in classes:
            found.append(Shown("live", str(element["data-live"])))
        elif "printed" in classes:
            found.append(Shown("printed", element.get_text().rstrip()))
        elif "highlight" in classes:
            found.append(Shown("code", element.get_text().strip()))
        elif found and found[-1].kind == "prose":
            found[-1] = Shown("prose", found[-1].text + read_prose(element))
        elif text := read_prose(element):
            found.append(Shown("prose", text))
    return found


def assert_same(shown: list[Shown], expected: list[Shown], where: str) -> None:
    kinds_and_texts = [(each.kind, each.text) for each in expected]
    assert [(each.kind, each.text) for each in shown] == kinds_and_texts, where
    for here, there in zip(shown, expected, strict=True):
        is_same = here.svg == there.svg or is_same_figure(here.svg, there.svg)
        assert is_same, f"{where}: another figure"


@cache
def read_tabs(page: Path) -> dict[str, dict[str, Tag]]:
    """Return the tabs of a page by cell and framework; those of the cell "" are below the title."""
    found: dict[str, dict[str, Tag]] = {}
    for tab_set in parse(page).select(".sd-tab-set"):
        labels = tab_set.find_all("label", recursive=False)
        contents = tab_set.find_all("div", recursive=False)
        frameworks = [str(label["data-sync-id"]) for label in labels]
        titles = [label.get_text(strip=True) for label in labels]
        assert titles == [FRAMEWORKS[framework].title for framework in frameworks]
        name = str(tab_set.get("id", "")).removeprefix("cell-")
        assert name not in found
        found[name] = dict(zip(frameworks, contents, strict=True))
    return found


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_every_tab_shows_the_code_and_outputs_of_its_notebook(site: Path, notebook: Notebook):
    page = site / notebook.language / f"{notebook.lesson.name}.html"
    shown = {
        name: found[notebook.framework]
        for name, found in read_tabs(page).items()
        if name and notebook.framework in found
    }
    assert [*shown] == [*read_cells(notebook)]
    for name, cell in read_cells(notebook).items():
        assert_same(read_tab(shown[name], page), [show_code(cell), *list_outputs(cell)], name)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_other_tabs_than_those_of_its_notebooks(site: Path, path: str):
    for name, found in read_tabs(site / path).items():
        expected = [
            notebook.framework
            for notebook in find_notebooks(path)
            if not name or name in read_cells(notebook)
        ]
        assert [*found] == expected
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
    frameworks = {each.framework for each in find_notebooks(path)}
    expected = select_blocks(SLIDE.sub("", text), frameworks, live=True)
    assert read_prose(article) == show_prose(expected)
    drawings = [show_drawing(image, notebook) for image in DRAWING.finditer(expected)]
    assert [read_figure(image, site / path) for image in article("img")] == drawings


# The cells of all notebooks are tested in the tabs of pages as well.
@pytest.mark.parametrize("notebook", mark_release(NOTEBOOKS, always=FIRST_NOTEBOOKS), ids=str)
def test_every_deck_has_the_slides_of_its_text_and_the_cells_of_its_notebook(
    site: Path, notebook: Notebook
):
    path = site / "slides" / f"{notebook}.html"
    sections = parse(path).select("section > section")
    text = notebook.text.read_text(encoding="utf-8")
    _, *parts = SLIDE.split(text)  # each slide, and the prose after it
    slides, notes = parts[::2], parts[1::2]
    headings = [slide.splitlines()[0] for slide in slides]
    shown = [read_prose(section.find(["h1", "h2"])) for section in sections]
    assert shown == [*map(show_prose, headings)]
    sections[0].select_one(".credit").extract()  # test_credit.py reads it
    for section, slide, prose in zip(sections, slides, notes, strict=True):
        assert_same(read_slide(section, path), list_expected(slide, notebook), slide)
        expected = select_blocks(prose, {notebook.framework}, live=False)
        assert read_prose(*section.select("aside.notes")) == show_prose(expected)
