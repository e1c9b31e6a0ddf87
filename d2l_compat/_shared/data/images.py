"""Fashion-MNIST: 70,000 images of clothes, 28 by 28 pixels, in ten classes (Xiao et al., 2017)."""

import gzip
from collections.abc import Callable
from copy import copy
from numbers import Integral
from pathlib import Path
from typing import Any, Self

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


CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def read_images(train: bool, root: str | Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images for training or for validation, uint8 (images, 28, 28), and their labels, uint8 (images,)."""
    kind = "train" if train else "t10k"
    images = _read_idx(f"{kind}-images-idx3-ubyte", root)
    return images, _read_idx(f"{kind}-labels-idx1-ubyte", root)


def scale_image(image: Any, size: tuple[int, int]) -> NDArray[np.float32]:
    """Return a grey image, a matrix or one of Pillow's, as float32 from 0 to 1; ``size`` is (height, width)."""
    pixels = np.asarray(image)
    if pixels.shape != size:
        from PIL import Image  # imported on first use

        resized = Image.fromarray(pixels).resize(size[::-1], Image.Resampling.BILINEAR)
        pixels = np.asarray(resized)
    return pixels.astype(np.float32) / np.float32(255)


class ImageDataset:
    """A sequence of images and labels, with the attributes of torchvision's.

    ``data`` are the images, uint8 (images, 28, 28), and ``targets`` their labels; both may be changed and replaced. An
    item is an image, float32 from 0 to 1, (1, height, width), and its label. If ``transform`` is set, an item's image is
    its value for a Pillow image. Images are resized when they are accessed, since all of them together could fill the
    memory.
    """

    tensor: Callable[[NDArray[Any]], Any] = staticmethod(np.asarray)  # makes an item's image

    def __init__(self, train: bool, resize: tuple[int, int], root: str | Path) -> None:
        self.size = resize
        self.classes = list(CLASSES)
        self.data: Any
        self.targets: Any
        self.data, labels = read_images(train, root)
        self.targets = labels.astype(np.int32)
        self._transform: Callable[[Any], Any] | None = None

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def transform(self) -> Callable[[Any], Any]:
        """The function that makes an item of a Pillow image."""
        return self._transform or self._to_item

    @transform.setter
    def transform(self, function: Callable[[Any], Any]) -> None:
        self._transform = function

    def _to_item(self, image: Any) -> Any:
        return self.tensor(scale_image(image, self.size)[None])

    def with_numpy_items(self) -> Self:
        """Return the same images and labels with NumPy arrays as items, of which loaders make batches faster."""
        dataset = copy(self)
        dataset.tensor = np.asarray
        return dataset

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        pixels = np.asarray(self.data[index])
        if self._transform is None:
            return self._to_item(pixels), self.targets[index]
        from PIL import Image  # imported on first use

        return self._transform(Image.fromarray(pixels)), self.targets[index]


class FashionMNIST:
    """The shared part of the frameworks' data modules of this name."""

    train: Any
    val: Any

    def _choose_images(self, train: bool) -> Any:
        """Return the training or the validation images; those of :class:`ImageDataset` as NumPy arrays, for speed."""
        dataset = self.train if train else self.val
        return dataset.with_numpy_items() if isinstance(dataset, ImageDataset) else dataset

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


def check_sizes(batch_size: int, resize: Any) -> tuple[int, int]:
    """Return ``resize`` as (height, width); one number is both.

    Raises TypeError or ValueError unless all are sizes of at least 1.
    """
    checks.size("batch_size", batch_size)
    sides = (resize, resize) if isinstance(resize, Integral) else resize
    if not (isinstance(sides, (tuple, list)) and len(sides) == 2):
        raise TypeError(checks.message("resize", repr(resize), "(height, width), in pixels"))
    height, width = sides
    return checks.size("resize", height), checks.size("resize", width)


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
    return np.frombuffer(data, np.uint8, offset=4 + 4 * ndim).reshape(shape).copy()
