"""``python -m tools.project.font``: make the font for Chinese text in figures.

matplotlib's font and those of notebook services have no Chinese characters. This font is a subset of Noto Sans CJK TC,
which must be installed (Debian's fonts-noto-cjk). It has the characters in the lessons' drawings and in the strings
of their cells. The result is reproducible.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTCollection, TTFont
from matplotlib.font_manager import findSystemFonts

from d2l_compat._shared.description import CHINESE
from d2l_compat._shared.fonts import FAMILY, FONT
from tools.weave.fragments import find_chinese
from tools.weave.lessons import ROOT, list_notebooks
from tools.weave.programs import read_code

SOURCE = "Noto Sans CJK TC"
FILE = "NotoSansCJK-Regular"  # contains several families
OPTIONS = {"hinting": False, "layout_features": [], "name_IDs": [0, 1, 2, 4, 5, 6, 13, 14]}
NAMES = {1: FAMILY, 4: FAMILY, 6: FAMILY.replace(" ", "")}


def list_characters() -> set[str]:
    """Return the Chinese characters in strings of cells, which figures may show, and in drawings."""
    drawings = [svg.read_text(encoding="utf-8") for svg in ROOT.glob("lessons/*/*.svg")]
    characters = {*CHINESE.findall("".join(drawings))}
    for notebook in list_notebooks():
        for cell in read_code(notebook.code, notebook.language).values():
            characters |= find_chinese(cell.source, notebook.code.suffix)
    return characters


def is_installed() -> bool:
    return any(_find_fonts())


def _find_fonts() -> Iterator[TTFont]:
    """Yield the installed fonts named SOURCE."""
    for file in sorted(findSystemFonts()):
        if Path(file).stem == FILE:
            for font in TTCollection(file, lazy=True).fonts:
                if font["name"].getDebugName(1) == SOURCE:
                    yield font


def make_font(target: Path = FONT) -> None:
    """Write the font. Raise StopIteration if SOURCE is not installed."""
    font = next(_find_fonts())
    font.recalcTimestamp = False
    subsetter = Subsetter(Options(**OPTIONS))
    subsetter.populate(text="".join(list_characters()))
    subsetter.subset(font)
    for name_id, name in NAMES.items():
        font["name"].setName(name, name_id, 3, 1, 0x409)
    font["CFF "].cff.fontNames = [NAMES[6]]
    font.save(target, reorderTables=True)


def main() -> int:
    """Return the exit code, which is 1 if SOURCE is not installed."""
    try:
        make_font()
    except StopIteration:
        print(f"{SOURCE} is not installed: install fonts-noto-cjk.", file=sys.stderr)
        return 1
    print(f"{FONT.name}: {len(list_characters())} characters, {FONT.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
