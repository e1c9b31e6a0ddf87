"""Pascal VOC 2012 (Everingham et al.): images with a class for each pixel."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance, format_value, message, size
from d2l_compat._shared.data.files import rephrase_os_errors

VOC_CLASSES = [
    "background",
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "potted plant",
    "sheep",
    "sofa",
    "train",
    "tv/monitor",
]


def _color_value(index: int, channel: int) -> int:
    """Return the red, green or blue (``channel`` 0, 1 or 2) of a class's colour, from 0 to 255.

    This is VOC's rule: the bits of the index go to red, green and blue in turn, and fill each from its highest bit
    down.
    """
    return sum((index >> (3 * i + channel) & 1) << (7 - i) for i in range(3))


VOC_COLORMAP = [
    [_color_value(index, channel) for channel in range(3)] for index in range(len(VOC_CLASSES))
]
# ImageNet's mean and standard deviation of red, green and blue.
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
Pixels = NDArray[np.uint8]


def read_image(path: str | Path) -> Pixels:
    """Read an image as (height, width, 3), from 0 to 255. Raises FileNotFoundError if it is missing."""
    from PIL import Image  # imported on first use

    with (
        rephrase_os_errors("path", Path(path), "an image that can be read"),
        Image.open(path) as image,
    ):
        return np.array(image.convert("RGB"))


def read(voc_dir: str | Path, is_train: bool) -> tuple[list[Pixels], list[Pixels]]:
    """Read images for training or testing, and the images that show their pixels' classes as colours."""
    check_instance("voc_dir", voc_dir, (str, Path), "a folder's name")
    check_instance("is_train", is_train, (bool, int), "True or False")
    folder = Path(voc_dir)
    path = folder / "ImageSets" / "Segmentation" / ("train.txt" if is_train else "val.txt")
    with rephrase_os_errors("voc_dir", path, "a folder with VOC's files"):
        names = path.read_text(encoding="utf-8").split()
    return (
        [read_image(folder / "JPEGImages" / f"{name}.jpg") for name in names],
        [read_image(folder / "SegmentationClass" / f"{name}.png") for name in names],
    )


def color_index(colors: Any) -> Any:
    """Return one number for each colour in ``colors`` (..., 3)."""
    return (colors[..., 0] * 256 + colors[..., 1]) * 256 + colors[..., 2]


def labels_by_color() -> NDArray[np.int64]:
    """Return the class at each colour's index; 0 for colours without a class."""
    labels = np.zeros(256**3, "int64")
    labels[color_index(np.array(VOC_COLORMAP))] = np.arange(len(VOC_COLORMAP))
    return labels


def check_pixels(colormap: Any, axis: int, what: str = "colormap") -> None:
    """Check that an image has three axes, and three colours along ``axis``."""
    shape = tuple(getattr(colormap, "shape", ()))
    if len(shape) != 3 or shape[axis] != 3:
        axes = "(3, height, width)" if axis == 0 else "(height, width, 3)"
        got = f"shape {shape}" if shape else format_value(colormap)
        raise ValueError(message(what, got, f"an image {axes}"))


def check_pair(feature: Any, label: Any, axis: int) -> None:
    """Check that two images have the same height and width, and three colours along ``axis``."""
    check_pixels(feature, axis, "feature")
    shape = tuple(getattr(label, "shape", ()))
    sides: list[int] = [*feature.shape[:axis], *feature.shape[axis + 1 :]]
    if len(shape) != 3 or [*shape[:axis], *shape[axis + 1 :]] != sides:
        got = f"shape {shape}" if shape else format_value(label)
        need = f"an image of {sides[0]} x {sides[1]} pixels, like the feature"
        raise ValueError(message("label", got, need))


def check_table(colormap2label: Any) -> None:
    """Check that there is a class for each colour."""
    shape = tuple(getattr(colormap2label, "shape", ()))
    if shape != (256**3,):
        got = f"shape {shape}" if shape else format_value(colormap2label)
        raise ValueError(message("colormap2label", got, "the result of voc_colormap2label"))


def check_crop_size(crop_size: Any) -> tuple[int, int]:
    """Return ``crop_size`` if it is (height, width) in pixels, else raise TypeError or ValueError."""
    if not isinstance(crop_size, (tuple, list)) or len(crop_size) != 2:
        raise TypeError(message("crop_size", format_value(crop_size), "(height, width), in pixels"))
    height, width = (size("crop_size", side) for side in crop_size)
    return height, width


def draw_crop(
    image_size: tuple[int, int], height: Any, width: Any, draw: Callable[[int], int]
) -> tuple[slice, slice]:
    """Return rows and columns of a random crop; ``draw(n)`` draws a number from 0 to n."""
    height, width = size("height", height), size("width", width)
    if height > image_size[0] or width > image_size[1]:
        need = f"at most the image's, {image_size}"
        raise ValueError(message("height and width", (height, width), need))
    top = draw(image_size[0] - height)
    left = draw(image_size[1] - width)
    return slice(top, top + height), slice(left, left + width)
