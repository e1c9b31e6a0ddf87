"""When two figures agree: by what they show, not by their bytes.

From one version of matplotlib to the next the same figure is drawn with other elements, and its
words are spaced otherwise. So the words of a figure are compared, and its curves, grids and cells
by where they lie within their axes. A figure that is not matplotlib's (Java's are not) is compared
element by element.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tools.compare.numbers import NUMBER, Tolerance, text_difference

FIGURE = re.compile(r'<img src="data:image/svg\+xml;base64,([^"]*)" alt="([^"]*)">')
PICTURE = "data:image/png;base64,"
HREF = "{http://www.w3.org/1999/xlink}href"
REFERENCE = re.compile(r"#([-\w]+)")
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
AXES = 'id="axes_'  # how matplotlib names the groups of what belongs together
# How far another version of matplotlib may put words, and with them the axes, in points.
SPACING = 2.0
DPI = 144  # of the pictures of those that differ

Array = NDArray[Any]


def figure_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """The first difference between two SVGs, given in base64, or None where they agree."""
    if stored == fresh:
        return None
    try:
        old, new = b64decode(stored), b64decode(fresh)
        is_matplotlibs = AXES.encode() in old and AXES.encode() in new
        compare = _content_difference if is_matplotlibs else _element_difference
        return compare(old, new, tolerance)
    # Not base64, not a picture, not XML (or a picture broken half-way), no axes.
    except (ValueError, OSError, SyntaxError, LookupError, AttributeError) as error:
        return f"damaged: {error}"


# Element by element


def _element_difference(stored: bytes, fresh: bytes, tolerance: Tolerance) -> str | None:
    old, new = _elements(stored), _elements(fresh)
    if len(old) != len(new):
        return f"{len(new)} elements instead of {len(old)}"
    # Ids are made from what they name, last digits included: only their order counts.
    names: dict[str, str] = {}
    for a, b in zip(old, new, strict=True):
        if a.tag != b.tag or {*a.keys()} != {*b.keys()}:
            return f"<{_tag(b)}> instead of <{_tag(a)}>"
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


def _elements(svg: bytes) -> list[Element]:
    """All elements, those that define ids before those that use them."""
    elements = list(ElementTree.fromstring(svg).iter())
    return sorted(elements, key=lambda element: "id" not in element.attrib)


def _tag(element: Element) -> str:
    # A comment's tag is no string.
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _cell_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """Of two heat maps, a pixel a cell."""
    old, new = _cells(stored), _cells(fresh)
    if old.shape != new.shape:
        return f"a picture of {new.shape[:2]} cells instead of {old.shape[:2]}"
    off = np.abs(old - new).max(axis=-1) > tolerance.levels
    return f"{off.sum()} of {off.size} cells have another colour" if off.any() else None


def _cells(picture: str) -> Array:
    data = b64decode(picture.removeprefix(PICTURE))
    return np.asarray(Image.open(BytesIO(data)).convert("RGBA"), int)


# By content


@dataclass
class Part:
    """A text, a stroke, a marker or a picture of cells: what a figure shows, piece by piece."""

    what: str
    exact: tuple[Any, ...] = ()  # words, style, the kinds of strokes
    where: Array = field(default_factory=lambda: np.zeros((0, 2)))  # (points, 2)
    unit: Array = field(default_factory=lambda: np.ones(2))  # of ``where``: 1/72 inch each
    within: float = SPACING
    cells: str = ""

    def __str__(self) -> str:
        of = "".join(map(str, self.exact[0])) if self.what == "text" else self.exact[1:2]
        return f"{self.what} {of!r:.120}"


def _content_difference(stored: bytes, fresh: bytes, tolerance: Tolerance) -> str | None:
    old, new = list(_parts(stored, tolerance)), list(_parts(fresh, tolerance))
    if [part.what for part in old] != [part.what for part in new]:
        old_texts, new_texts = (
            [p.exact[0] for p in parts if p.what == "text"] for parts in (old, new)
        )
        texts = f", and {new_texts} instead of {old_texts}" if old_texts != new_texts else ""
        return f"{len(new)} parts instead of {len(old)}{texts}"
    for a, b in zip(old, new, strict=True):
        if a.exact != b.exact or a.where.shape != b.where.shape:
            how = ", drawn otherwise" if str(a) == str(b) else f" instead of the {a}"
            return f"the {b}{how}"
        off = (np.abs(a.where - b.where) * a.unit).max(initial=0)
        if off > a.within:
            return f"the {b} is {off:.2f} points off"
        if a.what == "colour bar":
            fault = _bar_difference(a.cells, b.cells, tolerance)
        else:
            fault = _cell_difference(a.cells, b.cells, tolerance) if a.cells else None
        if fault:
            return fault
    return None


def _bar_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """Of two colour bars, of as many steps as there was room for."""
    old, new = (
        cells[np.linspace(0, len(cells) - 1, 64).astype(int), 0]
        for cells in (_cells(stored), _cells(fresh))
    )
    # A step more for each end, and one for the steps between.
    off = np.abs(old - new).max() > 3 * tolerance.levels
    return "the colour bar has other colours" if off else None


def _parts(svg: bytes, tolerance: Tolerance) -> Iterator[Part]:
    root = ElementTree.fromstring(
        svg, ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    )
    ids = {element.get("id"): element for element in root.iter()}
    size = [float(NUMBER.findall(root.attrib[side])[0]) for side in ("width", "height")]
    background = next(element for element in root.iter() if _tag(element) == "path")
    yield Part("figure", ("", background.get("style")), np.array([size]))
    for group in root.iter():
        if re.fullmatch(r"axes_\d+", group.get("id", "")):
            yield from _parts_of_axes(group, ids, tolerance)


def _parts_of_axes(
    axes: Element, ids: dict[str | None, Element], tolerance: Tolerance
) -> Iterator[Part]:
    box = _points(next(path for path in axes.iter() if _tag(path) == "path").attrib["d"])
    corner, extent = box.min(axis=0), np.ptp(box, axis=0)
    yield Part("box", where=np.array([corner, corner + extent]))

    def walk(element: Element, in_legend: bool) -> Iterator[Part]:
        kind, name = _tag(element), element.get("id", "")
        in_legend = in_legend or name.startswith("legend")
        if name.startswith("text_"):
            yield _text(element, ids, corner)
            return
        # In the axes by fractions of their box, which is larger or smaller by a hair.
        unit = np.ones(2) if in_legend else extent
        within = SPACING if in_legend else tolerance.points
        if kind == "path" and "d" in element.attrib:
            strokes = "".join(NUMBER.sub("", element.attrib["d"]).split())
            exact: tuple[Any, ...] = (strokes, element.get("style"), "clip-path" in element.attrib)
            points = _points(element.attrib["d"])
            yield Part("stroke", exact, (points - corner) / unit, unit, within)
        elif kind == "use":
            mark = ids[element.attrib[HREF][1:]]
            at = np.array([[float(element.get(side, 0)) for side in "xy"]])
            exact = mark.get("d"), element.get("style")
            yield Part("mark", exact, (at - corner) / unit, unit, within)
        elif kind == "image":
            place = re.findall(r"matrix\((.*)\)", element.get("transform", ""))
            cells = element.attrib[HREF]
            if place:
                x_scale, _, _, y_scale, x, y = map(float, place[0].split())
                size = [float(element.attrib[side]) for side in ("width", "height")]
                far = [x + x_scale * size[0], y + y_scale * size[1]]
                at = (np.array([[x, y], far]) - corner) / unit
                yield Part("heat map", (), at, unit, within, cells)
            else:
                yield Part("colour bar", cells=cells)
        for child in element:
            if _tag(child) != "defs":
                yield from walk(child, in_legend)

    yield from walk(axes, in_legend=False)


def _text(group: Element, ids: dict[str | None, Element], corner: Array) -> Part:
    """matplotlib draws letters as outlines, and writes beside them, in a comment, what they say."""
    words = tuple(child.text for child in group if not _tag(child))
    outlines = tuple(
        "".join((ids[use.attrib[HREF][1:]].get("d") or "").split())
        for use in group.iter()
        if _tag(use) == "use"
    )
    # Newer versions join some letters.
    is_joined = any(pair in "".join(map(str, words)) for pair in ("ff", "fi", "fl"))
    (drawn,) = (child for child in group if _tag(child) == "g")
    at = _points(re.findall(r"translate\(([^)]*)\)", drawn.attrib["transform"])[0])
    exact = (words, drawn.get("style"), () if is_joined else outlines)
    return Part("text", exact, at - corner)


def _points(path: str) -> Array:
    return np.array(NUMBER.findall(path), float).reshape(-1, 2)


# A picture of both


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
        font_dirs=[str(Path(matplotlib.get_data_path(), "fonts", "ttf"))],
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
