"""When two figures agree: by what they show, not by their bytes.

A figure is an SVG, a PNG and words. Two SVGs are gone through side by side, piece by piece
(tools/compare/drawing.py), and everything in them counts, with these allowances:

* a place may lie ``Tolerance.points`` off; words, and what stands by words, SPACING
* a cell of a heat map may have another colour by ``Tolerance.levels``
* newer versions of matplotlib join some letters

A PNG is held to the SVG beside it.
"""

import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.compare.drawing import Drawing, Piece
from tools.compare.numbers import Tolerance, text_difference

SVG, PNG = "image/svg+xml", "image/png"

Array = NDArray[Any]


def figure_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """The first difference between two SVGs, or None where they agree."""
    if stored == fresh:
        return None
    try:
        old, new = (Drawing(svg.encode(), tolerance.points) for svg in (stored, fresh))
        return drawing_difference(old, new, tolerance)
    # Not XML (or broken half-way), a heat map of other things than cells, a name of nothing.
    except (ValueError, SyntaxError, LookupError) as error:
        return f"damaged: {error}"


def drawing_difference(stored: Drawing, fresh: Drawing, tolerance: Tolerance) -> str | None:
    """The first difference between two drawings, or None where they agree."""
    if stored.around != fresh.around:
        return f"{fresh.around} around it instead of {stored.around}"
    old_words, new_words = ([p.words for p in each.pieces if p.words] for each in (stored, fresh))
    if old_words != new_words:
        return f"{new_words} instead of {old_words}"
    for old, new in zip(stored.pieces, fresh.pieces, strict=False):
        if fault := _piece_difference(old, new, tolerance):
            return fault
    old_count, new_count = len(stored.pieces), len(fresh.pieces)
    return f"{new_count} elements instead of {old_count}" if old_count != new_count else None


def _piece_difference(old: Piece, new: Piece, tolerance: Tolerance) -> str | None:
    if old.exact != new.exact:
        keys = [*old.exact, *new.exact]
        key = next(key for key in keys if old.exact.get(key) != new.exact.get(key))
        now, was = (piece.exact.get(key) for piece in (new, old))
        return f"{new.name} {key}: {now!r:.80} instead of {was!r:.80}".replace(" :", ":")
    if old.letters != new.letters:
        return None if _are_joined(old, new) else f"{new.name} is drawn with other letters"
    if len(old.where) != len(new.where):
        return f"{new.name} has {len(new.where)} places instead of {len(old.where)}"
    pairs = zip(old.where, new.where, strict=True)
    off = [abs(was - now) * extent for (was, extent), (now, _) in pairs]
    if not all(each <= old.within for each in off):  # nor is what is no number
        return f"{new.name} is {max(off):.2f} points off"
    if fault := text_difference(old.said, new.said, tolerance):
        return fault
    if old.cells is None or new.cells is None:
        return None
    return cell_difference(old.cells, new.cells, tolerance)


def _are_joined(old: Piece, new: Piece) -> bool:
    """Whether one has a joined letter for two or three of the other's, and all else is the same."""
    fewer, more = (Counter(each) for each in sorted((old.letters, new.letters), key=len))
    joined, apart = (fewer - more).total(), (more - fewer).total()
    pairs = len(re.findall("ff|fi|fl", old.words))
    return 0 < joined <= pairs and 2 * joined <= apart <= 3 * joined


def cell_difference(stored: Array, fresh: Array, tolerance: Tolerance) -> str | None:
    """Of the colours of two heat maps."""
    if stored.shape != fresh.shape:
        return f"{fresh.shape[:2]} cells instead of {stored.shape[:2]}"
    off = np.abs(stored - fresh).max(axis=-1) > tolerance.levels
    return f"{off.sum()} of {off.size} cells have another colour" if off.any() else None
