"""Compare a cell's outputs in two executions, by the same rules for the runner and for nbval.

Numbers that are not integers may differ in the last digit, as they do between two processors
(tools/compare/numbers.py). Figures (tools/compare/figures.py) and images (tools/compare/pixels.py) may
differ invisibly. Everything else must be equal.
"""

from typing import Any

from tools.compare.figures import PNG, SVG, compare_figures
from tools.compare.numbers import DEFAULT, Tolerance, compare_texts
from tools.compare.pixels import compare_png_with_svg, compare_pngs


def compare_outputs(stored: Any, fresh: Any, tolerance: Tolerance = DEFAULT) -> str | None:
    """Return the first difference between two outputs, or parts of outputs, or None."""
    if stored == fresh:
        return None
    if isinstance(stored, dict) and isinstance(fresh, dict):
        if stored.keys() != fresh.keys():
            return f"{sorted(fresh)} instead of {sorted(stored)}"
        if SVG in stored:
            return _compare_figure_data(stored, fresh, tolerance)
        if isinstance(stored.get(PNG), str) and isinstance(fresh[PNG], str):
            if difference := compare_pngs(stored[PNG], fresh[PNG]):
                return f"the image: {difference}"
            fresh = fresh | {PNG: stored[PNG]}
        # The metadata of a figure's PNG follows from the PNG.
        keys = stored.keys() - ({"metadata"} if SVG in stored.get("data", {}) else {})
        pairs = [(stored[key], fresh[key]) for key in sorted(keys)]
    elif isinstance(stored, list) and isinstance(fresh, list):
        if len(stored) != len(fresh):
            return f"{len(fresh)} instead of {len(stored)}"
        pairs = list(zip(stored, fresh, strict=True))
    elif isinstance(stored, str) and isinstance(fresh, str):
        return compare_texts(stored, fresh, tolerance)
    else:
        return f"{fresh!r} instead of {stored!r}"
    for old, new in pairs:
        if difference := compare_outputs(old, new, tolerance):
            return difference
    return None


def _compare_figure_data(
    stored: dict[str, Any], fresh: dict[str, Any], tolerance: Tolerance
) -> str | None:
    difference = compare_figures(stored[SVG], fresh[SVG], tolerance)
    difference = difference or compare_png_with_svg(stored.get(PNG, ""), stored[SVG])
    if difference:
        return f"the figure: {difference}"
    old, new = ({kind: each[kind] for kind in each.keys() - {SVG, PNG}} for each in (stored, fresh))
    return compare_outputs(old, new, tolerance)
