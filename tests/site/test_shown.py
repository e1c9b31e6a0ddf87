"""What the built pages and decks show, cell by cell: it is what each one's own notebook and text have.

No browser is needed; nothing here is made by the code that makes the site.
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
from tests.site.conftest import EDITIONS, FIRST, PAGES, leave_to_release
from tests.site.figures import shows_the_same
from tools.compare.figures import SVG
from tools.weave.launch import INSTALL
from tools.weave.lessons import Edition

SLIDE = re.compile(r"^:::\{slide\}\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^:::\{(\w+)\} ?(.*)\n((?:.|\n)*?)^:::$", re.MULTILINE)
ASK = re.compile(
    r"^<<(?:live (?P<live>[\w-]+)|(?P<cell>[\w-]+)(?: (?P<part>\w+))?)>>$", re.MULTILINE
)
DRAWING = re.compile(r"!\[(?P<alt>[^]]*)\]\((?P<file>[^)]+\.svg)\)")
ASK_OR_DRAWING = re.compile(f"{ASK.pattern}|{DRAWING.pattern}", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """Words, code, something printed, the name of a live figure, or a figure: its SVG, and its text alternative."""

    what: str
    text: str
    svg: str = ""


# As the text and the notebook have it


@cache
def cells(edition: Edition) -> dict[str, NotebookNode]:
    found = nbformat.read(edition.notebook, as_version=4).cells
    return {cell.id: cell for cell in found if cell.cell_type == "code" and cell.id != INSTALL}


def outputs(cell: NotebookNode) -> list[Shown]:
    found = []
    for output in cell.outputs:
        data = output.get("data", {})
        if SVG in data:
            found.append(Shown("figure", data["text/plain"], data[SVG]))
        else:
            found.append(Shown("printed", (output.get("text") or data["text/plain"]).rstrip()))
    return found


def code(cell: NotebookNode) -> Shown:
    return Shown("code", cell.source.strip())


def letters(text: str) -> str:
    """Of words: typesetting changes quotation marks and blanks."""
    return "".join(re.findall(r"\w", text))


def prose(markdown: str) -> str:
    """Its letters; of a formula the digits."""

    def say(token: Token) -> str:
        if token.type.startswith("math"):
            return f"({digits(token.content)})"
        return "".join(map(say, token.children)) if token.children else letters(token.content)

    return "".join(map(say, MARKDOWN.parse(markdown)))


def digits(formula: str) -> str:
    return "".join(re.findall(r"\d", formula))


def asked_for(slide: str, edition: Edition) -> list[Shown]:
    """What a slide's text asks for, in its order."""
    found, end = [], 0
    for asked in [*ASK_OR_DRAWING.finditer(slide), None]:
        if words := prose(slide[end : asked.start() if asked else None]):
            found.append(Shown("words", words))
        end = asked.end() if asked else end
        if asked and asked["file"]:
            found.append(drawing(asked, edition))
        elif asked and asked["live"]:
            found.append(Shown("live", asked["live"]))
        elif asked:
            cell = cells(edition)[asked["cell"]]
            found += [code(cell)] * (asked["part"] != "output")
            found += outputs(cell) * (asked["part"] != "code")
    return found


def kept(text: str, frameworks: set[str], live: bool) -> str:
    """What a reader or a speaker with these frameworks meets of a text between its slides, cells left out."""

    def keep(block: re.Match[str]) -> str:
        is_shown = live if block[1] == "live" else frameworks & {*block[2].split()}
        return block[3] if is_shown else ""

    return ASK.sub("", BLOCK.sub(keep, text))


def drawing(image: re.Match[str], edition: Edition) -> Shown:
    svg = (edition.folder / image["file"]).read_text(encoding="utf-8")
    return Shown("figure", " ".join(image["alt"].split()), svg)


# As it is shown


def read(file: Path) -> BeautifulSoup:
    return BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")


def said(*elements: Tag) -> str:
    """The letters of what a page says; of a formula the digits."""
    found = []
    for element in elements:
        copy = BeautifulSoup(str(element), "html.parser")
        for formula in copy("math"):
            formula.replace_with(f"\0{digits(formula.get_text())}\1")
        for image in copy("img"):
            image.replace_with(str(image["alt"]))
        text = "".join(re.findall(r"[\w\0\1]", copy.get_text()))
        found.append(text.replace("\0", "(").replace("\1", ")"))
    return "".join(found)


def figure(image: Tag, page: Path) -> Shown:
    source = str(image["src"])
    embedded = source.partition("data:image/svg+xml;base64,")[2]
    svg = b64decode(embedded).decode() if embedded else (page.parent / source).read_text("utf-8")
    return Shown("figure", str(image["alt"]), svg)


def in_tab(content: Tag, page: Path) -> list[Shown]:
    """A cell's code, and all that it showed."""
    found = []
    for element in content.find_all(recursive=False):
        if element.name == "img":
            found.append(figure(element, page))
        else:
            is_output = "output" in element["class"]
            text = element.get_text()
            found.append(
                Shown("printed", text.rstrip()) if is_output else Shown("code", text.strip())
            )
    return found


