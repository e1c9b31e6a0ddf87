"""Test that nbconvert shows the figures of the notebooks.

tests/lessons/test_notebooks.py tests that each figure has a PNG, for viewers that do not show SVGs.
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
from tools.compare.pixels import blend_on_white, decode_png, render
from tools.weave.lessons import Notebook, list_notebooks

# Two frameworks are enough, because matplotlib draws in all but DJL. Each group contributes a notebook of a
# different lesson.
GROUPS = [
    list(list_notebooks([language], [name]))
    for name in ("pytorch", "djl")
    for language in ("en", "zh-TW")
]
NOTEBOOKS = [group[number % len(group)] for number, group in enumerate(GROUPS)]
# `make test` uses one notebook of each framework and of each language; `make test-all` uses all of them.
QUICK = NOTEBOOKS[1:3]


def list_figures(node: NotebookNode) -> list[NotebookNode]:
    outputs = [output for cell in node.cells for output in cell.get("outputs", [])]
    return [output.data for output in outputs if "data" in output and PNG in output.data]


def decode_image(address: str) -> np.ndarray:
    """Return the pixels of an image from a data address."""
    kind, _, data = address.partition(";base64,")
    if kind == f"data:{SVG}":
        return render(b64decode(data, validate=True).decode())
    assert kind == f"data:{PNG}"
    return blend_on_white(decode_png(data))


@pytest.mark.parametrize(
    ("template", "sanitized"),
    [
        ("lab", False),
        pytest.param("lab", True, marks=pytest.mark.release),
        pytest.param("classic", False, marks=pytest.mark.release),
    ],
)
@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(each, id=str(each), marks=[] if each in QUICK else pytest.mark.release)
        for each in NOTEBOOKS
    ],
)
def test_nbconvert_shows_every_figure_as_an_image(
    notebook: Notebook, template: str, sanitized: bool
) -> None:
    node = nbformat.read(notebook.path, as_version=4)
    exporter = HTMLExporter(template_name=template, sanitize_html=sanitized)
    html, _ = exporter.from_notebook_node(node)
    body = BeautifulSoup(html, "html.parser").body
    outputs = body.select(".jp-OutputArea img, .output_area img")
    assert len(outputs) == len(list_figures(node)) > 0
    for image, figure in zip(outputs, list_figures(node), strict=True):
        actual = decode_image(str(image["src"]))
        expected = decode_image(f"data:{PNG};base64,{figure[PNG]}")
        assert actual.shape == expected.shape
        assert np.abs(actual.astype(int) - expected).max() <= 24  # the PNG has few colours
    if sanitized:  # images in prose are removed
        return
    drawings = [image for image in body("img") if image not in outputs]
    prose = "".join(cell.source for cell in node.cells if cell.cell_type == "markdown")
    assert len(drawings) == prose.count("<img ") > 0
    for drawing in drawings:
        assert decode_image(str(drawing["src"])).shape[1] == 2 * 760
        assert drawing["width"] == "760"
        assert len(str(drawing["alt"])) >= 30
    for script in body(["script", "style"]):
        script.decompose()
    assert not re.search(r"[A-Za-z0-9+/=]{100}|<svg|<path", body.get_text())
