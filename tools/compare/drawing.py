"""A drawing as a list of pieces: what is drawn, and where.

Every element of the SVG makes a piece, and all that is in the element has to be equal: its
attributes, its words, how deep it lies. What is left out or measured is named here, each for a
reason:

* places, the numbers that say where: they are measured, within their axes where they lie in axes
* names: that each leads to the same piece counts
* a definition of a marker or of a letter: it counts where it is used
* the colours of a heat map's cells, and what the drawing says of itself: tools/compare/figures.py
  compares them
* blanks between elements, and within a path; the order of attributes
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

# How far another version of matplotlib may put words, and with them the axes, in points.
SPACING = 2.0
LETTERS = 0.5  # and letters within their words
# How matplotlib names the groups of what belongs together.
AXES, LEGEND, WORDS = (re.compile(name + r"_\d+") for name in ("axes", "legend", "text"))
HREF = re.compile(r"(\{.*\})?href")
REFERENCE = re.compile(r"#([-\w]+)")
SAID = "title", "desc"
SQUARE = re.compile(r"M(\d+) (\d+)h1v1h-1z")
COLOR = re.compile("#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})")
CALL = re.compile(r"(\w+)\(([^()]*)\)")


Place = tuple[float, float]  # a number as a fraction of a box, and the box's extent in points


class Frame(NamedTuple):
    """What places are measured in: fractions of a box."""

    within: float  # how far they may lie apart, in points: 1/72 inch each
    corner: tuple[float, float] = (0, 0)
    extent: tuple[float, float] = (1, 1)

    def places(self, numbers: Iterable[float]) -> list[Place]:
        """Of x and y in turn."""
        return [self.place(number, turn % 2) for turn, number in enumerate(numbers)]

    def place(self, number: float, axis: int, is_extent: bool = False) -> Place:
        """Of a number on one axis: 0 across, 1 down."""
        corner = 0 if is_extent else self.corner[axis]
        return (number - corner) / self.extent[axis], self.extent[axis]


@dataclass
class Piece:
    name: str
    exact: dict[str, Any]
    where: list[Place]
    within: float
    cells: NDArray[Any] | None = None  # a heat map's colours, (rows, columns, 4)
    said: str = ""  # of itself
    letters: tuple[str, ...] = ()  # their outlines
    words: str = ""  # that the letters spell


class Drawing:
    def __init__(self, svg: bytes, points: float) -> None:
        """``points`` is how far places may lie apart that no words push.

        Raises ValueError, SyntaxError or LookupError where it is no drawing.
        """
        before, _, rest = svg.partition(b"<svg")
        # Where a style sheet or an entity may stand.
        self.around = before, rest.rpartition(b">")[2].strip()
        builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
        root = ElementTree.fromstring(svg, ElementTree.XMLParser(target=builder))
        names = [element.get("id", "") for element in root.iter()]
        self.is_matplotlibs = any(map(AXES.fullmatch, names))
        self._points = points
        self._named: dict[str, Element] = {}
        for element in root.iter():
            self._named.setdefault(element.get("id", ""), element)  # the first, as in a browser
        self.pieces: list[Piece] = []
        self._numbers: dict[Element, int] = {}  # of the pieces
        self._add(root, None, Frame(SPACING if self.is_matplotlibs else points), "", 0)
        for piece in self.pieces:
            for key, value in piece.exact.items():
                if isinstance(value, str) and "#" in value:
                    piece.exact[key] = REFERENCE.sub(self._target, value)

    def _target(self, reference: re.Match[str]) -> str:
        """By the number of its piece."""
        target = self._named.get(reference[1])
        if target is None or target not in self._numbers:
            return reference[0]
        return f"piece {self._numbers[target]}"

    def _add(
        self, element: Element, parent: Element | None, frame: Frame, words: str, depth: int
    ) -> None:
        """This element's piece, and those of what is in it; ``words`` are those it spells."""
        name = element.get("id", "") if self.is_matplotlibs else ""
        outer, is_axes = frame, bool(AXES.fullmatch(name))
        if is_axes:
            frame = self._box(element)
        elif LEGEND.fullmatch(name) or WORDS.fullmatch(name):
            frame = Frame(SPACING, frame.corner)  # not stretched with their axes
        if WORDS.fullmatch(name):
            words = " ".join(child.text or "" for child in element if not tag(child)) or " "

        is_defined = self.is_matplotlibs and parent is not None and tag(parent) == "defs"
        if is_defined and tag(element) == "path" and "id" in element.attrib:
            frame = Frame(self._points)
            if words and not len(element):
                return
        self._numbers[element] = len(self.pieces)
        self.pieces.append(self._piece(element, outer if is_axes else frame, depth, is_defined))
        if is_axes:  # what is in them says nothing of where they are
            self.pieces[-1].where += outer.places((*frame.corner, *frame.extent))
        letters = [each for each in element if words and tag(each) == "use" and not len(each)]
        if letters:
            self.pieces.append(self._spelt(letters, element, words))
        for child in element if self.pieces[-1].cells is None else ():
            if child not in letters:
                self._add(child, element, frame, words, depth + 1)

    def _box(self, axes: Element) -> Frame:
        """Their frame: a newer matplotlib makes them larger or smaller by a hair."""
        box = next((path for path in axes.iter() if tag(path) == "path"), axes)
        xs, ys = (_numbers(box.attrib["d"])[turn::2] for turn in (0, 1))
        extent = max(xs) - min(xs), max(ys) - min(ys)
        if not all(extent):
            raise ValueError("axes of no extent")
        return Frame(self._points, (min(xs), min(ys)), extent)

    def _piece(self, element: Element, frame: Frame, depth: int, is_defined: bool) -> Piece:
        kind = tag(element)
        exact: dict[str, Any] = dict(element.attrib)
        piece = Piece(f"<{kind}> {element.get('id', '')}".strip(), exact, [], frame.within)
        if is_heat_map(element):
            piece.cells = cells(element)
            piece.where += _cells_box(exact, piece.cells, frame)
        if not any(role.fullmatch(exact.get("id", "")) for role in (AXES, LEGEND, WORDS)):
            exact.pop("id", None)

        if kind == "path" and is_defined and "id" in element.attrib:
            exact.pop("d", None)
        if kind == "use" and self.is_matplotlibs:
            piece.where += self._mark(exact, frame)
        for key in ("d", "viewBox", "x", "cx", "width", "y", "cy", "height", "transform"):
            if key in exact:
                exact[key], places = _measured(key, exact[key], frame)
                piece.where += places
        text = _bare(element.text)
        if kind in SAID:
            piece.said, text = text, ""
        exact[""] = depth, element.tag, text, _bare(element.tail)
        return piece

    def _mark(self, exact: dict[str, Any], frame: Frame) -> list[Place]:
        """Where a marker's strokes come to lie."""
        used = self._used(exact)
        exact["of"], path = self._numbers.get(used), used.get("d", "")
        at = [float(exact.pop(side, 0)) for side in "xy"]
        exact["strokes"] = _strokes(path)
        return frame.places(number + at[turn % 2] for turn, number in enumerate(_numbers(path)))

    def _used(self, attributes: dict[str, Any]) -> Element:
        """What they refer to. Raises LookupError where that is nothing, ValueError where it is two."""
        (reference,) = (attributes.pop(key) for key in [*filter(HREF.fullmatch, attributes)])
        return self._named[reference.removeprefix("#")]

    def _spelt(self, letters: list[Element], group: Element, words: str) -> Piece:
        """matplotlib draws letters as outlines, and writes beside them, in a comment, what they say."""
        scale = float(dict(CALL.findall(group.get("transform", ""))).get("scale", "1").split()[0])
        outlines, places = [], []
        for letter in letters:
            said = dict(letter.attrib)
            outline = {**self._used(said).attrib, "id": ""}
            outline["d"] = _bare(outline.get("d"))
            moved = [float(said.pop(side, 0)) for side in "xy"]
            calls = said.pop("transform", "")
            for name, numbers in CALL.findall(calls):
                if name == "translate":
                    moved = [a + b for a, b in zip(moved, _numbers(numbers), strict=True)]
                    calls = calls.replace(f"translate({numbers})", "", 1)
            outlines.append(f"{outline} {said} {_bare(calls)}")
            places += Frame(LETTERS).places(scale * number for number in moved)
        return Piece(repr(words), {}, places, LETTERS, letters=tuple(outlines), words=words)


