"""What every face has, whatever its framework: plots, text, data, and helpers of training code."""

from d2l_compat._shared.boards import Animator, ProgressBoard
from d2l_compat._shared.data.hub import DATA_HUB, DATA_URL, download, download_extract, extract
from d2l_compat._shared.data.text import Vocab, bleu
from d2l_compat._shared.measuring import Accumulator, Timer
from d2l_compat._shared.oo_design import HyperParameters, add_to_class
from d2l_compat._shared.optimization import train_2d
from d2l_compat._shared.plot import (
    annotate,
    plot,
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
    "train_2d",
    "use_svg_display",
]
