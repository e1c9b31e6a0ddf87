"""What every face has, whatever its framework: plots, text, data, and helpers of training code."""

import sys
from difflib import get_close_matches
from typing import Any

from d2l_compat._shared.boards import Animator, ProgressBoard
from d2l_compat._shared.classes import Accumulator, HyperParameters, Timer, add_to_class
from d2l_compat._shared.data.hub import DATA_HUB, DATA_URL, download, download_extract, extract
from d2l_compat._shared.data.text import Vocab, bleu
from d2l_compat._shared.plot import (
    annotate,
    plot,
    pyplot,
    set_axes,
    set_figsize,
    show_heatmaps,
    show_images,
    use_svg_display,
)

__all__ = [
    "DATA_HUB",
    "DATA_URL",
    "Accumulator",
    "Animator",
    "HyperParameters",
    "ProgressBoard",
    "Timer",
    "Vocab",
    "add_to_class",
    "annotate",
    "bleu",
    "download",
    "download_extract",
    "extract",
    "plot",
    "set_axes",
    "set_figsize",
    "show_heatmaps",
    "show_images",
    "use_svg_display",
]


def attribute(face: str, name: str) -> Any:
    """Of a face, what it has not got by itself: ``plt``, when it is first used.

    Raises AttributeError with the nearest names there are.
    """
    if name == "plt":
        return pyplot()
    if name.startswith("_"):  # Python itself asks for such names
        raise AttributeError(f"module {face!r} has no attribute {name!r}")
    there_are = sys.modules[face].__all__
    nearest = get_close_matches(name, there_are, n=3, cutoff=0.5)
    hint = f"; the nearest names are {', '.join(nearest)}" if nearest else ""
    raise AttributeError(f"{name}: {face} has no such name (yet){hint}")
