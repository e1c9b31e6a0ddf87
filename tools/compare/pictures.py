"""Figures in pixels: the PNG beside an SVG, and a picture of two figures that differ."""

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
    """Of a PNG in base64, as :func:`render`. Raises ValueError or OSError where it is none."""
    return np.asarray(Image.open(BytesIO(b64decode(png, validate=True))).convert("RGB"))


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
        made, stored = render(svg).astype(int), pixels(png).astype(int)
    except (ValueError, OSError) as error:
        return f"damaged: {error}"
    if made.shape != stored.shape:
        return f"a PNG of {stored.shape[:2]} pixels instead of {made.shape[:2]}"
    off = np.abs(made - stored).max(axis=-1) > FEW
    return f"the PNG is another picture: {off.sum()} of {off.size} pixels" if off.any() else None


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
    """A PNG of two SVGs: the stored, the fresh, and in red where they differ.

    Raises ValueError where one is no SVG.
    """
    old, new = _same_size(*(render(svg).astype(int) for svg in (stored, fresh)))
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
