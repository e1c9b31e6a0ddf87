"""Whether two executions show the same: one rule for the runner and for nbval.

Numbers that are not integers may differ in their last digit, as between two processors;
figures may differ by what no eye sees; everything else is exact.
"""

import re
from base64 import b64decode
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
from PIL import Image

# Two numbers agree within any of these.
ABSOLUTE = 1e-6  # residuals that only say "zero, up to rounding"
RELATIVE = 1e-5  # of float32, with room for sums in another order
LAST_DIGIT = 0.02  # one unit in the last printed place, where that is at most 2 % of the number
# Figures.
POINTS = 0.05  # 1/72 inch each: how far a stroke may lie from where it lay
LEVELS = 4  # of 255: a heat map's colour, one step along the colour map

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
FIGURE = re.compile(r'<img src="data:image/svg\+xml;base64,([^"]*)" alt="([^"]*)">')
PICTURE = "data:image/png;base64,"
REFERENCE = re.compile(r"#([-\w]+)")
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")


def difference(stored: Any, fresh: Any) -> str | None:
    """The first difference between two outputs (or parts of one), or None where they agree."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        if stored.keys() != fresh.keys():
            return f"{sorted(fresh)} instead of {sorted(stored)}"
        found = (difference(stored[key], fresh[key]) for key in stored)
    elif isinstance(stored, list) and isinstance(fresh, list):
        if len(stored) != len(fresh):
            return f"{len(fresh)} instead of {len(stored)}"
        found = (difference(a, b) for a, b in zip(stored, fresh, strict=True))
    elif isinstance(stored, str) and isinstance(fresh, str):
        return _text_difference(stored, fresh)
    else:
        return None if stored == fresh else f"{fresh!r} instead of {stored!r}"
    return next((fault for fault in found if fault), None)


def _text_difference(stored: str, fresh: str) -> str | None:
    if stored == fresh:
        return None
    old, new = FIGURE.fullmatch(stored), FIGURE.fullmatch(fresh)
    if old and new:
        try:
            fault = _svg_difference(b64decode(old[1]), b64decode(new[1]))
        # Not base64, not a picture, not XML (or a picture broken half-way).
        except (ValueError, OSError, SyntaxError) as error:
            fault = f"damaged: {error}"
        return f"the figure: {fault}" if fault else _numbers_difference(old[2], new[2])
    return _numbers_difference(stored, fresh)


def _numbers_difference(stored: str, fresh: str, within: float | None = None) -> str | None:
    # A sign takes the place of a blank in aligned columns.
    old_words, new_words = (
        [" ".join(between.split()) for between in NUMBER.split(text)] for text in (stored, fresh)
    )
    numbers = zip(NUMBER.findall(stored), NUMBER.findall(fresh), strict=False)
    if old_words == new_words and all(_agree(old, new, within) for old, new in numbers):
        return None
    old_lines, new_lines = stored.splitlines(), fresh.splitlines()
    for old, new in zip(old_lines, new_lines, strict=False):
        if old != new:
            return f"{new[:200]!r} instead of {old[:200]!r}"
    return f"{len(new_lines)} lines instead of {len(old_lines)}"


def _agree(old: str, new: str, within: float | None) -> bool:
    if old == new:
        return True
    a, b = float(old), float(new)
    if within is not None:
        return abs(a - b) <= within
    if not any(mark in number for number in (old, new) for mark in ".eE"):
        return False  # integers are exact
    size = max(abs(a), abs(b))
    allowed = max(ABSOLUTE, RELATIVE * size)
    last_digit = max(_last_digit(old), _last_digit(new))
    if last_digit <= LAST_DIGIT * size:
        allowed = max(allowed, last_digit)
    return abs(a - b) <= allowed * (1 + 1e-9)


def _last_digit(number: str) -> float:
    """The worth of one unit in the last decimal place; infinite where none is printed."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if decimals else float("inf")


def _svg_difference(stored: bytes, fresh: bytes) -> str | None:
    old, new = _elements(stored), _elements(fresh)
    if len(old) != len(new):
        return f"{len(new)} elements instead of {len(old)}"
    # Ids are made from what they name, last digits included: only their order counts.
    names: dict[str, str] = {}
    for a, b in zip(old, new, strict=True):
        if a.tag != b.tag or a.keys() != b.keys():
            return f"<{_tag(b)}> instead of <{_tag(a)}>"
        for key in a.keys():  # noqa: SIM118 - an element is not a mapping
            was, now = a.attrib[key], b.attrib[key]
            if key == "id":
                names[was] = now
            elif now.startswith(PICTURE) and was.startswith(PICTURE):
                if fault := _picture_difference(was, now):
                    return fault
            else:
                if COLOUR.findall(was) != COLOUR.findall(now):
                    return f"<{_tag(a)}> {key}: {now!r} instead of {was!r}"
                was = REFERENCE.sub(lambda m: "#" + names.get(m[1], m[1]), was)
                if fault := _numbers_difference(was, now, within=POINTS):
                    return f"<{_tag(a)}> {key}: {fault}"
        if fault := _numbers_difference(a.text or "", b.text or "", within=POINTS):
            return f"<{_tag(a)}>: {fault}"
    return None


def _elements(svg: bytes) -> list[ElementTree.Element]:
    """All elements, those that define ids before those that use them."""
    elements = list(ElementTree.fromstring(svg).iter())
    return sorted(elements, key=lambda element: "id" not in element.attrib)


def _tag(element: ElementTree.Element) -> str:
    return element.tag.partition("}")[2] or element.tag


def _picture_difference(stored: str, fresh: str) -> str | None:
    old, new = (
        np.asarray(Image.open(BytesIO(b64decode(data[len(PICTURE) :]))).convert("RGBA"), int)
        for data in (stored, fresh)
    )
    if old.shape != new.shape:
        return f"a picture of {new.shape[:2]} cells instead of {old.shape[:2]}"
    off = np.abs(old - new).max(axis=-1) > LEVELS
    return f"{off.sum()} of {off.size} cells have another colour" if off.any() else None
