"""Pictures whose pixels have classes: Pascal VOC 2012 (Everingham et al.), as its files are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance, fault, format_value, size
from d2l_compat._shared.data.files import told

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
# A class's colour, by VOC's rule: red, green and blue get the bits of its number by turns, and from the top.
VOC_COLORMAP = [
    [
        sum((number >> (3 * turn + channel) & 1) << (7 - turn) for turn in range(3))
        for channel in range(3)
    ]
    for number in range(len(VOC_CLASSES))
]
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's red, green and blue
Pixels = NDArray[np.uint8]


def picture(path: str | Path) -> Pixels:
    """(height, width, 3), from 0 to 255: red, green and blue. Raises FileNotFoundError where there is none."""
    from PIL import Image  # when it is needed

    with told("path", Path(path), "a picture that can be read"), Image.open(path) as image:
        return np.array(image.convert("RGB"))


def read(voc_dir: str | Path, is_train: bool) -> tuple[list[Pixels], list[Pixels]]:
    """The pictures for training or for the test, and those that have the colours of their pixels' classes."""
    check_instance("voc_dir", voc_dir, (str, Path), "a folder's name")
    check_instance("is_train", is_train, (bool, int), "True or False")
    folder = Path(voc_dir)
    names = folder / "ImageSets" / "Segmentation" / ("train.txt" if is_train else "val.txt")
    with told("voc_dir", names, "a folder with VOC's files"):
        listed = names.read_text(encoding="utf-8").split()
    return (
        [picture(folder / "JPEGImages" / f"{name}.jpg") for name in listed],
        [picture(folder / "SegmentationClass" / f"{name}.png") for name in listed],
    )


def number(colors: Any) -> Any:
    """Of (..., 3) one number for each colour."""
    return (colors[..., 0] * 256 + colors[..., 1]) * 256 + colors[..., 2]


def label_of_color() -> NDArray[np.int64]:
    """Of each colour's number the class; 0 for the colours of none."""
    labels = np.zeros(256**3, "int64")
    labels[number(np.array(VOC_COLORMAP))] = np.arange(len(VOC_COLORMAP))
    return labels


def check_pixels(colormap: Any, axis: int, what: str = "colormap") -> None:
    """Red, green and blue on this axis of three."""
    shape = tuple(getattr(colormap, "shape", ()))
    if len(shape) != 3 or shape[axis] != 3:
        axes = "(3, height, width)" if axis == 0 else "(height, width, 3)"
        got = f"shape {shape}" if shape else format_value(colormap)
        raise ValueError(fault(what, got, f"a picture {axes}"))


def check_pair(feature: Any, label: Any, axis: int) -> None:
    """Two pictures of as many pixels, with their colours on this axis of three."""
    check_pixels(feature, axis, "feature")
    shape = tuple(getattr(label, "shape", ()))
    of_feature, of_label = ([*sizes[:axis], *sizes[axis + 1 :]] for sizes in (feature.shape, shape))
    if len(shape) != 3 or of_label != of_feature:
        got = f"shape {shape}" if shape else format_value(label)
        need = "a picture of {} x {} pixels, as the feature is".format(*of_feature)
        raise ValueError(fault("label", got, need))


def check_table(colormap2label: Any) -> None:
    """A class for each colour there is."""
    shape = tuple(getattr(colormap2label, "shape", ()))
    if shape != (256**3,):
        got = f"shape {shape}" if shape else format_value(colormap2label)
        raise ValueError(fault("colormap2label", got, "what voc_colormap2label gives"))


def sides(crop_size: Any) -> tuple[int, int]:
    if not isinstance(crop_size, (tuple, list)) or len(crop_size) != 2:
        raise TypeError(fault("crop_size", format_value(crop_size), "(height, width), in pixels"))
    height, width = (size("crop_size", side) for side in crop_size)
    return height, width


def place(
    sides_of: tuple[int, int], height: Any, width: Any, draw: Callable[[int], int]
) -> tuple[slice, slice]:
    """Rows and columns of a part ``height`` x ``width``; ``draw(n)`` is any number from 0 to n."""
    crop = size("height", height), size("width", width)
    if crop[0] > sides_of[0] or crop[1] > sides_of[1]:
        raise ValueError(fault("height and width", crop, f"at most the picture's, {sides_of}"))
    top, left = (draw(whole - part) for whole, part in zip(sides_of, crop, strict=True))
    return slice(top, top + crop[0]), slice(left, left + crop[1])
