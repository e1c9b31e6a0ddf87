"""When two figures agree: by what they show, not by their bytes.

Drawn alike (the same elements in the same order), they are compared stroke by stroke and cell by
cell. Another version of matplotlib draws the same figure with other elements: then it is their
pixels that are compared.
"""

import re
from base64 import b64decode
from functools import reduce
from io import BytesIO
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import resvg_py
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tools.numbers import Tolerance, text_difference

FIGURE = re.compile(r'<img src="data:image/svg\+xml;base64,([^"]*)" alt="([^"]*)">')
PICTURE = "data:image/png;base64,"
REFERENCE = re.compile(r"#([-\w]+)")
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
# Where the figures are drawn otherwise, and pixels are compared.
DPI = 216  # three pixels to a point
NEAR = 1  # pixels: how far a colour may lie from where it lay
CONTRAST = 96  # of 255: less is the edge of a stroke, which a renderer smooths

Pixels = NDArray[np.int16]  # (height, width, 3)


def figure_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """The first difference between two SVGs, given in base64, or None where they agree."""
    if stored == fresh:
        return None
    try:
        old, new = b64decode(stored), b64decode(fresh)
        fault = _vector_difference(old, new, tolerance)
        if isinstance(fault, Drawn):
            fault = _pixel_difference(old, new, str(fault))
    # Not base64, not a picture, not XML (or a picture broken half-way).
    except (ValueError, OSError, SyntaxError) as error:
        return f"damaged: {error}"
    return fault


class Drawn(str):
    """A difference in how a figure is drawn, which may show the same all the same."""


def _vector_difference(stored: bytes, fresh: bytes, tolerance: Tolerance) -> str | None:
    old, new = _elements(stored), _elements(fresh)
    if len(old) != len(new):
        return Drawn(f"{len(new)} elements instead of {len(old)}")
    # Ids are made from what they name, last digits included: only their order counts.
    names: dict[str, str] = {}
    for a, b in zip(old, new, strict=True):
        if a.tag != b.tag or a.keys() != b.keys():
            return Drawn(f"<{_tag(b)}> instead of <{_tag(a)}>")
        for key in a.keys():  # noqa: SIM118 - an element is not a mapping
            was, now = a.attrib[key], b.attrib[key]
            if key == "id":
                names[was] = now
            elif now.startswith(PICTURE) and was.startswith(PICTURE):
                if fault := _cell_difference(was, now, tolerance):
                    return fault
            else:
                if COLOUR.findall(was) != COLOUR.findall(now):
                    return f"<{_tag(a)}> {key}: {now!r} instead of {was!r}"
                was = REFERENCE.sub(lambda m: "#" + names.get(m[1], m[1]), was)
                if fault := text_difference(was, now, tolerance, within=tolerance.points):
                    return f"<{_tag(a)}> {key}: {fault}"
        if fault := text_difference(a.text or "", b.text or "", tolerance, within=tolerance.points):
            return f"<{_tag(a)}>: {fault}"
    return None


def _elements(svg: bytes) -> list[ElementTree.Element]:
    """All elements, those that define ids before those that use them."""
    elements = list(ElementTree.fromstring(svg).iter())
    return sorted(elements, key=lambda element: "id" not in element.attrib)


def _tag(element: ElementTree.Element) -> str:
    return element.tag.partition("}")[2] or element.tag


def _cell_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """Of two heat maps, a pixel a cell."""
    old, new = (
        np.asarray(Image.open(BytesIO(b64decode(data[len(PICTURE) :]))).convert("RGBA"), int)
        for data in (stored, fresh)
    )
    if old.shape != new.shape:
        return f"a picture of {new.shape[:2]} cells instead of {old.shape[:2]}"
    off = np.abs(old - new).max(axis=-1) > tolerance.levels
    return f"{off.sum()} of {off.size} cells have another colour" if off.any() else None


def _pixel_difference(stored: bytes, fresh: bytes, how: str) -> str | None:
    old, new = render(stored), render(fresh)
    if np.abs(np.subtract(old.shape, new.shape)).max() > NEAR:
        return f"{how}; {new.shape[1]} x {new.shape[0]} pixels, not {old.shape[1]} x {old.shape[0]}"
    off = _differing(*_same_size(old, new)).sum()
    return f"{how}, and {off} pixels differ" if off else None


def render(svg: bytes) -> Pixels:
    """What it shows, on white. Raises ValueError where it is no SVG."""
    png = resvg_py.svg_to_bytes(
        svg_string=svg.decode(),
        dpi=DPI,
        background="white",
        # The same letters on every machine.
        skip_system_fonts=True,
        font_dirs=[str(Path(matplotlib.get_data_path(), "fonts", "ttf"))],
    )
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"), np.int16)


def _same_size(*pictures: Pixels) -> list[Pixels]:
    height, width = np.max([picture.shape[:2] for picture in pictures], axis=0)
    return [
        np.pad(
            picture,
            ((0, height - picture.shape[0]), (0, width - picture.shape[1]), (0, 0)),
            constant_values=255,
        )
        for picture in pictures
    ]


def _differing(old: Pixels, new: Pixels) -> NDArray[np.bool_]:
    """The pixels whose colour is nowhere near in the other picture, whichever is the other."""

    def nowhere_near(pixels: Pixels, other: Pixels) -> NDArray[np.bool_]:
        steps = range(-NEAR, NEAR + 1)
        shifted = (np.roll(other, step, axis=(0, 1)) for step in product(steps, steps))
        distances = (np.abs(pixels - near).max(axis=-1) for near in shifted)
        return reduce(np.minimum, distances) > CONTRAST

    return nowhere_near(old, new) | nowhere_near(new, old)


def picture(stored: str, fresh: str) -> bytes:
    """A PNG of two SVGs, given in base64: the stored, the fresh, and in red where they differ.

    Raises ValueError where one is no SVG.
    """
    old, new = _same_size(*(render(b64decode(svg)) for svg in (stored, fresh)))
    faint = 255 - (255 - new.mean(axis=-1, keepdims=True)) / 4
    off = np.abs(old - new).max(axis=-1, keepdims=True) > CONTRAST / 2
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
