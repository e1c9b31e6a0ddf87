"""The pages that all site tests are about."""

from pathlib import PurePath

import nbformat

from tools.compare.figures import SVG
from tools.weave.lessons import ROOT, Edition, editions

EDITIONS = list(editions())
# The lessons' pages and decks, which all have to do; what is said of each by name is tried on LESSON.
PAGES = list(dict.fromkeys(f"{each.language}/{each.folder.name}.html" for each in EDITIONS))
LESSON = "self-attention-and-positional-encoding.html"


def text_of(path: str) -> str:
    """What the page of a lesson was made from: who counts there what a page has to show will not count nothing."""
    page = PurePath(path)
    return (ROOT / "lessons" / page.stem / f"text.{page.parent}.md").read_text(encoding="utf-8")


def stored_figures(edition: Edition) -> list[str]:
    """Those of its notebook, as SVG."""
    cells = nbformat.read(edition.notebook, as_version=4).cells
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return [data[SVG] for data in shown if SVG in data]
