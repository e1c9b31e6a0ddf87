"""Data sets of images labelled with boxes (bananas) or with a class for each pixel (Pascal VOC)."""

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

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
Batches = tuple[DataLoader[Any], DataLoader[Any]]


def read_data_bananas(is_train: bool = True) -> tuple[list[Tensor], Tensor]:
    """Read D2L's images of bananas and their labels, for training or testing.

    Images are (3, 256, 256), uint8 from 0 to 255; labels (images, 1, 5), float32, are class 0 and the corners of
    the box in fractions of the image. Raises what :func:`download_extract` raises.
    """
    images, targets = bananas.read(is_train)
    return [*map(_put_channels_first, images)], torch.from_numpy(targets)


class BananasDataset(Dataset[Any]):
    """Images of one banana each, (3, 256, 256), float32 from 0 to 255, with class and box, (1, 5)."""

    def __init__(self, is_train: bool) -> None:
        """Load the data set. Raises what :func:`read_data_bananas` raises."""
        self.features, self.labels = read_data_bananas(is_train)
        bananas.print_count(len(self.features), is_train)

    def __getitem__(self, idx: int) -> tuple[Tensor, Tensor]:
        return self.features[idx].float(), self.labels[idx]

    def __len__(self) -> int:
        return len(self.features)


def load_data_bananas(batch_size: int) -> Batches:
    """Return batches of :class:`BananasDataset`: training batches, shuffled, and test batches."""
    checks.size("batch_size", batch_size)
    train, test = (BananasDataset(is_train) for is_train in (True, False))
    return (
        DataLoader(train, batch_size=batch_size, shuffle=True),
        DataLoader(test, batch_size=batch_size),
    )


def read_voc_images(
    voc_dir: str | Path, is_train: bool = True
) -> tuple[list[Tensor], list[Tensor]]:
    """Read Pascal VOC's images, and for each of them an image that shows its pixels' classes as colours.

    All are (3, height, width), uint8 from 0 to 255, for training or testing. Raises FileNotFoundError if a file is
    not in the folder.
    """
    images, colormaps = voc.read(voc_dir, is_train)
    return [*map(_put_channels_first, images)], [*map(_put_channels_first, colormaps)]


def _put_channels_first(image: voc.Pixels) -> Tensor:
    return torch.from_numpy(image).permute(2, 0, 1)


def voc_colormap2label() -> Tensor:
    """Return a table, int64, with the class of each colour at the index (red * 256 + green) * 256 + blue."""
    return torch.from_numpy(voc.labels_by_color())


def voc_label_indices(colormap: Any, colormap2label: Tensor) -> Tensor:
    """Return the classes (height, width) for an image (3, height, width) that shows them as colours.

    Raises ValueError for another shape.
    """
    voc.check_pixels(colormap, 0)
    voc.check_table(colormap2label)
    colors = colormap.permute(1, 2, 0).to(colormap2label.device, torch.int64)
    return colormap2label[voc.color_index(colors)]


def voc_rand_crop(feature: Any, label: Any, height: int, width: int) -> tuple[Any, Any]:
    """Crop the same random part, (3, height, width), from two images (3, rows, columns).

    Raises ValueError or TypeError if the images differ in size, or if ``height`` or ``width`` is below 1 or too
    large for them.
    """
    voc.check_pair(feature, label, 0)
    rows, columns = voc.draw_crop(
        tuple(feature.shape[1:]), height, width, lambda n: int(torch.randint(n + 1, ()))
    )
    return feature[:, rows, columns], label[:, rows, columns]


class VOCSegDataset(Dataset[Any]):
    """Random crops of Pascal VOC's images, with the classes of their pixels.

    Crops are (3, height, width), float32, normalized by ImageNet's mean and standard deviation; classes (height,
    width), int64. Images smaller than a crop are left out.
    """

    def __init__(self, is_train: bool, crop_size: tuple[int, int], voc_dir: str | Path) -> None:
        """Load the images; ``crop_size`` is (height, width).

        Raises what :func:`read_voc_images` raises, and TypeError or ValueError if ``crop_size`` is not such a pair.
        """
        self.crop_size = voc.check_crop_size(crop_size)
        features, labels = read_voc_images(voc_dir, is_train)
        self.features = [self.normalize_image(feature) for feature in self.filter(features)]
        self.labels = self.filter(labels)
        self.colormap2label = voc_colormap2label()
        print("read", len(self.features), "examples")

    def normalize_image(self, img: Any) -> Tensor:
        """Normalize pixels, 0 to 255, by ImageNet's mean and standard deviation for each colour channel."""
        mean = torch.tensor(voc.MEAN)[:, None, None]
        deviation = torch.tensor(voc.DEVIATION)[:, None, None]
        return (img.float() / 255 - mean) / deviation

    def filter(self, imgs: list[Any]) -> list[Any]:
        """Return the images that are at least as large as a crop."""
        height, width = self.crop_size
        return [img for img in imgs if img.shape[1] >= height and img.shape[2] >= width]

    def __getitem__(self, idx: int) -> tuple[Tensor, Tensor]:
        feature, label = voc_rand_crop(self.features[idx], self.labels[idx], *self.crop_size)
        return feature, voc_label_indices(label, self.colormap2label)

    def __len__(self) -> int:
        return len(self.features)


def load_data_voc(batch_size: int, crop_size: tuple[int, int]) -> Batches:
    """Return full batches of :class:`VOCSegDataset`: training batches, shuffled, and test batches.

    Raises what :func:`download_extract` raises.
    """
    checks.size("batch_size", batch_size)
    voc.check_crop_size(crop_size)
    voc_dir = download_extract("voc2012", os.path.join("VOCdevkit", "VOC2012"))
    train, test = (VOCSegDataset(is_train, crop_size, voc_dir) for is_train in (True, False))
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "drop_last": True,
        "num_workers": get_dataloader_workers(),
    }
    return DataLoader(train, shuffle=True, **options), DataLoader(test, **options)
