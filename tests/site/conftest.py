"""The notebooks and pages that the tests of the site use."""

from collections.abc import Collection, Iterable
from pathlib import PurePath
from typing import Any

import nbformat
import pytest

from tools.compare.figures import SVG
from tools.weave.lessons import ROOT, Notebook, list_notebooks

NOTEBOOKS = list(list_notebooks())
PAGES = list(dict.fromkeys(f"{each.language}/{each.lesson.name}.html" for each in NOTEBOOKS))
# The page for tests that need specific content.
LESSON = "self-attention-and-positional-encoding.html"


def find_notebooks(page: str) -> list[Notebook]:
    """Return the notebooks that a lesson's page shows."""
    return [each for each in NOTEBOOKS if page == f"{each.language}/{each.lesson.name}.html"]


# The first notebook of each page; the others have the same text.
FIRST_NOTEBOOKS = [find_notebooks(page)[0] for page in PAGES]


def mark_release(values: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """Return a test's parameters, marked for releases only unless they are in ``always``."""
    return [
        each if each in always else pytest.param(each, marks=pytest.mark.release) for each in values
    ]


def read_text(path: str) -> str:
    """Return the source text of a lesson's page, to compute what the page must show."""
    page = PurePath(path)
    return (ROOT / "lessons" / page.stem / f"text.{page.parent}.md").read_text(encoding="utf-8")


def list_stored_figures(notebook: Notebook) -> list[str]:
    """Return the figures in a notebook, as SVG."""
    cells = nbformat.read(notebook.path, as_version=4).cells
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return [data[SVG] for data in outputs if SVG in data]
