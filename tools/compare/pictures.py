"""A picture of two figures that differ: the stored, the fresh, and where."""

from base64 import b64decode
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from d2l_compat._shared.fonts import FONT

DPI = 144

Array = NDArray[Any]


def render(svg: bytes) -> Array:
    """The pixels, on white: (height, width, 3). Raises ValueError where it is no SVG."""
    import matplotlib
    import resvg_py

    png = resvg_py.svg_to_bytes(
        svg_string=svg.decode(),
        dpi=DPI,
        background="white",
        # The same letters on every machine.
        skip_system_fonts=True,
        font_dirs=[str(Path(matplotlib.get_data_path(), "fonts", "ttf")), str(FONT.parent)],
    )
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"), np.int16)


def _same_size(*pictures: Array) -> list[Array]:
    height, width = np.max([picture.shape[:2] for picture in pictures], axis=0)
    return [
        np.pad(
            picture,
            ((0, height - picture.shape[0]), (0, width - picture.shape[1]), (0, 0)),
            constant_values=255,
        )
        for picture in pictures
    ]


def picture(stored: str, fresh: str) -> bytes:
    """A PNG of two SVGs, given in base64: the stored, the fresh, and in red where they differ.

    Raises ValueError where one is no SVG.
    """
    old, new = _same_size(*(render(b64decode(svg)) for svg in (stored, fresh)))
    faint = 255 - (255 - new.mean(axis=-1, keepdims=True)) / 4
    off = np.abs(old - new).max(axis=-1, keepdims=True) > 8  # of 255: what an eye could see
    where = np.where(off, (213, 0, 0), faint)
    panels = []
    for title, pixels in (("stored", old), ("fresh", new), ("difference", where)):
        panel = Image.new("RGB", (pixels.shape[1] + 40, pixels.shape[0] + 80), "white")
        panel.paste(Image.fromarray(pixels.astype(np.uint8)), (20, 60))
        ImageDraw.Draw(panel).text((20, 10), title, "black", font_size=36)
        panels.append(panel)
    together = Image.new("RGB", (panels[0].width, sum(panel.height for panel in panels)), "white")
    for number, panel in enumerate(panels):
        together.paste(panel, (0, number * panel.height))
    file = BytesIO()
    together.save(file, "png", optimize=True)
    return file.getvalue()
