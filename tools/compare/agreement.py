"""Whether two executions show the same: one rule for the runner and for nbval.

Numbers that are not integers may differ in their last digit, as between two processors
(tools/compare/numbers.py); figures may differ by what no eye sees (tools/compare/figures.py); everything else
is exact.
"""

from typing import Any

from tools.compare.figures import FIGURE, figure_difference
from tools.compare.numbers import DEFAULT, Tolerance, text_difference


def difference(stored: Any, fresh: Any, tolerance: Tolerance = DEFAULT) -> str | None:
    """The first difference between two outputs (or parts of one), or None where they agree."""
    if stored == fresh:
        return None
    if isinstance(stored, dict) and isinstance(fresh, dict):
        if stored.keys() != fresh.keys():
            return f"{sorted(fresh)} instead of {sorted(stored)}"
        found = (difference(stored[key], fresh[key], tolerance) for key in stored)
    elif isinstance(stored, list) and isinstance(fresh, list):
        if len(stored) != len(fresh):
            return f"{len(fresh)} instead of {len(stored)}"
        found = (difference(a, b, tolerance) for a, b in zip(stored, fresh, strict=True))
    elif isinstance(stored, str) and isinstance(fresh, str):
        old, new = FIGURE.fullmatch(stored), FIGURE.fullmatch(fresh)
        if old is None or new is None:
            return text_difference(stored, fresh, tolerance)
        if fault := figure_difference(old[1], new[1], tolerance):
            return f"the figure: {fault}"
        return text_difference(old[2], new[2], tolerance)
    else:
        return f"{fresh!r} instead of {stored!r}"
    return next((fault for fault in found if fault), None)
