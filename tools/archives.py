"""Archives in the form of those that D2L reads, of what they are to hold: small ones can take their place."""

import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]  # (height, width, 3), from 0 to 255: red, green and blue
Box = tuple[int, int, int, int]


def pack(path: Path, files: Mapping[str, str | bytes]) -> None:
    """A .zip, .tar or .tar.gz of texts and other contents, by its name."""
    contents = {name: x.encode() if isinstance(x, str) else x for name, x in files.items()}
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
        return
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, BytesIO(content))


def png(picture: Pixels) -> bytes:
    """Whatever a file's name says, what reads pictures takes them: and JPEG would change their numbers."""
    made = BytesIO()
    Image.fromarray(picture).save(made, "png", compress_level=1)
    return made.getvalue()


def bananas(folder: Path, pictures: Sequence[Pixels], boxes: Sequence[Box]) -> None:
    """For training, and for the test: of these pictures, each with its box (left, top, right, bottom), in pixels."""
    files: dict[str, str | bytes] = {}
    for part in "bananas_train", "bananas_val":
        rows = ["img_name,label,xmin,ymin,xmax,ymax"]
        for i, (picture, box) in enumerate(zip(pictures, boxes, strict=True)):
            rows.append(",".join(map(str, (f"{i}.png", 0, *box))))
            files[f"banana-detection/{part}/images/{i}.png"] = png(picture)
        files[f"banana-detection/{part}/label.csv"] = "\n".join(rows)
    pack(folder / "banana-detection.zip", files)


def voc(folder: Path, pictures: Sequence[Pixels], colors: Sequence[Pixels]) -> None:
    """For training, and for the test: of these pictures, each with the colours of its pixels' classes."""
    files: dict[str, str | bytes] = {}
    for i, (picture, color) in enumerate(zip(pictures, colors, strict=True)):
        files[f"JPEGImages/p{i}.jpg"] = png(picture)
        files[f"SegmentationClass/p{i}.png"] = png(color)
    listed = "\n".join(f"p{i}" for i in range(len(files) // 2))
    for part in "train", "val":
        files[f"ImageSets/Segmentation/{part}.txt"] = listed
    inside = {f"VOCdevkit/VOC2012/{name}": content for name, content in files.items()}
    pack(folder / "VOCtrainval_11-May-2012.tar", inside)