def on_slide(section: Tag, page: Path) -> list[Shown]:
    """In its order; what stands together is one."""
    found: list[Shown] = []
    for element in section.find_all(recursive=False):
        classes = element.get("class") or []
        if element.name == "aside":
            continue
        if element.name == "img":
            found.append(figure(element, page))
        elif "live" in classes:
            found.append(Shown("live", str(element["data-live"])))
        elif "printed" in classes:
            found.append(Shown("printed", element.get_text().rstrip()))
        elif "highlight" in classes:
            found.append(Shown("code", element.get_text().strip()))
        elif found and found[-1].what == "words":
            found[-1] = Shown("words", found[-1].text + said(element))
        elif words := said(element):
            found.append(Shown("words", words))
    return found


def assert_same(made: list[Shown], stored: list[Shown], where: str) -> None:
    assert [(each.what, each.text) for each in made] == [
        (each.what, each.text) for each in stored
    ], where
    for here, there in zip(made, stored, strict=True):
        is_same = here.svg == there.svg or shows_the_same(here.svg, there.svg)
        assert is_same, f"{where}: another figure"


@cache
def tabs(page: Path) -> dict[str, dict[str, Tag]]:
    """By cell and framework. The first ones, without a cell's name, are the choice of a framework."""
    found: dict[str, dict[str, Tag]] = {}
    for tab_set in read(page).select(".sd-tab-set"):
        labels = tab_set.find_all("label", recursive=False)
        contents = tab_set.find_all("div", recursive=False)
        frameworks = [str(label["data-sync-id"]) for label in labels]
        titles = [label.get_text(strip=True) for label in labels]
        assert titles == [FRAMEWORKS[framework].title for framework in frameworks]
        name = str(tab_set.get("id", "")).removeprefix("cell-")
        assert name not in found
        found[name] = dict(zip(frameworks, contents, strict=True))
    return found


def of_page(path: str) -> list[Edition]:
    return [each for each in EDITIONS if path == f"{each.language}/{each.folder.name}.html"]


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_every_tab_shows_its_frameworks_own_code_and_outputs(site: Path, edition: Edition):
    page = site / edition.language / f"{edition.folder.name}.html"
    shown = {
        name: found[edition.framework]
        for name, found in tabs(page).items()
        if name and edition.framework in found
    }
    assert [*shown] == [*cells(edition)]
    for name, cell in cells(edition).items():
        assert_same(in_tab(shown[name], page), [code(cell), *outputs(cell)], name)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_tab_but_those_of_its_notebooks(site: Path, path: str):
    for name, found in tabs(site / path).items():
        assert [*found] == [
            edition.framework for edition in of_page(path) if not name or name in cells(edition)
        ]
    for edition in of_page(path):
        notebook = str(edition.notebook.relative_to(edition.folder.parent.parent))
        links = [str(link["href"]) for link in tabs(site / path)[""][edition.framework]("a")]
        *runs, deck = [link.replace("%2F", "/") for link in links]
        assert runs
        assert all(notebook in link for link in runs)
        assert deck == f"../slides/{edition}.html"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_what_its_text_says(site: Path, path: str):
    edition = of_page(path)[0]
    article = read(site / path).select_one("article section")
    assert article
    for left_out in article.select(".sd-tab-set, .only-title, .headerlink, .back, .live"):
        left_out.decompose()
    text = edition.text.read_text(encoding="utf-8")
    frameworks = {each.framework for each in of_page(path)}
    of_the_page = kept(SLIDE.sub("", text), frameworks, live=True)
    assert said(article) == prose(of_the_page)
    drawings = [drawing(image, edition) for image in DRAWING.finditer(of_the_page)]
    assert [figure(image, site / path) for image in article("img")] == drawings


# The cells of all of them are in the pages' tabs, too.
@pytest.mark.parametrize("edition", leave_to_release(EDITIONS, but=FIRST), ids=str)
def test_every_deck_has_the_slides_of_its_text_with_its_frameworks_own_cells(
    site: Path, edition: Edition
):
    path = site / "slides" / f"{edition}.html"
    made = read(path).select("section > section")
    text = edition.text.read_text(encoding="utf-8")
    _, *parts = SLIDE.split(text)  # each slide, and what follows it
    headings = [slide.splitlines()[0] for slide in parts[::2]]
    assert [said(section.find(["h1", "h2"])) for section in made] == [*map(prose, headings)]
    made[0].select_one(".credit").extract()  # test_credit.py reads it
    for section, slide, part in zip(made, parts[::2], parts[1::2], strict=True):
        assert_same(on_slide(section, path), asked_for(slide, edition), slide)
        notes = kept(part, {edition.framework}, live=False)
        assert said(*section.select("aside.notes")) == prose(notes)
