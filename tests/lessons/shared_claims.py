"""Computations that several lessons' claims share, and comparisons with figures and tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.lessons.cells import (
    ExecutedCell,
    array,
    assert_axes,
    assert_printed,
    read_numbers,
    softmax,
)

Array = NDArray[Any]

# Scores


def independent_scores(width: int) -> Array:
    """Return the scores of 1000 queries with ten keys each, all drawn from the normal distribution."""
    rng = np.random.default_rng(0)
    query, keys = rng.normal(size=(1000, 1, width)), rng.normal(size=(1000, 10, width))
    return (query * keys).sum(axis=-1)


def softmax_slopes(scores: Array) -> Array:
    """Return the norm of the derivative diag(w) - w w^T of each row."""
    w = softmax(scores)
    derivative = w[:, :, None] * np.eye(w.shape[1]) - w[:, :, None] * w[:, None]
    return np.linalg.norm(derivative, axis=(1, 2))


def saturation(scores: Array) -> tuple[float, float]:
    """Return the mean of the queries' largest weights, and the median of their softmax's slopes."""
    return softmax(scores).max(axis=1).mean(), np.median(softmax_slopes(scores))


# Positions


def rope_frequencies(d: int, base: float = 10000) -> Array:
    """Return the angle per position in radians, for each pair of d numbers."""
    return base ** (-2 * np.arange(d // 2) / d)


def rotate_pairs(X: Array, angles: Any, halves: bool = False) -> Array:
    """Rotate each pair of numbers by its angle; a pair is two neighbours, or two numbers d/2 apart if ``halves``."""
    d = X.shape[-1]
    first, second = (
        (slice(d // 2), slice(d // 2, d)) if halves else (slice(0, d, 2), slice(1, d, 2))
    )
    pairs = (X[..., first] + 1j * X[..., second]) * np.exp(1j * np.asarray(angles))
    rotated = np.empty((*pairs.shape[:-1], d))
    rotated[..., first], rotated[..., second] = pairs.real, pairs.imag
    return rotated


# Results of models


def accuracy(answers: Array, expected: Array) -> float:
    return float((answers == expected).mean())


def run_in_batches(run: Callable[..., Any], *inputs: Array, size: int = 50) -> Array:
    """Return the first output of ``run`` for all examples, in batches that fit into a cache."""
    batches = [[x[i : i + size] for x in inputs] for i in range(0, len(inputs[0]), size)]
    return np.concatenate([run(*batch)[0] for batch in batches])


def to_floats(nested: Any) -> Any:
    """Convert numbers of any framework, in lists or arrays, to Python's."""
    if isinstance(nested, (list, tuple)) or getattr(nested, "ndim", 0):
        return [to_floats(item) for item in nested]
    return float(nested)


def median_and_range(results: Any, axis: int = -1) -> Array:
    """Return the median, minimum and maximum over this axis (the seeds), stacked on a new last axis."""
    numbers = np.array(to_floats(results))
    return np.stack([np.median(numbers, axis), numbers.min(axis), numbers.max(axis)], axis=-1)


# Variables and figures


def assert_variables(names: Mapping[str, Any], *, atol: float = 1e-5, **expected: Any) -> None:
    """Check the values of variables by name; axes of size 1, such as a single head, may be missing."""
    for name, numbers in expected.items():
        actual = array(names[name]).squeeze()
        np.testing.assert_allclose(actual, np.squeeze(numbers), atol=atol, err_msg=name)


def assert_maps(
    cell: ExecutedCell,
    expected: Any,
    axes: tuple[str, str],
    titles: Sequence[str] = (),
    *,
    atol: float = 1e-5,
    colours: str = "Blues",
    columns: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    marks: Any = None,
) -> Array:
    """Check a figure's heat maps, the labels of their axes, and the titles of the first maps; return the maps.

    ``columns`` and ``rows`` are the names of the cells; ``marks`` is where they have frames, the same in each map.
    """
    maps = np.array([np.asarray(panel.get_array()) for panel in cell.panels])
    np.testing.assert_allclose(maps, expected, atol=atol)
    assert {panel.get_cmap().name for panel in cell.panels} == {colours}
    assert [panel.axes.get_title() for panel in cell.panels[: len(titles)]] == [*titles]
    assert_axes(cell, *axes)
    last = cell.panels[-1].axes
    if columns is not None:
        assert [label.get_text() for label in last.get_xticklabels()] == [*columns]
    if rows is not None:
        labels = cell.panels[0].axes.get_yticklabels()
        assert [label.get_text() for label in labels] == [*rows]
    if marks is not None:
        corners = {frame.get_xy() for frame in last.patches}
        assert {(y + 0.5, x + 0.5) for x, y in corners} == {*map(tuple, np.argwhere(marks))}
    return maps


def assert_curves(
    cell: ExecutedCell,
    x: Any,
    heights: Any,
    names: list[str],
    axes: tuple[str, str],
    *,
    yscale: str = "linear",
    bars: Sequence[Any] = (),
    **tolerance: float,
) -> None:
    """Check a figure's curves over the same x, the bars after them, and the names of curves and axes."""
    expected = [*((x, y) for y in heights), *bars]
    for actual, curve in zip(cell.curves, expected, strict=True):
        np.testing.assert_allclose(actual, curve, **tolerance)
    assert cell.legend == names
    (figure,) = cell.figures
    (plot,) = figure.axes
    assert (plot.get_xlabel(), plot.get_ylabel()) == axes
    assert (plot.get_xscale(), plot.get_yscale()) == ("linear", yscale)


def assert_ranges(
    cell: ExecutedCell, results: Mapping[str, Any], x: Sequence[float], xlabel: str, ylabel: str
) -> None:
    """Check a plot of medians and ranges over x; results have the shape (seeds, points)."""
    median, low, high = np.moveaxis(median_and_range([*results.values()], axis=1), -1, 0)
    for actual, heights in zip(cell.curves, median, strict=True):
        np.testing.assert_allclose(actual, (x, heights), atol=1e-6)
    (figure,) = cell.figures
    axes, *_ = figure.axes
    for bars, bottom, top in zip(axes.collections, low, high, strict=True):
        expected = [((x[i], bottom[i]), (x[i], top[i])) for i in range(len(x))]
        np.testing.assert_allclose(bars.get_segments(), expected, atol=1e-6)
    assert cell.legend == [*results]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (xlabel, ylabel)
    assert axes.get_xscale() == "log"


def assert_range_table(
    cell: ExecutedCell, results: Mapping[str, Any], first: int = 0, digits: int = 2
) -> Array:
    """Check the lines of a table, which begin with names; results have the shape (seeds, columns).

    ``first`` is the number of the table's first line among the cell's lines that begin with these names. Returns
    medians, lowest and highest values, of shape (names, columns, 3).
    """
    names = tuple(f"{name} " for name in results)
    lines = [line for line in cell.printed.splitlines() if line.startswith(names)]
    # Not every name has as many seeds.
    expected = np.stack([median_and_range(seeds, axis=0) for seeds in results.values()])
    for line, (name, seeds), row in zip(lines[first:], results.items(), expected, strict=False):
        assert line.startswith(f"{name} ")
        printed = np.abs(read_numbers(line.removeprefix(name)))  # the "-" of a range is no sign
        shown = row if len(seeds) > 1 else row[:, :1]
        assert_printed(printed.reshape(shown.shape), shown, digits)
    assert len(lines) >= first + len(results)
    return expected
