"""Figures in pixels: the PNG beside an SVG, a PNG alone, and a picture of two figures that differ."""

import struct
import zlib
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from nbformat import NotebookNode
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from d2l_compat._shared.fonts import FONT
from tools.compare.figures import PNG, SVG

ZOOM = 2  # pixels for each of a usual screen's
FEW = 24  # of 255: what the few colours of a PNG leave out lies below
WORDS = 200  # pixels: room for the words above the pictures

Array = NDArray[Any]


def as_png(svg: str) -> bytes:
    """On white, in few colours: a figure has few. Raises ValueError where it is no SVG."""
    file = BytesIO()
    few = Image.fromarray(render(svg)).quantize(256, Image.Quantize.MAXCOVERAGE)
    few.save(file, "png", optimize=True)
    return file.getvalue()


def render(svg: str) -> Array:
    """The pixels, on white: (height, width, 3). Raises ValueError where it is no SVG."""
    import matplotlib
    import resvg_py

    png = resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=ZOOM,
        dpi=96,
        background="white",
        # The same letters on every machine.
        skip_system_fonts=True,
        font_dirs=[str(Path(matplotlib.get_data_path(), "fonts", "ttf")), str(FONT.parent)],
    )
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))


def css_width(png: bytes) -> int:
    """In the pixels that a page counts."""
    return Image.open(BytesIO(png)).width // ZOOM


def pixels(png: str) -> Array:
    """Decode a PNG in base64: (height, width, 4), the colours multiplied by their opacity.

    Raises ValueError where it is no PNG.
    """
    try:
        data = b64decode("".join(png.split()), validate=True)  # some kernels break it into lines
        image: Image.Image = Image.open(BytesIO(data), formats=["PNG"])
        if image.mode.startswith("I"):  # grey in 16 bits, which Pillow would cut off at 255
            image = Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
        # One that is invisible has no colour: no reader could tell it from another.
        return np.asarray(image.convert("RGBA").convert("RGBa"), int)
    except (OSError, SyntaxError, ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"no PNG: {error}") from None


def on_white(picture: Array) -> Array:
    """Lay the pixels that :func:`pixels` returns on white, as :func:`render` does."""
    return picture[..., :3] + 255 - picture[..., 3:]


def complete(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """With each SVG the PNG that is made from it, whatever the kernel sent; its width, and its words."""
    for output in outputs:
        data = output.get("data", {})
        if SVG in data:
            png = as_png(data[SVG])
            data[PNG] = b64encode(png).decode()
            said = {"alt": data.get("text/plain", ""), "width": css_width(png)}
            output.metadata = NotebookNode({PNG: NotebookNode(said)})
    return outputs


def picture_fault(png: str, svg: str) -> str | None:
    """How a PNG, in base64, is not that of the SVG; or None."""
    if not png:
        return "no PNG beside the SVG"
    try:
        made, stored = render(svg).astype(int), on_white(pixels(png))
    except ValueError as error:
        return f"damaged: {error}"
    fault = _pixel_difference(made, stored)
    return f"the PNG is another picture than the SVG: {fault}" if fault else None


def png_difference(stored: str, fresh: str) -> str | None:
    """Return how two PNGs, in base64, differ; None where they show the same, however encoded."""
    if stored == fresh:
        return None
    found = []
    for name, png in (("stored", stored), ("fresh", fresh)):
        try:
            found.append(pixels(png))
        except ValueError as error:
            return f"the {name} one is damaged: {error}"
    return _pixel_difference(*found)


def _pixel_difference(old: Array, new: Array) -> str | None:
    if old.shape != new.shape:
        (height, width), (old_height, old_width) = new.shape[:2], old.shape[:2]
        return f"{width} x {height} pixels instead of {old_width} x {old_height}"
    off = np.abs(old - new).max(axis=-1) > FEW
    return f"{off.sum()} of {off.size} pixels differ" if off.any() else None


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


def picture(stored: Array, fresh: Array) -> bytes:
    """Draw a PNG of two pictures on white: the stored, the fresh, and in red where they differ."""
    old, new = _same_size(stored.astype(int), fresh.astype(int))
    faint = 255 - (255 - new.mean(axis=-1, keepdims=True)) / 4
    off = np.abs(old - new).max(axis=-1, keepdims=True) > 8  # of 255: what an eye could see
    where = np.where(off, (213, 0, 0), faint)
    panels = []
    for title, pixels in (("stored", old), ("fresh", new), ("difference", where)):
        width = max(pixels.shape[1], WORDS) + 40
        panel = Image.new("RGB", (width, pixels.shape[0] + 80), "white")
        panel.paste(Image.fromarray(pixels.astype(np.uint8)), (20, 60))
        ImageDraw.Draw(panel).text((20, 10), title, "black", font_size=36)
        panels.append(panel)
    together = Image.new("RGB", (panels[0].width, sum(panel.height for panel in panels)), "white")
    for number, panel in enumerate(panels):
        together.paste(panel, (0, number * panel.height))
    file = BytesIO()
    together.save(file, "png", optimize=True)
    return file.getvalue()
