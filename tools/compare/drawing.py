"""Parse a drawing into a list of pieces, each with its shape and its positions.

Every element of the SVG becomes a piece, and everything in the element is compared exactly: its
attributes, its text, its depth in the tree. The exceptions are:

* positions: they are compared with a tolerance; within axes, as fractions of the axes
* ids: a reference is compared by the piece that it refers to
* definitions of markers and letters: they are compared at each use
* the colours of a heat map's cells, and the title and description: tools/compare/figures.py compares them
* whitespace between elements and within paths, and the order of attributes: they are ignored
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from tools.compare.numbers import NUMBER

# How far apart, in points, two versions of matplotlib may place the same words, and the axes beside them.
SPACING = 2.0
LETTER_SPACING = 0.5  # points, for letters within words
# The ids that matplotlib gives to groups of elements.
AXES, LEGEND, TEXT = (re.compile(name + r"_\d+") for name in ("axes", "legend", "text"))
HREF = re.compile(r"(\{.*\})?href")
REFERENCE = re.compile(r"#([-\w]+)")
DESCRIPTIONS = "title", "desc"
SQUARE = re.compile(r"M(\d+) (\d+)h1v1h-1z")
COLOR = re.compile("#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})")
CALL = re.compile(r"(\w+)\(([^()]*)\)")


Position = tuple[
    float, float
]  # a coordinate as a fraction of a box, and the box's extent in points


class Frame(NamedTuple):
    """A box in which positions are measured, as fractions."""

    tolerance: float  # how far positions may differ, in points: 1/72 inch each
    corner: tuple[float, float] = (0, 0)
    extent: tuple[float, float] = (1, 1)

    def measure_all(self, numbers: Iterable[float]) -> list[Position]:
        """Return the positions of coordinates that alternate between x and y."""
        return [self.measure(number, i % 2) for i, number in enumerate(numbers)]

    def measure(self, number: float, axis: int, is_extent: bool = False) -> Position:
        """Return the position of a coordinate on one axis: 0 is horizontal, 1 vertical."""
        corner = 0 if is_extent else self.corner[axis]
        return (number - corner) / self.extent[axis], self.extent[axis]


@dataclass
class Piece:
    name: str
    exact: dict[str, Any]
    positions: list[Position]
    tolerance: float
    colors: NDArray[Any] | None = None  # of a heat map, (rows, columns, 4)
    description: str = ""
    letters: tuple[str, ...] = ()  # their outlines
    words: str = ""  # spelled by the letters


class Drawing:
    def __init__(self, svg: bytes, tolerance: float) -> None:
        """Parse an SVG; ``tolerance`` is in points, for positions that do not depend on the size of words.

        Raises ValueError, SyntaxError or LookupError for an invalid drawing.
        """
        prolog, _, rest = svg.partition(b"<svg")
        # A style sheet or an entity may be outside the root element.
        self.surroundings = prolog, rest.rpartition(b">")[2].strip()
        builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
        root = ElementTree.fromstring(svg, ElementTree.XMLParser(target=builder))
        ids = [element.get("id", "") for element in root.iter()]
        self.is_from_matplotlib = any(map(AXES.fullmatch, ids))
        self._tolerance = tolerance
        self._by_id: dict[str, Element] = {}
        for element in root.iter():
            self._by_id.setdefault(element.get("id", ""), element)  # the first, as in a browser
        self.pieces: list[Piece] = []
        self._piece_numbers: dict[Element, int] = {}
        frame = Frame(SPACING if self.is_from_matplotlib else tolerance)
        self._add(root, None, frame, "", 0)
        for piece in self.pieces:
            for key, value in piece.exact.items():
                if isinstance(value, str) and "#" in value:
                    piece.exact[key] = REFERENCE.sub(self._replace_reference, value)

    def _replace_reference(self, reference: re.Match[str]) -> str:
        """Return the number of the piece that a reference refers to."""
        target = self._by_id.get(reference[1])
        if target is None or target not in self._piece_numbers:
            return reference[0]
        return f"piece {self._piece_numbers[target]}"

    def _add(
        self, element: Element, parent: Element | None, frame: Frame, words: str, depth: int
    ) -> None:
        """Add the pieces of an element and its children; ``words`` are what its letters spell."""
        name = element.get("id", "") if self.is_from_matplotlib else ""
        outer_frame = frame
        is_axes = bool(AXES.fullmatch(name))
        if is_axes:
            frame = self._make_axes_frame(element)
        elif LEGEND.fullmatch(name) or TEXT.fullmatch(name):
            frame = Frame(SPACING, frame.corner)  # not scaled with the axes
        if TEXT.fullmatch(name):
            words = " ".join(child.text or "" for child in element if not get_tag(child)) or " "

        is_definition = self.is_from_matplotlib and parent is not None and get_tag(parent) == "defs"
        if is_definition and get_tag(element) == "path" and "id" in element.attrib:
            frame = Frame(self._tolerance)
            if words and not len(element):
                return
        self._piece_numbers[element] = len(self.pieces)
        own_frame = outer_frame if is_axes else frame
        self.pieces.append(self._make_piece(element, own_frame, depth, is_definition))
        if is_axes:  # compare its corners too: positions within the axes are relative to them
            self.pieces[-1].positions += outer_frame.measure_all((*frame.corner, *frame.extent))
        letters = [
            child for child in element if words and get_tag(child) == "use" and not len(child)
        ]
        if letters:
            self.pieces.append(self._make_words(letters, element, words))
        for child in element if self.pieces[-1].colors is None else ():
            if child not in letters:
                self._add(child, element, frame, words, depth + 1)

    def _make_axes_frame(self, axes: Element) -> Frame:
        """Return the frame of axes, whose size depends slightly on matplotlib's version."""
        box = next((path for path in axes.iter() if get_tag(path) == "path"), axes)
        numbers = _parse_numbers(box.attrib["d"])
        xs, ys = numbers[::2], numbers[1::2]
        extent = max(xs) - min(xs), max(ys) - min(ys)
        if not all(extent):
            raise ValueError("axes of no extent")
        return Frame(self._tolerance, (min(xs), min(ys)), extent)

    def _make_piece(self, element: Element, frame: Frame, depth: int, is_definition: bool) -> Piece:
        kind = get_tag(element)
        exact: dict[str, Any] = dict(element.attrib)
        piece = Piece(f"<{kind}> {element.get('id', '')}".strip(), exact, [], frame.tolerance)
        if is_heat_map(element):
            piece.colors = read_heat_map(element)
            piece.positions += _find_heat_map_corners(exact, piece.colors, frame)
        if not any(role.fullmatch(exact.get("id", "")) for role in (AXES, LEGEND, TEXT)):
            exact.pop("id", None)

        if kind == "path" and is_definition and "id" in element.attrib:
            exact.pop("d", None)
        if kind == "use" and self.is_from_matplotlib:
            piece.positions += self._place_marker(exact, frame)
        for key in ("d", "viewBox", "x", "cx", "width", "y", "cy", "height", "transform"):
            if key in exact:
                exact[key], positions = _split_positions(key, exact[key], frame)
                piece.positions += positions
        text = _collapse_whitespace(element.text)
        if kind in DESCRIPTIONS:
            piece.description, text = text, ""
        exact[""] = depth, element.tag, text, _collapse_whitespace(element.tail)
        return piece

    def _place_marker(self, exact: dict[str, Any], frame: Frame) -> list[Position]:
        """Return the positions of a marker's strokes where it is used."""
        marker = self._pop_target(exact)
        path = marker.get("d", "")
        exact["marker"] = self._piece_numbers.get(marker)
        offset = [float(exact.pop(side, 0)) for side in "xy"]
        exact["strokes"] = _strip_numbers(path)
        numbers = _parse_numbers(path)
        return frame.measure_all(number + offset[i % 2] for i, number in enumerate(numbers))

    def _pop_target(self, attributes: dict[str, Any]) -> Element:
        """Return the element that is used, and remove the attribute that refers to it.

        Raises LookupError if there is no such element, and ValueError if there are two references or none.
        """
        (reference,) = (attributes.pop(key) for key in [*filter(HREF.fullmatch, attributes)])
        return self._by_id[reference.removeprefix("#")]

    def _make_words(self, letters: list[Element], group: Element, words: str) -> Piece:
        """Return a piece of words, which matplotlib draws as outlines beside a comment with their text."""
        scale = float(dict(CALL.findall(group.get("transform", ""))).get("scale", "1").split()[0])
        outlines, positions = [], []
        for letter in letters:
            attributes = dict(letter.attrib)
            outline = {**self._pop_target(attributes).attrib, "id": ""}
            outline["d"] = _collapse_whitespace(outline.get("d"))
            offset = [float(attributes.pop(side, 0)) for side in "xy"]
            calls = attributes.pop("transform", "")
            for name, numbers in CALL.findall(calls):
                if name == "translate":
                    offset = [a + b for a, b in zip(offset, _parse_numbers(numbers), strict=True)]
                    calls = calls.replace(f"translate({numbers})", "", 1)
            outlines.append(f"{outline} {attributes} {_collapse_whitespace(calls)}")
            positions += Frame(LETTER_SPACING).measure_all(scale * number for number in offset)
        return Piece(
            repr(words), {}, positions, LETTER_SPACING, letters=tuple(outlines), words=words
        )


