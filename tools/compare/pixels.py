"""Render SVGs as pixels, and compare PNGs by pixel: with the SVG in the same output, or with another PNG."""

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

ZOOM = 2  # pixels per CSS pixel
TOLERANCE = 24  # of 255; a PNG reduced to 256 colours differs from its SVG by less
LABEL_WIDTH = 200  # pixels, for the label above an image

Array = NDArray[Any]


def render_png(svg: str) -> bytes:
    """Return a PNG of an SVG on white, with at most 256 colours. Raise ValueError if it is invalid."""
    file = BytesIO()
    image = Image.fromarray(render(svg)).quantize(256, Image.Quantize.MAXCOVERAGE)
    image.save(file, "png", optimize=True)
    return file.getvalue()


def render(svg: str) -> Array:
    """Return an SVG's pixels on white, (height, width, 3). Raise ValueError if it is invalid."""
    import matplotlib
    import resvg_py

    png = resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=ZOOM,
        dpi=96,
        background="white",
        # Draw the same letters on every machine.
        skip_system_fonts=True,
        font_dirs=[str(Path(matplotlib.get_data_path(), "fonts", "ttf")), str(FONT.parent)],
    )
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))


def read_css_width(png: bytes) -> int:
    """Return a rendered PNG's width in CSS pixels."""
    return Image.open(BytesIO(png)).width // ZOOM


def decode_png(png: str) -> Array:
    """Decode a PNG in base64: (height, width, 4), the colours multiplied by their opacity.

    Raises ValueError if it is not a PNG.
    """
    try:
        data = b64decode("".join(png.split()), validate=True)  # some kernels break it into lines
        image: Image.Image = Image.open(BytesIO(data), formats=["PNG"])
        if image.mode.startswith("I"):  # grey in 16 bits, which Pillow would clip at 255
            image = Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
        # RGBa multiplies colours by the opacity, so that the colour of an invisible pixel does not count.
        return np.asarray(image.convert("RGBA").convert("RGBa"), int)
    except (OSError, SyntaxError, ValueError, struct.error, zlib.error) as error:
        raise ValueError(f"not a PNG: {error}") from None


def blend_on_white(pixels: Array) -> Array:
    """Blend the pixels from :func:`decode_png` with white, as :func:`render` does."""
    return pixels[..., :3] + 255 - pixels[..., 3:]


def add_pngs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Add a PNG to each SVG, with its width and alternative text; replace one that the kernel sent."""
    for output in outputs:
        data = output.get("data", {})
        if SVG in data:
            png = render_png(data[SVG])
            data[PNG] = b64encode(png).decode()
            metadata = {"alt": data.get("text/plain", ""), "width": read_css_width(png)}
            output.metadata = NotebookNode({PNG: NotebookNode(metadata)})
    return outputs


def compare_png_with_svg(png: str, svg: str) -> str | None:
    """Return the difference between a PNG, in base64, and an SVG, or None."""
    if not png:
        return "no PNG beside the SVG"
    try:
        expected = render(svg).astype(int)
        stored = blend_on_white(decode_png(png))
    except ValueError as error:
        return f"damaged: {error}"
    difference = _compare_pixels(expected, stored)
    return f"the PNG differs from the SVG: {difference}" if difference else None


def compare_pngs(stored: str, fresh: str) -> str | None:
    """Return the difference between the pixels of two PNGs, in base64, or None."""
    if stored == fresh:
        return None
    decoded = []
    for name, png in (("stored", stored), ("fresh", fresh)):
        try:
            decoded.append(decode_png(png))
        except ValueError as error:
            return f"the {name} PNG is damaged: {error}"
    return _compare_pixels(*decoded)


def _compare_pixels(old: Array, new: Array) -> str | None:
    if old.shape != new.shape:
        (height, width), (old_height, old_width) = new.shape[:2], old.shape[:2]
        return f"{width} x {height} pixels instead of {old_width} x {old_height}"
    differs = np.abs(old - new).max(axis=-1) > TOLERANCE
    return f"{differs.sum()} of {differs.size} pixels differ" if differs.any() else None


def _pad_to_same_size(*images: Array) -> list[Array]:
    height, width = np.max([image.shape[:2] for image in images], axis=0)
    padded = []
    for image in images:
        below, right = height - image.shape[0], width - image.shape[1]
        padded.append(np.pad(image, ((0, below), (0, right), (0, 0)), constant_values=255))
    return padded


def draw_comparison(stored: Array, fresh: Array) -> bytes:
    """Draw a PNG with three panels: the stored image, the fresh one, and their differences in red."""
    old, new = _pad_to_same_size(stored.astype(int), fresh.astype(int))
    faint = 255 - (255 - new.mean(axis=-1, keepdims=True)) / 4
    differs = np.abs(old - new).max(axis=-1, keepdims=True) > 8  # of 255: visible
    difference = np.where(differs, (213, 0, 0), faint)
    panels = []
    for title, pixels in (("stored", old), ("fresh", new), ("difference", difference)):
        width = max(pixels.shape[1], LABEL_WIDTH) + 40
        panel = Image.new("RGB", (width, pixels.shape[0] + 80), "white")
        panel.paste(Image.fromarray(pixels.astype(np.uint8)), (20, 60))
        ImageDraw.Draw(panel).text((20, 10), title, "black", font_size=36)
        panels.append(panel)
    image = Image.new("RGB", (panels[0].width, sum(panel.height for panel in panels)), "white")
    for number, panel in enumerate(panels):
        image.paste(panel, (0, number * panel.height))
    file = BytesIO()
    image.save(file, "png", optimize=True)
    return file.getvalue()
