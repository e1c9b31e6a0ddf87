"""Figures are seen wherever a notebook is opened: here by nbconvert.

That each has a PNG, for viewers that show no SVG, is in tests/lessons/test_notebooks.py.
"""

import re
from base64 import b64decode

import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from tools.compare.figures import PNG, SVG
from tools.compare.pictures import on_white, pixels, render
from tools.weave.lessons import Edition, editions

# Who draws: matplotlib in all frameworks but one. A lesson in each language, another for each.
BY_WHOM = [
    list(editions([language], [name]))
    for name in ("pytorch", "djl")
    for language in ("en", "zh-TW")
]
CHOSEN = [shown[number % len(shown)] for number, shown in enumerate(BY_WHOM)]
# Before a release each in each of the ways; else one of each who draws, in both languages.
OFTEN = CHOSEN[1:3]


def figures(notebook: NotebookNode) -> list[NotebookNode]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data for output in outputs if "data" in output and PNG in output.data]


def picture(address: str) -> np.ndarray:
    """The pixels of an image that is in its address."""
    kind, _, data = address.partition(";base64,")
    if kind == f"data:{SVG}":
        return render(b64decode(data, validate=True).decode())
    assert kind == f"data:{PNG}"
    return on_white(pixels(data))


@pytest.mark.parametrize(
    ("template", "sanitized"),
    [
        ("lab", False),
        pytest.param("lab", True, marks=pytest.mark.release),
        pytest.param("classic", False, marks=pytest.mark.release),
    ],
)
@pytest.mark.parametrize(
    "edition",
    [
        pytest.param(each, id=str(each), marks=[] if each in OFTEN else pytest.mark.release)
        for each in CHOSEN
    ],
)
def test_nbconvert_shows_every_figure_and_no_code_of_one(
    edition: Edition, template: str, sanitized: bool
) -> None:
    notebook = nbformat.read(edition.notebook, as_version=4)
    exporter = HTMLExporter(template_name=template, sanitize_html=sanitized)
    html, _ = exporter.from_notebook_node(notebook)
    body = BeautifulSoup(html, "html.parser").body
    outputs = body.select(".jp-OutputArea img, .output_area img")
    assert len(outputs) == len(figures(notebook)) > 0
    for image, figure in zip(outputs, figures(notebook), strict=True):
        shown, meant = picture(str(image["src"])), picture(f"data:{PNG};base64,{figure[PNG]}")
        assert shown.shape == meant.shape
        assert np.abs(shown.astype(int) - meant).max() <= 24  # a PNG has few colours
    if sanitized:  # of which images in prose are no part, whatever they are
        return
    drawings = [image for image in body("img") if image not in outputs]
    prose = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert len(drawings) == prose.count("<img ") > 0
    for drawing in drawings:
        assert picture(str(drawing["src"])).shape[1] == 2 * 760
        assert drawing["width"] == "760"
        assert len(str(drawing["alt"])) >= 30
    for script in body(["script", "style"]):
        script.decompose()
    assert not re.search(r"[A-Za-z0-9+/=]{100}|<svg|<path", body.get_text())
