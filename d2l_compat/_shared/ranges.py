"""Tables and plots of results from several seeds: median and range."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, integer, message
from d2l_compat._shared.description import CHINESE
from d2l_compat._shared.fonts import write_chinese
from d2l_compat._shared.plot import COLORS, STYLES, check_names, pyplot, set_axes, set_figsize

POINTS_APART = 4  # between the range bars of neighbouring curves


def print_ranges(
    results: Mapping[str, Any], columns: Sequence[Any] = (), title: str = "", digits: int = 2
) -> None:
    """Print a table of medians and, in brackets, ranges over seeds, with a row for each name.

    A name with one seed has no range.
    ``results`` maps names to numbers, shape (seeds,) or (seeds, columns). ``columns`` are the columns' headings,
    ``title`` is that of the names; without headings there is no line of them. ``digits`` is the number of decimals.

    Raises ValueError unless each name has the same number of columns, and a heading for each of them if any.
    """
    runs_by_name = _parse_results(results)
    check_instance("title", title, str, "a string")
    digits = integer("digits", digits, minimum=0)
    rows = []
    for runs in runs_by_name.values():
        summaries = zip(np.median(runs, axis=0), runs.min(axis=0), runs.max(axis=0), strict=True)
        cells = []
        for median, low, high in summaries:
            spread = f" ({low:.{digits}f}-{high:.{digits}f})"
            if len(runs) == 1:
                spread = " " * len(spread)  # the number stands below the medians
            cells.append(f"{median:.{digits}f}{spread}")
        rows.append(cells)
    lines = []
    if columns:
        check_names("columns", columns, len(rows[0]), "columns of results")
        lines.append([title, *map(str, columns)])
    lines += [[name, *cells] for name, cells in zip(runs_by_name, rows, strict=True)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    for name, *texts in lines:
        line = name + " " * (widths[0] - _width(name))
        for cell, width in zip(texts, widths[1:], strict=True):
            line += "  " + " " * (width - _width(cell)) + cell
        print(line.rstrip())


def plot_ranges(
    x: Any,
    results: Mapping[str, Any],
    xlabel: str | None = None,
    ylabel: str | None = None,
    ylim: Any = None,
    xscale: str = "log",
    figsize: tuple[float, float] = (5, 3.5),
) -> None:
    """Plot medians over seeds as curves, and ranges as bars side by side.

    ``x`` has shape (points,), and each of its numbers gets a tick. ``results`` maps the curves' names to numbers,
    shape (seeds, points). ``figsize`` is (width, height) in inches.

    Raises ValueError unless each name has a number for every point.
    """
    runs_by_name = _parse_results(results)
    xs = to_numpy("x", x)
    count = next(iter(runs_by_name.values())).shape[1]
    if xs.shape != (count,):
        raise ValueError(message("x", f"shape {xs.shape}", f"shape ({count},), as results has"))

    set_figsize(figsize)
    axes = pyplot().gca()
    axes.cla()
    set_axes(axes, xlabel, ylabel, _limits(xs, xscale), ylim, xscale, "linear", None)
    axes.set_xticks(xs, [f"{number:g}" for number in xs])
    axes.set_xticks([], minor=True)
    for i, runs in enumerate(runs_by_name.values()):
        shift = POINTS_APART * (i - (len(runs_by_name) - 1) / 2)
        color, style = COLORS[i % len(COLORS)], STYLES[i % len(STYLES)]
        shifted = {"color": color, "transform": _shift_right(axes, shift)}
        axes.plot(xs, np.median(runs, axis=0), linestyle=style, **shifted)
        axes.vlines(xs, runs.min(axis=0), runs.max(axis=0), **shifted)
    # Outside the axes a legend hides nothing, whatever the numbers are.
    axes.legend(axes.get_lines(), runs_by_name, loc="center left", bbox_to_anchor=(1, 0.5))
    write_chinese(axes.figure)


def _limits(xs: NDArray[Any], xscale: str) -> tuple[float, float]:
    """Return the ends of an axis with a margin for the shifted bars."""
    if xscale == "log":
        factor = (xs.max() / xs.min()) ** 0.08 if len(xs) > 1 else 1.1
        return xs.min() / factor, xs.max() * factor
    margin = 0.08 * (xs.max() - xs.min()) if len(xs) > 1 else 0.1
    return xs.min() - margin, xs.max() + margin


def _shift_right(axes: Any, points: float) -> Any:
    """Return the transform of data that is drawn some points, 1/72 inch each, to the right."""
    from matplotlib.transforms import offset_copy

    return offset_copy(axes.transData, axes.figure, x=points, units="points")


def _parse_results(results: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the numbers of each name, (seeds, columns)."""
    need = "a dictionary of names and their numbers, at least one"
    check_instance("results", results, Mapping, need)
    if not results:
        raise ValueError(message("results", "none", need))
    runs_by_name = {}
    for name, numbers in results.items():
        runs = to_numpy(f"results[{name!r}]", numbers)
        if runs.ndim == 1:
            runs = runs[:, None]
        if runs.ndim != 2 or not runs.size:
            got = f"shape {runs.shape}"
            raise ValueError(
                message(f"results[{name!r}]", got, "shape (seeds,) or (seeds, columns)")
            )
        runs_by_name[name] = runs
    counts = {name: runs.shape[1] for name, runs in runs_by_name.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(message("results", f"columns {counts}", "the same number for each name"))
    return runs_by_name


def _width(text: str) -> int:
    """Return how many columns a text takes in a monospaced font: a Chinese character takes two."""
    return len(text) + len(CHINESE.findall(text))
