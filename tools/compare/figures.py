"""Compare two figures by what they show, not by their bytes.

A figure consists of an SVG, a PNG and words. Two SVGs are compared element by element
(tools/compare/drawing.py). Everything in them must be equal, with these tolerances:

* positions may differ by ``Tolerance.points``; those of words, and of shapes placed beside them, by SPACING
* the colour of a heat map's cell may differ by ``Tolerance.levels``
* ligatures may replace pairs of letters, as newer versions of matplotlib draw them

A PNG is compared with the SVG beside it.
"""

import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.compare.drawing import Drawing, Piece
from tools.compare.numbers import Tolerance, compare_texts

SVG, PNG = "image/svg+xml", "image/png"

Array = NDArray[Any]


def compare_figures(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """Return the first difference between two SVGs, or None."""
    if stored == fresh:
        return None
    try:
        old, new = (Drawing(svg.encode(), tolerance.points) for svg in (stored, fresh))
        return compare_drawings(old, new, tolerance)
    # Invalid or incomplete XML, an invalid heat map, or a reference to an element that does not exist.
    except (ValueError, SyntaxError, LookupError) as error:
        return f"damaged: {error}"


def compare_drawings(stored: Drawing, fresh: Drawing, tolerance: Tolerance) -> str | None:
    """Return the first difference between two drawings, or None."""
    if stored.surroundings != fresh.surroundings:
        return f"{fresh.surroundings} around it instead of {stored.surroundings}"
    old_words = [piece.words for piece in stored.pieces if piece.words]
    new_words = [piece.words for piece in fresh.pieces if piece.words]
    if old_words != new_words:
        return f"{new_words} instead of {old_words}"
    for old, new in zip(stored.pieces, fresh.pieces, strict=False):
        if difference := _compare_pieces(old, new, tolerance):
            return difference
    old_count, new_count = len(stored.pieces), len(fresh.pieces)
    return f"{new_count} elements instead of {old_count}" if old_count != new_count else None


def _compare_pieces(old: Piece, new: Piece, tolerance: Tolerance) -> str | None:
    if old.exact != new.exact:
        keys = [*old.exact, *new.exact]
        key = next(key for key in keys if old.exact.get(key) != new.exact.get(key))
        new_value, old_value = new.exact.get(key), old.exact.get(key)
        message = f"{new.name} {key}: {new_value!r:.80} instead of {old_value!r:.80}"
        return message.replace(" :", ":")  # if the key is ""
    if old.letters != new.letters:
        return None if _differ_by_ligatures(old, new) else f"{new.name} is drawn with other letters"
    if len(old.positions) != len(new.positions):
        return f"{new.name} has {len(new.positions)} positions instead of {len(old.positions)}"
    pairs = zip(old.positions, new.positions, strict=True)
    distances = [abs(before - after) * extent for (before, extent), (after, _) in pairs]
    if not all(distance <= old.tolerance for distance in distances):  # also true for NaN
        return f"{new.name} is {max(distances):.2f} points off"
    if difference := compare_texts(old.description, new.description, tolerance):
        return difference
    if old.colors is None or new.colors is None:
        return None
    return compare_heat_maps(old.colors, new.colors, tolerance)


def _differ_by_ligatures(old: Piece, new: Piece) -> bool:
    """Check whether two pieces are equal except that one has ligatures for letters of the other."""
    fewer, more = (Counter(each) for each in sorted((old.letters, new.letters), key=len))
    ligatures = (fewer - more).total()
    letters = (more - fewer).total()
    pairs = len(re.findall("ff|fi|fl", old.words))
    return 0 < ligatures <= pairs and 2 * ligatures <= letters <= 3 * ligatures


def compare_heat_maps(stored: Array, fresh: Array, tolerance: Tolerance) -> str | None:
    """Return the difference between the colours of two heat maps, or None."""
    if stored.shape != fresh.shape:
        return f"{fresh.shape[:2]} cells instead of {stored.shape[:2]}"
    differs = np.abs(stored - fresh).max(axis=-1) > tolerance.levels
    return f"{differs.sum()} of {differs.size} cells have another colour" if differs.any() else None
