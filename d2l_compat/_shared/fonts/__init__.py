"""Fonts for Chinese words in figures, which matplotlib's own font lacks.

The font in this folder has the words of the lessons, which therefore look the same on every machine. For other
words, the first installed one of ``FALLBACK_FAMILIES`` is used.
"""

from functools import cache
from pathlib import Path
from typing import Any

from d2l_compat._shared.description import CHINESE

FONT = Path(__file__).parent / "NotoSansTC-lessons.otf"
FAMILY = "Noto Sans TC lessons"
FALLBACK_FAMILIES = (
    "Noto Sans CJK TC",
    "Noto Sans TC",
    "PingFang TC",
    "Heiti TC",
    "Microsoft JhengHei",
    "Noto Sans CJK JP",  # on Linux the name of the file with all of Noto's CJK fonts
    "WenQuanYi Zen Hei",
)


def write_chinese(figure: Any) -> None:
    """Give a figure's texts with Chinese characters fonts that have them."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        families = text.get_fontfamily()
        if CHINESE.search(text.get_text()) and FAMILY not in families:
            text.set_fontfamily([*families, FAMILY, *find_fallback_fonts()])


@cache
def find_fallback_fonts() -> list[str]:
    """Return the first of ``FALLBACK_FAMILIES`` that is installed, as a list of at most one."""
    from matplotlib.font_manager import fontManager

    fontManager.addfont(FONT)
    installed = set(fontManager.get_font_names())
    return [font for font in FALLBACK_FAMILIES if font in installed][:1]
