"""What every face has, whatever its framework: plots, text, data, and helpers of training code."""

from d2l_compat._shared.boards import Animator, ProgressBoard
from d2l_compat._shared.classification import accuracy, corr2d, predict_ch3
from d2l_compat._shared.data.hub import DATA_HUB, DATA_URL, download, download_extract, extract
from d2l_compat._shared.data.images import get_fashion_mnist_labels
from d2l_compat._shared.data.loader import get_dataloader_workers
from d2l_compat._shared.data.text import Vocab, bleu
from d2l_compat._shared.measuring import Accumulator, Benchmark, Timer
from d2l_compat._shared.oo_design import HyperParameters, add_to_class, check_len
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
    "Benchmark",
    "HyperParameters",
    "ProgressBoard",
    "Timer",
    "Vocab",
    "accuracy",
    "add_to_class",
    "annotate",
    "bleu",
    "check_len",
    "corr2d",
    "download",
    "download_extract",
    "extract",
    "get_dataloader_workers",
    "get_fashion_mnist_labels",
    "plot",
    "predict_ch3",
    "set_axes",
    "set_figsize",
    "show_heatmaps",
    "show_images",
    "train_2d",
    "use_svg_display",
]
