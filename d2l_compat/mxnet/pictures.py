"""Data sets of images labelled with boxes (bananas) or with a class for each pixel (Pascal VOC)."""

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
    """Read D2L's images of bananas and their labels, for training or testing.

    Images are (256, 256, 3), uint8 from 0 to 255; labels (images, 1, 5), float32, are class 0 and the corners of
    the box in fractions of the image. Raises what :func:`download_extract` raises.
    """
    images, targets = bananas.read(is_train)
    return _to_uint8(images), np.array(targets, dtype="float32")


class BananasDataset(gluon.data.Dataset):
    """Images of one banana each, (3, 256, 256), float32 from 0 to 255, with class and box, (1, 5)."""

    def __init__(self, is_train: bool) -> None:
        """Load the data set. Raises what :func:`read_data_bananas` raises."""
        self.features, self.labels = read_data_bananas(is_train)
        bananas.print_count(len(self.features), is_train)

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        return self.features[idx].astype("float32").transpose(2, 0, 1), self.labels[idx]

    def __len__(self) -> int:
        return len(self.features)


def load_data_bananas(batch_size: int) -> Batches:
    """Return batches of :class:`BananasDataset`: training batches, shuffled, and test batches."""
    checks.size("batch_size", batch_size)
    train = BananasDataset(is_train=True)
    test = BananasDataset(is_train=False)
    return (
        gluon.data.DataLoader(train, batch_size=batch_size, shuffle=True),
        gluon.data.DataLoader(test, batch_size=batch_size),
    )


def read_voc_images(
    voc_dir: str | Path, is_train: bool = True
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Read Pascal VOC's images, and for each of them an image that shows its pixels' classes as colours.

    All are (height, width, 3), uint8 from 0 to 255, for training or testing. Raises FileNotFoundError if a file is
    not in the folder.
    """
    images, colormaps = voc.read(voc_dir, is_train)
    return _to_uint8(images), _to_uint8(colormaps)


def _to_uint8(images: list[Any]) -> list[np.ndarray]:
    return [np.array(image, dtype="uint8") for image in images]


def voc_colormap2label() -> np.ndarray:
    """Return a table, float32, with the class of each colour at the index (red * 256 + green) * 256 + blue."""
    return np.array(voc.labels_by_color(), dtype="float32")


def voc_label_indices(colormap: Any, colormap2label: np.ndarray) -> np.ndarray:
    """Return the classes (height, width) for an image (height, width, 3) that shows them as colours.

    Raises ValueError for another shape.
    """
    voc.check_pixels(colormap, 2)
    voc.check_table(colormap2label)
    colors = colormap.astype("int32")
    return colormap2label[voc.color_index(colors)]


def voc_rand_crop(feature: Any, label: Any, height: int, width: int) -> tuple[Any, Any]:
    """Crop the same random part, (height, width, 3), from two images (rows, columns, 3).

    Raises ValueError or TypeError if the images differ in size, or if ``height`` or ``width`` is below 1 or too
    large for them.
    """
    voc.check_pair(feature, label, 2)
    rows, columns = voc.draw_crop(feature.shape[:2], height, width, lambda n: random.randint(0, n))
    return feature[rows, columns], label[rows, columns]


class VOCSegDataset(gluon.data.Dataset):
    """Random crops of Pascal VOC's images, with the classes of their pixels.

    Crops are (3, height, width), float32, normalized by ImageNet's mean and standard deviation; classes (height,
    width), float32. Images smaller than a crop are left out.
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

    def normalize_image(self, img: Any) -> np.ndarray:
        """Normalize pixels, 0 to 255, by ImageNet's mean and standard deviation for each colour channel."""
        mean, deviation = np.array(voc.MEAN), np.array(voc.DEVIATION)
        return (img.astype("float32") / 255 - mean) / deviation

    def filter(self, imgs: list[Any]) -> list[Any]:
        """Return the images that are at least as large as a crop."""
        height, width = self.crop_size
        return [img for img in imgs if img.shape[0] >= height and img.shape[1] >= width]

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        feature, label = voc_rand_crop(self.features[idx], self.labels[idx], *self.crop_size)
        return feature.transpose(2, 0, 1), voc_label_indices(label, self.colormap2label)

    def __len__(self) -> int:
        return len(self.features)


def load_data_voc(batch_size: int, crop_size: tuple[int, int]) -> Batches:
    """Return full batches of :class:`VOCSegDataset`: training batches, shuffled, and test batches.

    Raises what :func:`download_extract` raises.
    """
    checks.size("batch_size", batch_size)
    voc.check_crop_size(crop_size)
    voc_dir = download_extract("voc2012", os.path.join("VOCdevkit", "VOC2012"))
    train = VOCSegDataset(True, crop_size, voc_dir)
    test = VOCSegDataset(False, crop_size, voc_dir)
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "last_batch": "discard",
        "num_workers": get_dataloader_workers(),
    }
    train_iter = gluon.data.DataLoader(train, shuffle=True, **options)
    return train_iter, gluon.data.DataLoader(test, **options)
