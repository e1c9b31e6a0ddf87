"""Fashion-MNIST: 70,000 pictures of clothes, 28 by 28, in ten kinds (Xiao et al., 2017)."""

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


class Pictures:
    """A list of (picture, label): float32 from 0 to 1 of shape (1, height, width), and an integer
    of the type ``labels``.

    Pictures get their size one by one as they are asked for: all at once they could fill the memory.
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
        self.images = _read(f"{kind}-images-idx3-ubyte", root)
        self.labels = _read(f"{kind}-labels-idx1-ubyte", root).astype(labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[NDArray[np.float32], np.integer[Any]]:
        image = self.images[index]
        height, width = self.size
        if image.shape != self.size:
            from PIL import Image  # when it is needed

            picture = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
            image = np.asarray(picture)
        return image[None].astype(np.float32) / 255, self.labels[index]


class FashionMNIST:
    """What the faces' data modules of this name share."""

    def text_labels(self, indices: Any) -> list[str]:
        """The names of labels, which are numbers from 0 to 9."""
        return _names("indices", indices)


def get_fashion_mnist_labels(labels: Any) -> list[str]:
    """The names of Fashion-MNIST's labels, which are numbers from 0 to 9.

    Raises TypeError or ValueError for others.
    """
    return _names("labels", labels)


def _names(what: str, labels: Any) -> list[str]:
    numbers = to_numpy(what, labels).ravel()
    if wrong := [number for number in numbers.tolist() if number not in range(len(LABELS))]:
        raise ValueError(checks.fault(what, wrong[0], f"labels from 0 to {len(LABELS) - 1}"))
    return [LABELS[int(number)] for number in numbers]


def check_sizes(batch_size: int, resize: Any) -> None:
    """Raise TypeError or ValueError where these are no sizes of at least 1."""
    checks.size("batch_size", batch_size)
    if not (isinstance(resize, (tuple, list)) and len(resize) == 2):
        raise TypeError(checks.fault("resize", repr(resize), "(height, width), in pixels"))
    for size in resize:
        checks.size("resize", size)


def size_of(resize: Any) -> tuple[Any, ...]:
    """(height, width) of pictures: as they are where ``resize`` is None, square where it is a number.

    Whether it is of this form is for those to say who take it.
    """
    if resize is None:
        return 28, 28
    return tuple(resize) if isinstance(resize, (tuple, list)) else (resize, resize)


def _read(name: str, root: str | Path) -> NDArray[np.uint8]:
    """An array in the IDX format: a magic number, the sizes, then the bytes."""
    with gzip.open(locate(name, Path(root) / "fashion-mnist")) as file:
        data = file.read()
    ndim = data[3]
    shape = np.frombuffer(data, ">i4", ndim, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * ndim).reshape(shape)