def get_tag(element: Element) -> str:
    # The tag of a comment is a function.
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _collapse_whitespace(text: str | None) -> str:
    return " ".join((text or "").split())


def _parse_numbers(text: str) -> list[float]:
    return list(map(float, NUMBER.findall(text)))


def _strip_numbers(path: str) -> str:
    """Return a path's commands without their numbers."""
    return "".join(NUMBER.sub("", path).split())


def _split_positions(key: str, text: str, frame: Frame) -> tuple[str, list[Position]]:
    """Split an attribute with coordinates into its exact part and its positions."""
    if key == "transform":
        return _split_transform(text, frame)
    if key == "viewBox":
        return NUMBER.sub("", text), Frame(frame.tolerance).measure_all(_parse_numbers(text))
    if key == "d":
        commands = _strip_numbers(text)
        # The numbers of other commands do not alternate between x and y.
        if commands.strip("MLCQSTz"):
            return text, []
        return commands, frame.measure_all(_parse_numbers(text))
    number = NUMBER.match(text)
    if not number or text.endswith("%"):
        return text, []
    axis = 0 if key in ("x", "cx", "width") else 1
    position = frame.measure(float(number[0]), axis, is_extent=key in ("width", "height"))
    return text[number.end() :], [position]


def _split_transform(text: str, frame: Frame) -> tuple[str, list[Position]]:
    """Split a transform into its exact part, for rotation and scale, and its positions, for translation."""
    positions = []

    def remove_positions(call: re.Match[str]) -> str:
        numbers = call[2].replace(",", " ").split()
        num_exact = {"translate": 0, "rotate": 1, "matrix": 4}.get(call[1], len(numbers))
        if len(numbers) - num_exact == 2:
            positions.extend(frame.measure_all(map(float, numbers[num_exact:])))
            numbers = numbers[:num_exact]
        return f"{call[1]}({' '.join(numbers)})"

    return CALL.sub(remove_positions, text), positions


