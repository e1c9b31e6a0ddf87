"""Whether two executions show the same: one rule for the runner and for nbval.

Numbers that are not integers may differ in their last digit, as between two processors
(tools/compare/numbers.py); figures may differ by what no eye sees (tools/compare/figures.py), and so may pictures
(tools/compare/pictures.py); everything else is exact.
"""

from typing import Any

from tools.compare.figures import PNG, SVG, figure_difference
from tools.compare.numbers import DEFAULT, Tolerance, text_difference
from tools.compare.pictures import picture_fault, png_difference


def difference(stored: Any, fresh: Any, tolerance: Tolerance = DEFAULT) -> str | None:
    """The first difference between two outputs (or parts of one), or None where they agree."""
    if stored == fresh:
        return None
    if isinstance(stored, dict) and isinstance(fresh, dict):
        if stored.keys() != fresh.keys():
            return f"{sorted(fresh)} instead of {sorted(stored)}"
        if SVG in stored:
            return _figure_difference(stored, fresh, tolerance)
        if isinstance(stored.get(PNG), str) and isinstance(fresh[PNG], str):
            if fault := png_difference(stored[PNG], fresh[PNG]):
                return f"the picture: {fault}"
            fresh = fresh | {PNG: stored[PNG]}
        # What is said of a figure's PNG follows from it.
        keys = stored.keys() - ({"metadata"} if SVG in stored.get("data", {}) else {})
        found = (difference(stored[key], fresh[key], tolerance) for key in sorted(keys))
    elif isinstance(stored, list) and isinstance(fresh, list):
        if len(stored) != len(fresh):
            return f"{len(fresh)} instead of {len(stored)}"
        found = (difference(a, b, tolerance) for a, b in zip(stored, fresh, strict=True))
    elif isinstance(stored, str) and isinstance(fresh, str):
        return text_difference(stored, fresh, tolerance)
    else:
        return f"{fresh!r} instead of {stored!r}"
    return next((fault for fault in found if fault), None)


def _figure_difference(
    stored: dict[str, Any], fresh: dict[str, Any], tolerance: Tolerance
) -> str | None:
    if fault := figure_difference(stored[SVG], fresh[SVG], tolerance):
        return f"the figure: {fault}"
    if fault := picture_fault(stored.get(PNG, ""), stored[SVG]):
        return f"the figure: {fault}"
    old, new = ({kind: each[kind] for kind in each.keys() - {SVG, PNG}} for each in (stored, fresh))
    return difference(old, new, tolerance)
