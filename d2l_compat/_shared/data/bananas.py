"""D2L's banana images of 256 by 256 pixels, each with one banana, and the bananas' boxes."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance
from d2l_compat._shared.data.hub import download_extract
from d2l_compat._shared.data.voc import Pixels, read_image


def read(is_train: Any) -> tuple[list[Pixels], NDArray[np.float32]]:
    """Read images (256, 256, 3), and labels (images, 1, 5): class 0 and the box in fractions of 256 pixels."""
    check_instance("is_train", is_train, (bool, int), "True or False")
    folder = Path(download_extract("banana-detection"), _folder_name(is_train))
    with (folder / "label.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    targets = np.array([row[1:] for row in rows], np.float32) / np.float32(256)
    return [read_image(folder / "images" / row[0]) for row in rows], targets[:, None]


def _folder_name(is_train: Any) -> str:
    return "bananas_train" if is_train else "bananas_val"


def print_count(count: int, is_train: Any) -> None:
    print(f"read {count} {'training' if is_train else 'validation'} examples")
