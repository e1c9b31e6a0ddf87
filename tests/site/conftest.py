"""The pages that all site tests are about."""

from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Any

import nbformat
import pytest

from tools.compare.figures import SVG
from tools.weave.lessons import ROOT, Edition, editions

EDITIONS = list(editions())
# The lessons' pages and decks, which all have to do; what is said of each by name is tried on LESSON.
PAGES = list(dict.fromkeys(f"{each.language}/{each.folder.name}.html" for each in EDITIONS))
# Of each lesson in each language the first edition; in the others all but the code is the same.
FIRST = list({(each.language, each.folder): each for each in EDITIONS[::-1]}.values())[::-1]
LESSON = "self-attention-and-positional-encoding.html"


def leave_to_release(values: Iterable[Any], but: Collection[Any]) -> list[Any]:
    """List parameters of a test: all ``but`` these are tried for a release alone."""
    return [
        each if each in but else pytest.param(each, marks=pytest.mark.release) for each in values
    ]


def text_of(path: str) -> str:
    """What the page of a lesson was made from: who counts there what a page has to show will not count nothing."""
    page = PurePath(path)
    return (ROOT / "lessons" / page.stem / f"text.{page.parent}.md").read_text(encoding="utf-8")


def stored_figures(edition: Edition) -> list[str]:
    """Those of its notebook, as SVG."""
    cells = nbformat.read(edition.notebook, as_version=4).cells
    shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return [data[SVG] for data in shown if SVG in data]
