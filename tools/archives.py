"""Write small archives that replace D2L's downloads, in the same format."""

import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]  # (height, width, 3), from 0 to 255: red, green and blue
Box = tuple[int, int, int, int]  # left, top, right and bottom, in pixels


def pack(path: Path, files: Mapping[str, str | bytes]) -> None:
    """Write a .zip, .tar or .tar.gz, depending on the path's suffix."""
    contents = {
        name: data.encode() if isinstance(data, str) else data for name, data in files.items()
    }
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


def encode_png(image: Pixels) -> bytes:
    """Encode an image as PNG, even for a file named .jpg: libraries accept it, and JPEG would change the pixels."""
    file = BytesIO()
    Image.fromarray(image).save(file, "png", compress_level=1)
    return file.getvalue()


def write_bananas(folder: Path, images: Sequence[Pixels], boxes: Sequence[Box]) -> None:
    """Write the banana detection data set, with the same images and boxes for training and testing."""
    files: dict[str, str | bytes] = {}
    for part in "bananas_train", "bananas_val":
        rows = ["img_name,label,xmin,ymin,xmax,ymax"]
        for i, (image, box) in enumerate(zip(images, boxes, strict=True)):
            rows.append(",".join(map(str, (f"{i}.png", 0, *box))))
            files[f"banana-detection/{part}/images/{i}.png"] = encode_png(image)
        files[f"banana-detection/{part}/label.csv"] = "\n".join(rows)
    pack(folder / "banana-detection.zip", files)


def write_voc(folder: Path, images: Sequence[Pixels], colors: Sequence[Pixels]) -> None:
    """Write the Pascal VOC data set, with the same images for training and testing.

    Each of ``colors`` shows the classes of an image's pixels, by colour.
    """
    files: dict[str, str | bytes] = {}
    for i, (image, color) in enumerate(zip(images, colors, strict=True)):
        files[f"JPEGImages/p{i}.jpg"] = encode_png(image)
        files[f"SegmentationClass/p{i}.png"] = encode_png(color)
    names = "\n".join(f"p{i}" for i in range(len(images)))
    for part in "train", "val":
        files[f"ImageSets/Segmentation/{part}.txt"] = names
    in_folder = {f"VOCdevkit/VOC2012/{name}": content for name, content in files.items()}
    pack(folder / "VOCtrainval_11-May-2012.tar", in_folder)
