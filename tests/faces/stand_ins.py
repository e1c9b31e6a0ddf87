"""Small files in the place of D2L's, in the folder that ``D2L_DATA`` names."""

import hashlib
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image


def airfoil(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, table: np.ndarray) -> None:
    """Five features and a sound a row."""
    np.savetxt(folder / "airfoil_self_noise.dat", table, delimiter="\t")
    _put(patch, d2l, "airfoil", folder)


def sentences(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, text: str) -> None:
    """English and French, a pair a line."""
    with zipfile.ZipFile(folder / "fra-eng.zip", "w") as archive:
        archive.writestr("fra-eng/fra.txt", text)
    _put(patch, d2l, "fra-eng", folder)


def novel(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, text: str) -> None:
    """In the place of *The Time Machine*."""
    (folder / "timemachine.txt").write_text(text, encoding="utf-8")
    _put(patch, d2l, "time_machine", folder)


def films(
    patch: pytest.MonkeyPatch, d2l: Any, folder: Path, ratings: list[tuple[int, ...]]
) -> None:
    """In the place of MovieLens: user, item, stars and time of each."""
    with zipfile.ZipFile(folder / "ml-100k.zip", "w") as archive:
        lines = ["\t".join(map(str, rating)) for rating in ratings]
        archive.writestr("ml-100k/u.data", "\n".join(lines))
    _put(patch, d2l, "ml-100k", folder)


def _put(patch: pytest.MonkeyPatch, d2l: Any, name: str, folder: Path) -> None:
    """The address stays, and so does the file's name; the check sum is that of the file there."""
    address, _ = d2l.DATA_HUB[name]
    file = folder / address.rpartition("/")[2]
    patch.setenv("D2L_DATA", str(folder))
    patch.setitem(d2l.DATA_HUB, name, (address, hashlib.sha1(file.read_bytes()).hexdigest()))


def bananas(patch: pytest.MonkeyPatch, d2l: Any, folder: Path, pictures: np.ndarray) -> None:
    """Of these pictures (n, 256, 256, 3), each with the box (16 i, 32, 64, 128)."""
    with zipfile.ZipFile(folder / "banana-detection.zip", "w") as archive:
        for part in "bananas_train", "bananas_val":
            rows = ["img_name,label,xmin,ymin,xmax,ymax"]
            for i, picture in enumerate(pictures):
                rows.append(f"{i}.png,0,{16 * i},32,64,128")
                name = f"banana-detection/{part}/images/{i}.png"
                archive.writestr(name, _png(picture).getvalue())
            archive.writestr(f"banana-detection/{part}/label.csv", "\n".join(rows))
    _put(patch, d2l, "banana-detection", folder)


def voc(
    patch: pytest.MonkeyPatch,
    d2l: Any,
    folder: Path,
    pictures: list[np.ndarray],
    colors: list[np.ndarray],
) -> None:
    """The pictures are PNG by other names: JPEG would change their numbers."""
    name = "VOCtrainval_11-May-2012.tar"
    with tarfile.open(folder / name, "w") as archive:

        def put(path: str, content: bytes) -> None:
            member = tarfile.TarInfo(f"VOCdevkit/VOC2012/{path}")
            member.size = len(content)
            archive.addfile(member, BytesIO(content))

        listed = "\n".join(f"p{i}" for i in range(len(pictures)))
        for part in "train", "val":
            put(f"ImageSets/Segmentation/{part}.txt", listed.encode())
        for i, (picture, color) in enumerate(zip(pictures, colors, strict=True)):
            put(f"JPEGImages/p{i}.jpg", _png(picture).getvalue())
            put(f"SegmentationClass/p{i}.png", _png(color).getvalue())
    _put(patch, d2l, "voc2012", folder)


def _png(picture: np.ndarray) -> BytesIO:
    made = BytesIO()
    Image.fromarray(picture).save(made, "PNG")
    return made
