"""The names that every framework's package has: plots, text, data, and helpers of training code."""

from d2l_compat._shared.boards import Animator, ProgressBoard
from d2l_compat._shared.boxes import bbox_to_rect, show_bboxes
from d2l_compat._shared.checks import check_len
from d2l_compat._shared.classification import accuracy, corr2d, predict_ch3
from d2l_compat._shared.data.hub import (
    DATA_HUB,
    DATA_URL,
    download,
    download_all,
    download_extract,
    extract,
)
from d2l_compat._shared.data.images import get_fashion_mnist_labels
from d2l_compat._shared.data.kaggle import (
    copyfile,
    read_csv_labels,
    reorg_test,
    reorg_train_valid,
)
from d2l_compat._shared.data.loader import get_dataloader_workers
from d2l_compat._shared.data.sentences import read_imdb, read_snli
from d2l_compat._shared.data.text import Vocab, bleu, count_corpus, tokenize, truncate_pad
from d2l_compat._shared.data.time_machine import load_corpus_time_machine, read_time_machine
from d2l_compat._shared.data.translation import preprocess_nmt, read_data_nmt, tokenize_nmt
from d2l_compat._shared.data.voc import VOC_CLASSES, VOC_COLORMAP
from d2l_compat._shared.data.wiki import get_tokens_and_segments
from d2l_compat._shared.data.words import (
    RandomGenerator,
    get_centers_and_contexts,
    get_negatives,
    read_ptb,
    subsample,
)
from d2l_compat._shared.measuring import Accumulator, Benchmark, Timer
from d2l_compat._shared.oo_design import HyperParameters, add_to_class
from d2l_compat._shared.optimization import train_2d
from d2l_compat._shared.plot import (
    annotate,
    plot,
    set_axes,
    set_figsize,
    show_heatmaps,
    show_images,
    show_list_len_pair_hist,
    use_svg_display,
)
from d2l_compat._shared.ranges import plot_ranges, print_ranges
from d2l_compat._shared.reinforcement import (
    frozen_lake,
    make_env,
    show_Q_function_progress,
    show_value_function_progress,
)

__all__ = [
    "DATA_HUB",
    "DATA_URL",
    "VOC_CLASSES",
    "VOC_COLORMAP",
    "Accumulator",
    "Animator",
    "Benchmark",
    "HyperParameters",
    "ProgressBoard",
    "RandomGenerator",
    "Timer",
    "Vocab",
    "accuracy",
    "add_to_class",
    "annotate",
    "bbox_to_rect",
    "bleu",
    "check_len",
    "copyfile",
    "corr2d",
    "count_corpus",
    "download",
    "download_all",
    "download_extract",
    "extract",
    "frozen_lake",
    "get_centers_and_contexts",
    "get_dataloader_workers",
    "get_fashion_mnist_labels",
    "get_negatives",
    "get_tokens_and_segments",
    "load_corpus_time_machine",
    "make_env",
    "plot",
    "plot_ranges",
    "predict_ch3",
    "preprocess_nmt",
    "print_ranges",
    "read_csv_labels",
    "read_data_nmt",
    "read_imdb",
    "read_ptb",
    "read_snli",
    "read_time_machine",
    "reorg_test",
    "reorg_train_valid",
    "set_axes",
    "set_figsize",
    "show_Q_function_progress",
    "show_bboxes",
    "show_heatmaps",
    "show_images",
    "show_list_len_pair_hist",
    "show_value_function_progress",
    "subsample",
    "tokenize",
    "tokenize_nmt",
    "train_2d",
    "truncate_pad",
    "use_svg_display",
]