def is_heat_map(element: Element) -> bool:
    """Check whether an element is a heat map: a group of squares drawn on whole pixels."""
    return get_tag(element) == "g" and element.get("shape-rendering") == "crispEdges"


def read_heat_map(heat_map: Element) -> NDArray[Any]:
    """Return the colours of a heat map's cells, (rows, columns, 4): red, green, blue and opacity.

    Raises ValueError if the heat map has anything but cells.
    """
    color_by_cell: dict[tuple[int, int], tuple[int, ...]] = {}
    for path in heat_map:
        squares = path.get("d", "")
        color = COLOR.fullmatch(path.get("fill", ""))
        has_content = (
            _collapse_whitespace(path.text) or _collapse_whitespace(path.tail) or len(path)
        )
        if get_tag(path) != "path" or len(path.attrib) != 2 or color is None or has_content:
            raise ValueError(f"a heat map with <{get_tag(path)}> {path.attrib}"[:80])
        if rest := SQUARE.sub("", squares):
            raise ValueError(f"a heat map with {rest:.20}")
        for column, row in SQUARE.findall(squares):
            if (cell := (int(row), int(column))) in color_by_cell:
                raise ValueError(f"a heat map with two cells at {cell}")
            color_by_cell[cell] = *(int(part, 16) for part in color.groups()), 255
    if not color_by_cell:
        raise ValueError("a heat map without cells")
    cells = np.array([*color_by_cell])  # (row, column) each
    colors = np.zeros((*cells.max(axis=0) + 1, 4), int)
    colors[tuple(cells.T)] = [*color_by_cell.values()]
    return colors


def _find_heat_map_corners(
    exact: dict[str, Any], colors: NDArray[Any], frame: Frame
) -> list[Position]:
    """Return the positions of two corners of a heat map, whose unit squares are scaled by a matrix."""
    matrix = CALL.fullmatch(exact.pop("transform", ""))
    if matrix is None or matrix[1] != "matrix":
        raise ValueError("a heat map without a matrix that scales it")
    x_scale, *exact["slant"], y_scale, x, y = _parse_numbers(matrix[2])
    height, width = colors.shape[:2]
    return frame.measure_all([x, y, x + width * x_scale, y + height * y_scale])
