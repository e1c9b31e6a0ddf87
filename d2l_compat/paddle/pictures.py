"""Data sets of pictures that have more than one label: a box (bananas), or a class for each pixel (Pascal VOC)."""

import os
import random
from pathlib import Path
from typing import Any

import paddle
from numpy.typing import NDArray
from paddle import Tensor
from paddle.io import DataLoader, Dataset

from d2l_compat._shared import checks
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.data import bananas, voc
from d2l_compat.common import download_extract

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
Batches = tuple[DataLoader, DataLoader]


def read_data_bananas(is_train: bool = True) -> tuple[list[NDArray[Any]], Tensor]:
    """Pictures (256, 256, 3), in NumPy, uint8 from 0 to 255, and float32 (pictures, 1, 5): class 0 and the box's corners,
    in shares of the picture. They are for training, or for the test. Raises what :func:`download_extract` does."""
    pictures, targets = bananas.read(is_train)
    return pictures, paddle.to_tensor(targets)


class BananasDataset(Dataset[Any]):
    """Pictures with a banana in each: (3, 256, 256), float32 from 0 to 255, and (1, 5), class and box."""

    def __init__(self, is_train: bool) -> None:
        """Raises what :func:`read_data_bananas` does."""
        self.features, self.labels = read_data_bananas(is_train)
        bananas.tell(len(self.features), is_train)

    def __getitem__(self, idx: int) -> tuple[Tensor, Tensor]:
        return paddle.to_tensor(
            self.features[idx].transpose([2, 0, 1]), dtype="float32"
        ), self.labels[idx]

    def __len__(self) -> int:
        return len(self.features)


def load_data_bananas(batch_size: int) -> Batches:
    """Batches of :class:`BananasDataset`, shuffled for training, and for the test."""
    checks.size("batch_size", batch_size)
    train, test = (BananasDataset(is_train) for is_train in (True, False))
    return (
        DataLoader(train, batch_size=batch_size, shuffle=True),
        DataLoader(test, batch_size=batch_size),
    )


def read_voc_images(
    voc_dir: str | Path, is_train: bool = True
) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Pictures (3, height, width), uint8 from 0 to 255, and of each another one: its pixels' classes, as colours.

    They are for training, or for the test. Raises FileNotFoundError where a file is not in the folder.
    """
    pictures, colormaps = (
        [each.transpose([2, 0, 1]) for each in some] for some in voc.read(voc_dir, is_train)
    )
    return pictures, colormaps


def voc_colormap2label() -> Tensor:
    """Of each colour, whose number is (red * 256 + green) * 256 + blue, its class, int64."""
    return paddle.to_tensor(voc.label_of_color())


def voc_label_indices(colormap: Any, colormap2label: Tensor) -> Tensor:
    """The classes (height, width) of a picture of colours, (3, height, width).

    Raises ValueError for another shape.
    """
    voc.check_pixels(colormap, 0)
    voc.check_table(colormap2label)
    colors = to_numpy("colormap", colormap).transpose(1, 2, 0).astype("int64")
    return colormap2label[paddle.to_tensor(voc.number(colors))]


def voc_rand_crop(feature: Any, label: Any, height: int, width: int) -> tuple[Any, Any]:
    """The same part of two pictures (3, height, width), at a place that is drawn: (3, height, width).

    Raises ValueError or TypeError where the pictures differ in size, or these are no sizes, or larger
    than the pictures'.
    """
    voc.check_pair(feature, label, 0)
    rows, columns = voc.place(
        tuple(feature.shape[1:]), height, width, lambda n: random.randint(0, n)
    )
    return feature[:, rows, columns], label[:, rows, columns]


class VOCSegDataset(Dataset[Any]):
    """Pictures from Pascal VOC: parts (3, height, width) of them, with ImageNet's mean and deviation taken out,
    float32, and their pixels' classes (height, width), int64. Those that are smaller are left out."""

    def __init__(self, is_train: bool, crop_size: tuple[int, int], voc_dir: str | Path) -> None:
        """``crop_size`` is (height, width). Raises what :func:`read_voc_images` does, and TypeError or ValueError where
        these are no sizes."""
        self.crop_size = voc.sides(crop_size)
        features, labels = read_voc_images(voc_dir, is_train)
        self.features = [self.normalize_image(feature) for feature in self.filter(features)]
        self.labels = self.filter(labels)
        self.colormap2label = voc_colormap2label()
        print("read", len(self.features), "examples")

    def normalize_image(self, img: Any) -> Tensor:
        """From 0 to 255, to ImageNet's mean 0 and deviation 1 in each of red, green and blue."""
        mean, deviation = (
            paddle.to_tensor(each).reshape([3, 1, 1]) for each in (voc.MEAN, voc.DEVIATION)
        )
        return (paddle.to_tensor(img).astype("float32") / 255 - mean) / deviation

    def filter(self, imgs: list[Any]) -> list[Any]:
        """Those that are as large as the parts, at least."""
        height, width = self.crop_size
        return [img for img in imgs if img.shape[1] >= height and img.shape[2] >= width]

    def __getitem__(self, idx: int) -> tuple[Tensor, Tensor]:
        feature, label = voc_rand_crop(self.features[idx], self.labels[idx], *self.crop_size)
        return feature, voc_label_indices(label, self.colormap2label)

    def __len__(self) -> int:
        return len(self.features)


def load_data_voc(batch_size: int, crop_size: tuple[int, int]) -> Batches:
    """Batches of :class:`VOCSegDataset`, shuffled for training, and for the test; whole ones alone.

    Raises what :func:`download_extract` does.
    """
    checks.size("batch_size", batch_size)
    voc.sides(crop_size)
    voc_dir = download_extract("voc2012", os.path.join("VOCdevkit", "VOC2012"))
    train, test = (VOCSegDataset(is_train, crop_size, voc_dir) for is_train in (True, False))
    # In this process: others could not make tensors on a GPU.
    how: dict[str, Any] = {"batch_size": batch_size, "drop_last": True}
    return DataLoader(train, shuffle=True, **how), DataLoader(test, **how)
