"""Tests of tables and plots of medians and ranges."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from d2l_compat._shared.description import describe
from d2l_compat._shared.ranges import plot_ranges, print_ranges

RESULTS = {"one": [[0.5, 1], [0.25, 0.75], [0.125, 1]], "兩個": np.array([[1, 0], [0, 0.5]])}


@pytest.fixture(autouse=True)
def fresh_figures() -> Iterator[None]:
    with mpl.rc_context():
        yield
    plt.close("all")


def test_table_has_medians_and_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    """Test the table; a Chinese character is as wide as two others. The median of two numbers is their mean."""
    print_ranges(RESULTS, [16, "far"], "entries")
    assert capsys.readouterr().out == (
        "entries                16               far\n"
        "one      0.25 (0.12-0.50)  1.00 (0.75-1.00)\n"
        "兩個     0.50 (0.00-1.00)  0.25 (0.00-0.50)\n"
    )


def test_table_may_have_one_column_without_heading(capsys: pytest.CaptureFixture[str]) -> None:
    print_ranges({"a": [1, 2, 4], "bcd": [10, 20, 30]}, digits=3)
    assert capsys.readouterr().out == "a       2.000 (1.000-4.000)\nbcd  20.000 (10.000-30.000)\n"


def test_one_seed_has_no_range(capsys: pytest.CaptureFixture[str]) -> None:
    print_ranges({"two": [1, 3], "a": [2]})
    assert capsys.readouterr().out == "two  2.00 (1.00-3.00)\na    2.00\n"


def test_plot_has_medians_and_bars() -> None:
    plot_ranges([16, 64], RESULTS, "entries", "share", ylim=(0, 1))
    axes = plt.gca()
    curves = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in axes.get_lines()]
    assert curves == [([16, 64], [0.25, 1]), ([16, 64], [0.5, 0.25])]
    bars = [segment.tolist() for group in axes.collections for segment in group.get_segments()]
    assert bars == [
        [[16, 0.125], [16, 0.5]],
        [[64, 0.75], [64, 1]],
        [[16, 0], [16, 1]],
        [[64, 0], [64, 0.5]],
    ]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "兩個"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["16", "64"]
    assert (axes.get_xscale(), axes.get_xlabel(), axes.get_ylabel()) == ("log", "entries", "share")
    assert "one：2 個點，從 (16, 0.25) 到 (64, 1.00)" in describe(plt.gcf())


@pytest.mark.parametrize("xscale", ["log", "linear"])
def test_bars_are_side_by_side_within_axes(xscale: str) -> None:
    plot_ranges([16, 64], {name: np.ones((2, 2)) for name in "abcdef"}, xscale=xscale)
    axes = plt.gca()
    axes.figure.draw_without_rendering()
    # In pixels; each curve is shifted together with its bars.
    bars = [group.get_transform().transform((16, 1))[0] for group in axes.collections]
    curves = [line.get_transform().transform((16, 1))[0] for line in axes.get_lines()]
    np.testing.assert_allclose(bars, curves)
    np.testing.assert_allclose(np.diff(bars), 4 / 72 * axes.figure.dpi)
    assert axes.bbox.x0 < bars[0]
    assert axes.collections[-1].get_transform().transform((64, 1))[0] < axes.bbox.x1
    colors = {line.get_color() for line in axes.get_lines()}
    assert len(colors) == 6


# fmt: off
BAD_CALLS: dict[str, Callable[[], Any]] = {
    "results['b']: got shape (1, 1, 1); need shape (seeds,) or (seeds, columns)":
        lambda: print_ranges({"a": [1], "b": [[[1]]]}),
    "results['a']: got shape (0, 1); need shape (seeds,) or (seeds, columns)":
        lambda: print_ranges({"a": []}),
    "results['a']: got rows of unequal length; need rows of one length":
        lambda: print_ranges({"a": [[1], [2, 3]]}),
    "results: got columns {'a': 1, 'b': 2}; need the same number for each name":
        lambda: print_ranges({"a": [1, 2], "b": [[1, 2]]}),
    "columns: got 1 for 2 columns of results; need one for each":
        lambda: print_ranges(RESULTS, [16]),
    "x: got shape (3,); need shape (2,), as results has": lambda: plot_ranges([1, 2, 3], RESULTS),
}
# fmt: on


@pytest.mark.parametrize(("message", "call"), BAD_CALLS.items(), ids=BAD_CALLS)
def test_bad_calls_raise_clear_errors(message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=re.escape(message) + "$"):
        call()
