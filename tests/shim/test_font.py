"""Tests of the font for Chinese words in figures."""

import re
from collections.abc import Iterator

import nbformat
import pytest
from fontTools.ttLib import TTFont
from hatchling.builders.wheel import WheelBuilder

from d2l_compat._shared.description import CHINESE
from d2l_compat._shared.fonts import FONT
from tools.compare.drawing import Drawing
from tools.compare.figures import SVG
from tools.project import font
from tools.weave.lessons import ROOT, Notebook, list_notebooks

CHINESE_NOTEBOOKS = [
    notebook for notebook in list_notebooks(["zh-TW"]) if notebook.code.suffix == ".py"
]
FONT_CHARACTERS = set(map(chr, TTFont(FONT).getBestCmap()))


def read_figures(notebook: Notebook) -> Iterator[bytes]:
    for cell in nbformat.read(notebook.path, as_version=4).cells:
        for output in cell.get("outputs", []):
            if svg := output.get("data", {}).get(SVG):
                yield svg.encode()


@pytest.mark.parametrize("notebook", CHINESE_NOTEBOOKS, ids=str)
def test_font_has_every_chinese_character_of_figures(notebook: Notebook) -> None:
    svgs = [*read_figures(notebook)]
    text = "".join(piece.words for svg in svgs for piece in Drawing(svg, 1).pieces)
    assert {*CHINESE.findall(text)} <= FONT_CHARACTERS, "run `make font`, and then `make`"
    fonts = {name for svg in svgs for name in re.findall(rb'<path id="(\w+)-', svg)}
    assert fonts <= {b"DejaVuSans", b"NotoSansTClessons"}


def test_font_has_only_characters_that_cells_use() -> None:
    assert {each for each in FONT_CHARACTERS if CHINESE.match(each)} == font.list_characters(), (
        "run `make font`"
    )
    assert FONT.stat().st_size < 250 * len(FONT_CHARACTERS)


@pytest.mark.release
@pytest.mark.skipif(not font.is_installed(), reason="the complete font is not installed")
def test_font_is_reproducible(tmp_path) -> None:
    for name in "ab":
        font.make_font(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    cmap = TTFont(tmp_path / "a").getBestCmap()
    assert cmap.keys() == TTFont(FONT).getBestCmap().keys()


def test_wheel_has_font_and_licence() -> None:
    files = {file.path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {str(FONT), str(FONT.with_name("OFL.txt"))} <= files
