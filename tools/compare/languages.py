"""Compare a cell's outputs in two languages, which may differ in their words.

Numbers have to agree, and so do the colours of heat maps and the shapes of curves. The positions of a figure's
parts may differ, since words are longer in one language than in another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from tools.compare.drawing import get_tag, is_heat_map, read_heat_map
from tools.compare.figures import PNG, SVG, compare_heat_maps
from tools.compare.numbers import DEFAULT, NUMBER, Tolerance, compare_texts

MAX_STROKE = 3  # points in a stroke beside words, such as a legend's; a path with more is a curve


@dataclass
class Figure:
    """The colours of a figure's heat maps, and its curves, each relative to its first point."""

    heat_maps: list[NDArray[Any]] = field(default_factory=list)
    curves: list[NDArray[Any]] = field(default_factory=list)


def compare_languages(one: Any, other: Any, tolerance: Tolerance = DEFAULT) -> str | None:
    """Return the first difference between a cell's outputs in two languages, or None."""
    for a, b in zip_longest(_find_parts(one), _find_parts(other)):
        if difference := _compare_parts(a, b, tolerance):
            return difference
    return None


def _find_parts(output: Any) -> Iterator[str | Figure]:
    """Yield the numbers and figures of an output, or of a part of one, in order."""
    if isinstance(output, dict):
        for key in sorted(output.keys() - {"execution_count", PNG}):
            if key == SVG:
                yield _parse_figure(output[key])
            else:
                yield from _find_parts(output[key])
    elif isinstance(output, list):
        for part in output:
            yield from _find_parts(part)
    else:
        yield " ".join(NUMBER.findall(str(output)))


def _parse_figure(svg: str) -> Figure:
    figure = Figure()
    for element in ElementTree.fromstring(svg).iter():
        attributes = element.attrib
        fill_in_style = attributes.get("style", "").partition(";")[0]
        is_unfilled = attributes.get("fill") == "none" or fill_in_style.endswith("none")
        if get_tag(element) == "path" and is_unfilled and "z" not in attributes["d"]:
            points = np.array(NUMBER.findall(attributes["d"]), float)
            if len(points) > 2 * MAX_STROKE:
                figure.curves.append(points.reshape(-1, 2) - points[:2])
        elif is_heat_map(element):
            figure.heat_maps.append(read_heat_map(element))
    return figure


def _compare_parts(
    one: str | Figure | None, other: str | Figure | None, tolerance: Tolerance
) -> str | None:
    if isinstance(one, str) and isinstance(other, str):
        return compare_texts(one, other, tolerance)
    if not (isinstance(one, Figure) and isinstance(other, Figure)):
        return "other outputs"
    if (len(one.heat_maps), len(one.curves)) != (len(other.heat_maps), len(other.curves)):
        return "another drawing"
    for heat_maps in zip(one.heat_maps, other.heat_maps, strict=True):
        if difference := compare_heat_maps(*heat_maps, tolerance):
            return difference
    for a, b in zip(one.curves, other.curves, strict=True):
        if a.shape != b.shape or np.abs(a - b).max() > tolerance.points:
            return "another curve"
    return None
