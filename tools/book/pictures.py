"""Pictures in the place of D2L's, for the pages that ask for some: archives of few and small ones, and its own figures."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from d2l_compat.common import VOC_COLORMAP
from tools.archives import Pixels, bananas, pack, png, voc

POKEMON = 256  # one batch
HOTDOGS = 16  # of each class; a page shows eight
# CIFAR-10's classes, and pictures of each: a batch of 32 for validation, and more than five for training.
CLASSES, OF_EACH = 8, 40
BREEDS, OF_BREED = 32, 6  # as many batches, since validation gets one of each breed
BANANAS = 16  # a page shows ten
SEGMENTED = 64  # one batch
CROPPED = 320, 480  # of these
FIGURE = 281, 364  # half of D2L's cat and dog
SHOWN = re.compile(r"\.\./img/([\w-]+\.(?:jpg|png))")


def make(folder: Path, code: str) -> None:
    """The archives that code asks for."""
    for asked, maker in MAKERS.items():
        if re.search(asked, code):
            maker(folder, np.random.default_rng(3))


def show(folder: Path, code: str, book: Path) -> None:
    """The figures that code opens: the book's own, where the reader's copy has them."""
    folder.mkdir()
    rng = np.random.default_rng(4)
    for name in sorted(set(SHOWN.findall(code))):
        if (book / "img" / name).is_file():
            shutil.copyfile(book / "img" / name, folder / name)
        else:
            Image.fromarray(drawn(rng, *FIGURE)).save(folder / name)


def drawn(rng: np.random.Generator, height: int, width: int) -> Pixels:
    """A colour in each corner, and between them what is between them."""
    corners = rng.integers(0, 256, (2, 2, 3))
    down, right = np.linspace(1, 0, height), np.linspace(1, 0, width)
    shares = np.stack([down, 1 - down], 1), np.stack([right, 1 - right], 1)
    mixed = np.einsum("ia,jb,abc->ijc", *shares, corners, optimize=True)
    return mixed.round().astype(np.uint8)


def _make_hotdogs(folder: Path, rng: np.random.Generator) -> None:
    names = [
        f"{part}/{kind}/{number}.png"
        for part in ("train", "test")
        for kind in ("hotdog", "not-hotdog")
        for number in range(HOTDOGS)
    ]
    _pack(folder / "hotdog.zip", rng, names)


def _make_cifar10(folder: Path, rng: np.random.Generator) -> None:
    kinds = [f"class{number % CLASSES}" for number in range(CLASSES * OF_EACH)]
    _make_competition(folder / "kaggle_cifar10_tiny.zip", rng, "trainLabels", kinds)


def _make_dogs(folder: Path, rng: np.random.Generator) -> None:
    kinds = [f"breed{number % BREEDS}" for number in range(BREEDS * OF_BREED)]
    _make_competition(folder / "kaggle_dog_tiny.zip", rng, "labels", kinds)


def _make_competition(path: Path, rng: np.random.Generator, table: str, kinds: list[str]) -> None:
    """Of Kaggle's: pictures for training whose labels are in a table, and others."""
    names = [f"train/{number}.png" for number, _ in enumerate(kinds, 1)]
    names += [f"test/{number}.png" for number in range(1, 6)]
    rows = ["id,label", *(f"{number},{kind}" for number, kind in enumerate(kinds, 1))]
    _pack(path, rng, names, {f"{table}.csv": "\n".join(rows)})


def _make_bananas(folder: Path, rng: np.random.Generator) -> None:
    """Each a box of one colour."""
    pictures, boxes = [], []
    for number in range(BANANAS):
        left, top = 8 * number, 16 * (number % 8)
        picture = drawn(rng, 256, 256)
        picture[top : top + 48, left : left + 64] = 255, 255, 0
        pictures.append(picture)
        boxes.append((left, top, left + 64, top + 48))
    bananas(folder, pictures, boxes)


def _make_voc(folder: Path, rng: np.random.Generator) -> None:
    """Each with something of one class in the middle, larger than what is cropped of it."""
    height, width = CROPPED[0] + 10, CROPPED[1] + 20
    colors = []
    for number in range(SEGMENTED):
        color = np.zeros((height, width, 3), np.uint8)
        color[80:240, 100:300] = VOC_COLORMAP[1 + number % 20]
        colors.append(color)
    voc(folder, [drawn(rng, height, width) for _ in colors], colors)


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
    """Pictures of these names, and other files, in a folder of the archive's own name."""
    files: dict[str, str | bytes] = {name: png(drawn(rng, side, side)) for name in names}
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
