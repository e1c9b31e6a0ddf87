"""Make stand-ins for D2L's image data sets, with a few small images, and for its figures."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from d2l_compat.common import VOC_COLORMAP
from tools.archives import Pixels, encode_png, pack, write_bananas, write_voc

POKEMON = 256  # one batch
HOTDOGS = 16  # of each class; a page shows eight
# Images of CIFAR-10: enough for one batch of 32 in validation, and for more than five in training.
CLASSES, PER_CLASS = 8, 40
BREEDS, PER_BREED = 32, 6  # validation gets one dog of each breed, which is a batch
BANANAS = 16  # a page shows ten
NUM_SEGMENTED = 64  # one batch
CROP_SIZE = 320, 480  # height and width to which D2L crops images
FIGURE_SIZE = 281, 364  # half that of D2L's cat and dog
FIGURE_PATH = re.compile(r"\.\./img/([\w-]+\.(?:jpg|png))")


def make_archives(folder: Path, code: str) -> None:
    """Write the archives that code uses."""
    for pattern, maker in MAKERS.items():
        if re.search(pattern, code):
            maker(folder, np.random.default_rng(3))


def copy_figures(folder: Path, code: str, book: Path) -> None:
    """Copy the figures that code opens from the book, and draw those that are missing in the book."""
    folder.mkdir()
    rng = np.random.default_rng(4)
    for name in sorted(set(FIGURE_PATH.findall(code))):
        if (book / "img" / name).is_file():
            shutil.copyfile(book / "img" / name, folder / name)
        else:
            Image.fromarray(draw_gradient(rng, *FIGURE_SIZE)).save(folder / name)


def draw_gradient(rng: np.random.Generator, height: int, width: int) -> Pixels:
    """Draw a gradient between four random colours in the corners."""
    corners = rng.integers(0, 256, (2, 2, 3))
    top, left = np.linspace(1, 0, height), np.linspace(1, 0, width)
    row_weights = np.stack([top, 1 - top], 1)
    column_weights = np.stack([left, 1 - left], 1)
    pixels = np.einsum("ia,jb,abc->ijc", row_weights, column_weights, corners, optimize=True)
    return pixels.round().astype(np.uint8)


def _make_hotdogs(folder: Path, rng: np.random.Generator) -> None:
    names = [
        f"{part}/{kind}/{number}.png"
        for part in ("train", "test")
        for kind in ("hotdog", "not-hotdog")
        for number in range(HOTDOGS)
    ]
    _pack(folder / "hotdog.zip", rng, names)


def _make_cifar10(folder: Path, rng: np.random.Generator) -> None:
    kinds = [f"class{number % CLASSES}" for number in range(CLASSES * PER_CLASS)]
    _make_competition(folder / "kaggle_cifar10_tiny.zip", rng, "trainLabels", kinds)


def _make_dogs(folder: Path, rng: np.random.Generator) -> None:
    kinds = [f"breed{number % BREEDS}" for number in range(BREEDS * PER_BREED)]
    _make_competition(folder / "kaggle_dog_tiny.zip", rng, "labels", kinds)


def _make_competition(path: Path, rng: np.random.Generator, table: str, kinds: list[str]) -> None:
    """Write an archive like Kaggle's: training images with a table of labels, and test images."""
    names = [f"train/{number}.png" for number, _ in enumerate(kinds, 1)]
    names += [f"test/{number}.png" for number in range(1, 6)]
    rows = ["id,label", *(f"{number},{kind}" for number, kind in enumerate(kinds, 1))]
    _pack(path, rng, names, {f"{table}.csv": "\n".join(rows)})


def _make_bananas(folder: Path, rng: np.random.Generator) -> None:
    """Draw images with a box of one colour."""
    images, boxes = [], []
    for number in range(BANANAS):
        left, top = 8 * number, 16 * (number % 8)
        image = draw_gradient(rng, 256, 256)
        image[top : top + 48, left : left + 64] = 255, 255, 0
        images.append(image)
        boxes.append((left, top, left + 64, top + 48))
    write_bananas(folder, images, boxes)


def _make_voc(folder: Path, rng: np.random.Generator) -> None:
    """Draw images that are larger than D2L's crop, with an object of one class in the middle."""
    height, width = CROP_SIZE[0] + 10, CROP_SIZE[1] + 20
    colors = []
    for number in range(NUM_SEGMENTED):
        color = np.zeros((height, width, 3), np.uint8)
        color[80:240, 100:300] = VOC_COLORMAP[1 + number % 20]
        colors.append(color)
    write_voc(folder, [draw_gradient(rng, height, width) for _ in colors], colors)


def _make_pokemon(folder: Path, rng: np.random.Generator) -> None:
    names = [f"{'ab'[number % 2]}/{number}.png" for number in range(POKEMON)]
    _pack(folder / "pokemon.zip", rng, names, side=64)


def _pack(
    path: Path,
    rng: np.random.Generator,
    names: list[str],
    tables: dict[str, str] | None = None,
    side: int = 32,
) -> None:
    """Pack images with these names, and tables, into a folder of the archive's name."""
    files: dict[str, str | bytes] = {
        name: encode_png(draw_gradient(rng, side, side)) for name in names
    }
    files.update(tables or {})
    pack(path, {f"{path.stem}/{name}": content for name, content in files.items()})


MAKERS: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "hotdog": _make_hotdogs,
    "cifar10_tiny": _make_cifar10,
    "dog_tiny": _make_dogs,
    "data_bananas|banana-detection": _make_bananas,
    "data_voc|voc2012": _make_voc,
    "pokemon": _make_pokemon,
}
