"""Whether a cell that was executed in two languages showed the same in both: all but the words.

Numbers have to agree, and what is drawn: the colours of heat maps, the shapes of curves. Words take
more room in one language than in another, so that where a figure's parts lie may differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from tools.compare.drawing import cells, is_heat_map, tag
from tools.compare.figures import PNG, SVG, cell_difference
from tools.compare.numbers import DEFAULT, NUMBER, Tolerance, text_difference

STROKE = 3  # points at most, of what stands beside words


@dataclass
class Drawn:
    """Of a figure: its heat maps' colours; and its curves, from where each begins."""

    cells: list[NDArray[Any]] = field(default_factory=list)
    curves: list[NDArray[Any]] = field(default_factory=list)


def difference_but_words(one: Any, other: Any, tolerance: Tolerance = DEFAULT) -> str | None:
    """The first difference between the outputs of a cell in two languages, or None."""
    pairs = zip_longest(_parts(one), _parts(other))
    return next(filter(None, (_difference(*pair, tolerance) for pair in pairs)), None)


def _parts(shown: Any) -> Iterator[str | Drawn]:
    """Numbers and drawings, in their order."""
    if isinstance(shown, dict):
        for key in sorted(shown.keys() - {"execution_count", PNG}):
            if key == SVG:
                yield _drawn(shown[key])
            else:
                yield from _parts(shown[key])
    elif isinstance(shown, list):
        for each in shown:
            yield from _parts(each)
    else:
        yield " ".join(NUMBER.findall(str(shown)))


def _drawn(svg: str) -> Drawn:
    drawn = Drawn()
    for element in ElementTree.fromstring(svg).iter():
        said = element.attrib
        is_open = "none" in (said.get("fill"), said.get("style", "").partition(";")[0][-4:])
        if tag(element) == "path" and is_open and "z" not in said["d"]:
            points = np.array(NUMBER.findall(said["d"]), float)
            if len(points) > 2 * STROKE:
                drawn.curves.append(points.reshape(-1, 2) - points[:2])
        elif is_heat_map(element):
            drawn.cells.append(cells(element))
    return drawn


def _difference(
    one: str | Drawn | None, other: str | Drawn | None, tolerance: Tolerance
) -> str | None:
    if isinstance(one, str) and isinstance(other, str):
        return text_difference(one, other, tolerance)
    if not (isinstance(one, Drawn) and isinstance(other, Drawn)):
        return "other outputs"
    if (len(one.cells), len(one.curves)) != (len(other.cells), len(other.curves)):
        return "another drawing"
    for pair in zip(one.cells, other.cells, strict=True):
        if fault := cell_difference(*pair, tolerance):
            return fault
    for a, b in zip(one.curves, other.curves, strict=True):
        if a.shape != b.shape or np.abs(a - b).max() > tolerance.points:
            return "another curve"
    return None