def tag(element: Element) -> str:
    # That of a comment is no string.
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _bare(text: str | None) -> str:
    return " ".join((text or "").split())


def _numbers(text: str) -> list[float]:
    return list(map(float, NUMBER.findall(text)))


def _strokes(path: str) -> str:
    return "".join(NUMBER.sub("", path).split())


def _measured(key: str, text: str, frame: Frame) -> tuple[str, list[Place]]:
    """An attribute that says where: what is exact in it, and its places."""
    if key == "transform":
        return _called(text, frame)
    if key == "viewBox":
        return NUMBER.sub("", text), Frame(frame.within).places(_numbers(text))
    if key == "d":
        strokes = _strokes(text)
        if strokes.strip("MLCQSTz"):  # others take numbers that are no x and y in turn
            return text, []
        return strokes, frame.places(_numbers(text))
    found = NUMBER.match(text)
    if not found or text.endswith("%"):
        return text, []
    axis = 0 if key in ("x", "cx", "width") else 1
    return text[found.end() :], [frame.place(float(found[0]), axis, key in ("width", "height"))]


def _called(text: str, frame: Frame) -> tuple[str, list[Place]]:
    """Of a transform, what moves is measured; what turns and stretches is exact."""
    places = []

    def without_places(call: re.Match[str]) -> str:
        numbers = call[2].replace(",", " ").split()
        moves = {"translate": 0, "rotate": 1, "matrix": 4}.get(call[1], len(numbers))
        if len(numbers) - moves == 2:
            places.extend(frame.places(map(float, numbers[moves:])))
            numbers = numbers[:moves]
        return f"{call[1]}({' '.join(numbers)})"

    return CALL.sub(without_places, text), places


