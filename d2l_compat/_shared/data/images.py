"""Fashion-MNIST: 70,000 pictures of clothes, 28 by 28, in ten kinds (Xiao et al., 2017)."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks
from d2l_compat._shared.data.hub import download

_ADDRESS = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_CHECK_SUMS = {  # MD5
    "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
}
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
    """A list of (picture, label): float32 from 0 to 1 of shape (1, height, width), and int32.

    Pictures get their size one by one as they are asked for: all at once they could fill the memory.
    """

    def __init__(self, train: bool, resize: tuple[int, int], root: str | Path) -> None:
        self.size = tuple(resize)
        kind = "train" if train else "t10k"
        self.images = _read(f"{kind}-images-idx3-ubyte.gz", root)
        self.labels = _read(f"{kind}-labels-idx1-ubyte.gz", root)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[NDArray[np.float32], np.int32]:
        image = self.images[index]
        height, width = self.size
        if image.shape != self.size:
            from PIL import Image  # when it is needed

            picture = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
            image = np.asarray(picture)
        return image[None].astype(np.float32) / 255, self.labels[index].astype(np.int32)


class FashionMNIST:
    """What the faces' data modules of this name share."""

    def text_labels(self, indices: Any) -> list[str]:
        """The names of labels, which are numbers from 0 to 9."""
        numbers = [int(i) for i in indices]
        if wrong := [i for i in numbers if not 0 <= i < len(LABELS)]:
            raise ValueError(
                checks.fault("indices", wrong[0], f"labels from 0 to {len(LABELS) - 1}")
            )
        return [LABELS[i] for i in numbers]


def check_sizes(batch_size: int, resize: Any) -> None:
    """Raise TypeError or ValueError where these are no sizes of at least 1."""
    checks.size("batch_size", batch_size)
    if not (isinstance(resize, (tuple, list)) and len(resize) == 2):
        raise TypeError(checks.fault("resize", repr(resize), "(height, width), in pixels"))
    for size in resize:
        checks.size("resize", size)


def _read(name: str, root: str | Path) -> NDArray[np.uint8]:
    """An array in the IDX format: a magic number, the sizes, then the bytes."""
    path = download(_ADDRESS + name, Path(root) / "fashion-mnist", _CHECK_SUMS[name])
    with gzip.open(path) as file:
        data = file.read()
    ndim = data[3]
    shape = np.frombuffer(data, ">i4", ndim, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * ndim).reshape(shape)
