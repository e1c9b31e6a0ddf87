"""Fashion-MNIST: 70,000 images of clothes, 28 by 28 pixels, in ten classes (Xiao et al., 2017)."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.data.hub import locate

LABELS = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


class ImageDataset:
    """A sequence of images and labels.

    An image is float32 from 0 to 1, (1, height, width). The argument ``labels`` is the integer type of the labels.
    Images are resized when they are accessed, since all of them together could fill the memory.
    """

    def __init__(
        self,
        train: bool,
        resize: tuple[int, int],
        root: str | Path,
        labels: type[np.integer[Any]] = np.int32,
    ) -> None:
        self.size = tuple(resize)
        kind = "train" if train else "t10k"
        self.images = _read_idx(f"{kind}-images-idx3-ubyte", root)
        self.labels = _read_idx(f"{kind}-labels-idx1-ubyte", root).astype(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[NDArray[np.float32], np.integer[Any]]:
        image = self.images[index]
        height, width = self.size
        if image.shape != self.size:
            from PIL import Image  # imported on first use

            resized = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
            image = np.asarray(resized)
        return image[None].astype(np.float32) / 255, self.labels[index]


class FashionMNIST:
    """The shared part of the frameworks' data modules of this name."""

    def text_labels(self, indices: Any) -> list[str]:
        """Return the names of labels, which are numbers from 0 to 9."""
        return _label_names("indices", indices)


def get_fashion_mnist_labels(labels: Any) -> list[str]:
    """Return the names of Fashion-MNIST's labels, which are numbers from 0 to 9.

    Raises TypeError or ValueError for other arguments.
    """
    return _label_names("labels", labels)


def _label_names(what: str, labels: Any) -> list[str]:
    numbers = to_numpy(what, labels).ravel()
    if wrong := [number for number in numbers.tolist() if number not in range(len(LABELS))]:
        raise ValueError(checks.message(what, wrong[0], f"labels from 0 to {len(LABELS) - 1}"))
    return [LABELS[int(number)] for number in numbers]


def check_sizes(batch_size: int, resize: Any) -> None:
    """Raise TypeError or ValueError unless all are sizes of at least 1."""
    checks.size("batch_size", batch_size)
    if not (isinstance(resize, (tuple, list)) and len(resize) == 2):
        raise TypeError(checks.message("resize", repr(resize), "(height, width), in pixels"))
    for size in resize:
        checks.size("resize", size)


def image_size(resize: Any) -> tuple[Any, ...]:
    """Return (height, width): 28, 28 if ``resize`` is None, a square if it is a number.

    The result is not checked.
    """
    if resize is None:
        return 28, 28
    return tuple(resize) if isinstance(resize, (tuple, list)) else (resize, resize)


def _read_idx(name: str, root: str | Path) -> NDArray[np.uint8]:
    """Read an array in the IDX format: a magic number, the sizes, then the bytes."""
    with gzip.open(locate(name, Path(root) / "fashion-mnist")) as file:
        data = file.read()
    ndim = data[3]
    shape = np.frombuffer(data, ">i4", ndim, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * ndim).reshape(shape)
