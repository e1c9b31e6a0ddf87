"""Data sets of pictures that have more than one label: a box (bananas), or a class for each pixel (Pascal VOC)."""

import os
import random
from pathlib import Path
from typing import Any

from mxnet import gluon, np

from d2l_compat._shared import checks
from d2l_compat._shared.data import bananas, voc
from d2l_compat.common import download_extract, get_dataloader_workers

__all__ = [
    "BananasDataset",
    "VOCSegDataset",
    "load_data_bananas",
    "load_data_voc",
    "read_data_bananas",
    "read_voc_images",
    "voc_colormap2label",
    "voc_label_indices",
    "voc_rand_crop",
]
Batches = tuple[gluon.data.DataLoader, gluon.data.DataLoader]


def read_data_bananas(is_train: bool = True) -> tuple[list[np.ndarray], np.ndarray]:
    """Pictures (256, 256, 3), uint8 from 0 to 255, and float32 (pictures, 1, 5): class 0 and the box's corners,
    in shares of the picture. They are for training, or for the test. Raises what :func:`download_extract` does."""
    pictures, targets = bananas.read(is_train)
    return [np.array(each, dtype="uint8") for each in pictures], np.array(targets, dtype="float32")


class BananasDataset(gluon.data.Dataset):
    """Pictures with a banana in each: (3, 256, 256), float32 from 0 to 255, and (1, 5), class and box."""

    def __init__(self, is_train: bool) -> None:
        """Raises what :func:`read_data_bananas` does."""
        self.features, self.labels = read_data_bananas(is_train)
        bananas.print_count(len(self.features), is_train)

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        return self.features[idx].astype("float32").transpose(2, 0, 1), self.labels[idx]

    def __len__(self) -> int:
        return len(self.features)


def load_data_bananas(batch_size: int) -> Batches:
    """Batches of :class:`BananasDataset`, shuffled for training, and for the test."""
    checks.size("batch_size", batch_size)
    train, test = (BananasDataset(is_train) for is_train in (True, False))
    return (
        gluon.data.DataLoader(train, batch_size=batch_size, shuffle=True),
        gluon.data.DataLoader(test, batch_size=batch_size),
    )


def read_voc_images(
    voc_dir: str | Path, is_train: bool = True
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Pictures (height, width, 3), uint8 from 0 to 255, and of each another one: its pixels' classes, as colours.

    They are for training, or for the test. Raises FileNotFoundError where a file is not in the folder.
    """
    pictures, colormaps = (
        [np.array(each, dtype="uint8") for each in some] for some in voc.read(voc_dir, is_train)
    )
    return pictures, colormaps


def voc_colormap2label() -> np.ndarray:
    """Of each colour, whose number is (red * 256 + green) * 256 + blue, its class, float32."""
    return np.array(voc.labels_by_color(), dtype="float32")


def voc_label_indices(colormap: Any, colormap2label: np.ndarray) -> np.ndarray:
    """The classes (height, width) of a picture of colours, (height, width, 3).

    Raises ValueError for another shape.
    """
    voc.check_pixels(colormap, 2)
    voc.check_table(colormap2label)
    colors = colormap.astype("int32")
    return colormap2label[voc.color_index(colors)]


def voc_rand_crop(feature: Any, label: Any, height: int, width: int) -> tuple[Any, Any]:
    """The same part of two pictures (height, width, 3), at a place that is drawn: (height, width, 3).

    Raises ValueError or TypeError where the pictures differ in size, or these are no sizes, or larger
    than the pictures'.
    """
    voc.check_pair(feature, label, 2)
    rows, columns = voc.draw_crop(feature.shape[:2], height, width, lambda n: random.randint(0, n))
    return feature[rows, columns], label[rows, columns]


class VOCSegDataset(gluon.data.Dataset):
    """Pictures from Pascal VOC: parts (3, height, width) of them, with ImageNet's mean and deviation taken out,
    float32, and their pixels' classes (height, width), float32. Those that are smaller are left out."""

    def __init__(self, is_train: bool, crop_size: tuple[int, int], voc_dir: str | Path) -> None:
        """``crop_size`` is (height, width). Raises what :func:`read_voc_images` does, and TypeError or ValueError where
        these are no sizes."""
        self.crop_size = voc.check_crop_size(crop_size)
        features, labels = read_voc_images(voc_dir, is_train)
        self.features = [self.normalize_image(feature) for feature in self.filter(features)]
        self.labels = self.filter(labels)
        self.colormap2label = voc_colormap2label()
        print("read", len(self.features), "examples")

    def normalize_image(self, img: Any) -> np.ndarray:
        """From 0 to 255, to ImageNet's mean 0 and deviation 1 in each of red, green and blue."""
        mean, deviation = np.array(voc.MEAN), np.array(voc.DEVIATION)
        return (img.astype("float32") / 255 - mean) / deviation

    def filter(self, imgs: list[Any]) -> list[Any]:
        """Those that are as large as the parts, at least."""
        height, width = self.crop_size
        return [img for img in imgs if img.shape[0] >= height and img.shape[1] >= width]

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        feature, label = voc_rand_crop(self.features[idx], self.labels[idx], *self.crop_size)
        return feature.transpose(2, 0, 1), voc_label_indices(label, self.colormap2label)

    def __len__(self) -> int:
        return len(self.features)


def load_data_voc(batch_size: int, crop_size: tuple[int, int]) -> Batches:
    """Batches of :class:`VOCSegDataset`, shuffled for training, and for the test; whole ones alone.

    Raises what :func:`download_extract` does.
    """
    checks.size("batch_size", batch_size)
    voc.check_crop_size(crop_size)
    voc_dir = download_extract("voc2012", os.path.join("VOCdevkit", "VOC2012"))
    train, test = (VOCSegDataset(is_train, crop_size, voc_dir) for is_train in (True, False))
    how: dict[str, Any] = {
        "batch_size": batch_size,
        "last_batch": "discard",
        "num_workers": get_dataloader_workers(),
    }
    return gluon.data.DataLoader(train, shuffle=True, **how), gluon.data.DataLoader(test, **how)
