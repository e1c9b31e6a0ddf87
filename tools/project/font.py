"""``python -m tools.project.font``: makes the font that Chinese words in figures are drawn with.

matplotlib's own has none, nor has a notebook service. It is a small part of Noto Sans CJK TC, which has to be
installed (Debian's fonts-noto-cjk): the characters in the strings of all lessons' cells, and in their drawings. It comes
out byte for byte alike.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTCollection, TTFont
from matplotlib.font_manager import findSystemFonts

from d2l_compat._shared.description import CHINESE
from d2l_compat._shared.fonts import FAMILY, FONT
from tools.weave.fragments import fragments
from tools.weave.lessons import ROOT, editions
from tools.weave.programs import read_code

SOURCE = "Noto Sans CJK TC"
FILE = "NotoSansCJK-Regular"  # which has several families
OPTIONS = {"hinting": False, "layout_features": [], "name_IDs": [0, 1, 2, 4, 5, 6, 13, 14]}
NAMES = {1: FAMILY, 4: FAMILY, 6: FAMILY.replace(" ", "")}


def characters() -> set[str]:
    """Those that cells may write into a figure, and those of the drawings."""
    strings = [
        found.text
        for edition in editions()
        for cell in read_code(edition.code, edition.language).values()
        for found in fragments(cell.source, edition.code.suffix)
        if found.kind == "string"
    ]
    drawings = [svg.read_text(encoding="utf-8") for svg in ROOT.glob("lessons/*/*.svg")]
    return {*CHINESE.findall("".join(strings + drawings))}


def is_installed() -> bool:
    return any(_families())


def _families() -> Iterator[TTFont]:
    """Those of this name that the system has."""
    for file in sorted(findSystemFonts()):
        if Path(file).stem == FILE:
            fonts = TTCollection(file, lazy=True).fonts
            yield from (font for font in fonts if font["name"].getDebugName(1) == SOURCE)


def make(target: Path = FONT) -> None:
    """Raises StopIteration where the font it is a part of is not installed."""
    font = next(_families())
    font.recalcTimestamp = False
    part = Subsetter(Options(**OPTIONS))
    part.populate(text="".join(characters()))
    part.subset(font)
    for number, name in NAMES.items():
        font["name"].setName(name, number, 3, 1, 0x409)
    font["CFF "].cff.fontNames = [NAMES[6]]
    font.save(target, reorderTables=True)


def main() -> int:
    try:
        make()
    except StopIteration:
        print(f"{SOURCE} is not installed: install fonts-noto-cjk.", file=sys.stderr)
        return 1
    print(f"{FONT.name}: {len(characters())} characters, {FONT.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
