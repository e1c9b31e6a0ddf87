"""When two figures agree: by what they show, not by their bytes.

Two drawings are gone through side by side, piece by piece (tools/compare/drawing.py), and
everything in them counts, with these allowances:

* a place may lie ``Tolerance.points`` off; words, and what stands by words, SPACING
* a cell of a heat map may have another colour by ``Tolerance.levels``; a colour bar by a step more
* newer versions of matplotlib join some letters
"""

import re
from base64 import b64decode
from collections import Counter
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tools.compare.drawing import PICTURE, Drawing, Piece
from tools.compare.numbers import Tolerance

FIGURE = re.compile(r'<img src="data:image/svg\+xml;base64,([^"]*)" alt="([^"]*)">')

Array = NDArray[Any]


def figure_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """The first difference between two SVGs, given in base64, or None where they agree."""
    if stored == fresh:
        return None
    try:
        old, new = (
            Drawing(b64decode(svg, validate=True), tolerance.points) for svg in (stored, fresh)
        )
        return drawing_difference(old, new, tolerance)
    # Not base64, not a picture, not XML (or a picture broken half-way), a name of nothing.
    except (ValueError, OSError, SyntaxError, LookupError) as error:
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
    if not old.cells and not new.cells:
        return None
    return (_bar_difference if old.is_bar else cell_difference)(old.cells, new.cells, tolerance)


def _are_joined(old: Piece, new: Piece) -> bool:
    """Whether one has a joined letter for two or three of the other's, and all else is the same."""
    fewer, more = (Counter(each) for each in sorted((old.letters, new.letters), key=len))
    joined, apart = (fewer - more).total(), (more - fewer).total()
    pairs = len(re.findall("ff|fi|fl", old.words))
    return 0 < joined <= pairs and 2 * joined <= apart <= 3 * joined


def cell_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """Of two heat maps, a pixel a cell."""
    old, new = _cells(stored), _cells(fresh)
    if old.shape != new.shape:
        return f"a picture of {new.shape[:2]} cells instead of {old.shape[:2]}"
    off = np.abs(old - new).max(axis=-1) > tolerance.levels
    return f"{off.sum()} of {off.size} cells have another colour" if off.any() else None


def _bar_difference(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """Of two colour bars, of as many steps as there was room for."""
    pair = _cells(stored), _cells(fresh)
    for one, other in (pair, pair[::-1]):
        rows, columns = (
            np.linspace(0, there - 1, here).round().astype(int)
            for here, there in zip(one.shape[:2], other.shape[:2], strict=True)
        )
        # A step more for each end, and one for the steps between.
        if np.abs(one - other[rows][:, columns]).max() > 3 * tolerance.levels:
            return "the colour bar has other colours"
    return None


def _cells(picture: str) -> Array:
    data = b64decode("".join(picture.removeprefix(PICTURE).split()), validate=True)
    return np.asarray(Image.open(BytesIO(data)).convert("RGBA"), int)