def is_heat_map(element: Element) -> bool:
    """Its cells are squares, drawn on whole pixels."""
    return tag(element) == "g" and element.get("shape-rendering") == "crispEdges"


def cells(heat_map: Element) -> NDArray[Any]:
    """Their colours, (rows, columns, red, green, blue and opacity). Raises ValueError for anything else."""
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for path in heat_map:
        squares, color = path.get("d", ""), COLOR.fullmatch(path.get("fill", ""))
        is_bare = not (_bare(path.text) or _bare(path.tail) or len(path))
        if tag(path) != "path" or len(path.attrib) != 2 or color is None or not is_bare:
            raise ValueError(f"a heat map with <{tag(path)}> {path.attrib}"[:80])
        if SQUARE.sub("", squares):
            raise ValueError(f"a heat map with {SQUARE.sub('', squares):.20}")
        for column, row in SQUARE.findall(squares):
            if (place := (int(row), int(column))) in found:
                raise ValueError(f"a heat map with two cells at {place}")
            found[place] = *(int(part, 16) for part in color.groups()), 255
    if not found:
        raise ValueError("a heat map without cells")
    colors = np.zeros((*np.max([*found], axis=0) + 1, 4), int)
    colors[tuple(np.transpose([*found]))] = [*found.values()]
    return colors


def _cells_box(exact: dict[str, Any], colors: NDArray[Any], frame: Frame) -> list[Place]:
    """Of a heat map, whose cells are stretched: two of its corners."""
    matrix = CALL.fullmatch(exact.pop("transform", ""))
    if matrix is None or matrix[1] != "matrix":
        raise ValueError("a heat map that is not stretched by a matrix")
    across, *exact["slant"], down, x, y = _numbers(matrix[2])
    height, width = colors.shape[:2]
    return frame.places([x, y, x + width * across, y + height * down])
