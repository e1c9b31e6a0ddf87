"""Tests of line plots, heat maps and their text alternatives."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from d2l_compat._shared.description import describe
from d2l_compat._shared.fonts import FAMILY, find_fallback_fonts
from d2l_compat._shared.plot import as_png, as_svg, plot, set_figsize, show_heatmaps
from d2l_compat._shared.plt import plt as d2l_plt
from tests.shim.each.rules import matches_message
from tools.compare.drawing import is_heat_map, read_heat_map
from tools.compare.pixels import render


@pytest.fixture(autouse=True)
def fresh_figures() -> Iterator[None]:
    with mpl.rc_context():
        yield
    plt.close("all")


def curve_points() -> list[tuple[list[float], list[float]]]:
    """Return the coordinates of each curve in the current axes."""
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in plt.gca().get_lines()]


# Line plots

X, Y = [1.0, 2.0, 3.0], [[1.0, 4.0, 9.0], [2.0, 0.0, -2.0]]
TWO_CURVES = {
    "lists": Y,
    "tuples": tuple(map(tuple, Y)),
    "a matrix": np.array(Y),
    "a list of vectors": list(np.array(Y)),
    "lists of scalars": [[np.array(y) for y in curve] for curve in Y],
    "a list of rows": list(np.array(Y)[:, None]),
    "float16": np.array(Y, "float16"),
    "integers": np.array(Y, int),
}


@pytest.mark.parametrize("curves", TWO_CURVES.values(), ids=TWO_CURVES)
def test_curves_may_have_many_forms(curves: Any) -> None:
    plot(X, curves)
    assert curve_points() == [(X, Y[0]), (X, Y[1])]


def test_column_in_list_is_curve() -> None:
    x = np.arange(4.0)
    plot(x, [x**2, (2 * x)[:, None]])
    assert [line.get_ydata().tolist() for line in plt.gca().lines] == [[0, 1, 4, 9], [0, 2, 4, 6]]


def test_one_x_serves_every_curve() -> None:
    plot(np.array(X), Y * 3)
    assert [x for x, _ in curve_points()] == [X] * 6


def test_curves_may_have_own_x_and_length() -> None:
    plot([[0, 1], [5, 6, 7]], [[3, 4], np.array([8, 9, 10])])
    assert curve_points() == [([0, 1], [3, 4]), ([5, 6, 7], [8, 9, 10])]


@pytest.mark.parametrize("curves", [Y[:1], Y], ids=["one curve", "two curves"])
def test_single_argument_is_plotted_against_index(curves: list[list[float]]) -> None:
    plot(curves)
    assert curve_points() == [([0, 1, 2], curve) for curve in curves]


def test_first_six_curves_differ_in_colour_and_style() -> None:
    plot(X, [X] * 8)
    lines = plt.gca().get_lines()
    colors = [line.get_color() for line in lines]
    dashes = [str(line._dash_pattern) for line in lines]  # more precise than the style's name
    assert colors[:6] == ["#0072B2", "#D55E00", "#009E73", "#AA4499", "#E69F00", "#555555"]
    assert len(set(colors[:6])) == len(set(dashes[:6])) == 6
    assert (colors[6:], dashes[6:]) == (colors[:2], dashes[:2])


def test_format_strings_replace_styles_and_repeat() -> None:
    plot(X, [X] * 3, fmts=["m--", "g:"])
    assert [(line.get_color(), line.get_linestyle()) for line in plt.gca().get_lines()] == [
        ("m", "--"),
        ("g", ":"),
        ("m", "--"),
    ]


def test_axes_get_labels_limits_and_scales() -> None:
    plot(X, Y, "x", "f(x)", ["a", "b"], (0, 4), (-3, 10), "symlog", "symlog", figsize=(6, 2.5))
    axes = plt.gca()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "f(x)")
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 4), (-3, 10))
    assert (axes.get_xscale(), axes.get_yscale()) == ("symlog", "symlog")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert tuple(axes.figure.get_size_inches()) == (6, 2.5)


def test_other_settings_are_matplotlib_defaults() -> None:
    plot(X, Y)
    axes = plt.gca()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("", "")
    assert axes.get_legend() is None
    assert axes.get_xlim()[0] < 1
    assert axes.get_xlim()[1] > 3
    assert axes.get_xscale() == "linear"


def test_existing_axes_are_cleared() -> None:
    _, (left, right) = plt.subplots(1, 2)
    for curve in Y:
        plot(X, curve, axes=left)
    assert [list(line.get_ydata()) for line in left.get_lines()] == [Y[1]]
    assert not right.get_lines()


def test_set_figsize_applies_to_next_figures() -> None:
    set_figsize((5, 1))
    assert tuple(plt.figure().get_size_inches()) == (5, 1)


# Heat maps


def images() -> list[Any]:
    return [image for axes in plt.gcf().axes for image in axes.get_images()]


def test_heat_maps_keep_their_grid() -> None:
    grid = np.random.default_rng(0).random((2, 3, 4, 5))
    show_heatmaps(grid, "Keys", "Queries", titles=["a", "b", "c"], figsize=(6, 4), cmap="Blues")
    got = np.array([image.get_array() for image in images()])
    np.testing.assert_array_equal(got, grid.reshape(6, 4, 5))
    panels = [image.axes for image in images()]
    assert [axes.get_title() for axes in panels] == ["a", "b", "c"] * 2
    assert [axes.get_xlabel() for axes in panels] == [""] * 3 + ["Keys"] * 3
    assert [axes.get_ylabel() for axes in panels] == ["Queries", "", ""] * 2
    assert tuple(plt.gcf().get_size_inches()) == (6, 4)
    assert {image.get_cmap().name for image in images()} == {"Blues"}


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [
        pytest.param(0.25, 0.75, (0.25, 0.75), id="positive"),
        pytest.param(-3, -1, (-3, -1), id="negative"),
        pytest.param(0, 2, (0, 2), id="from zero"),
        pytest.param(0, 0.9999999, (0, 1), id="a saturated softmax"),
        pytest.param(-1, 3, (-3, 3), id="both signs, mostly positive"),
        pytest.param(-3, 1, (-3, 3), id="both signs, mostly negative"),
    ],
)
def test_heat_maps_share_scale_symmetric_for_mixed_signs(
    low: float, high: float, scale: tuple[float, float]
) -> None:
    grid = np.full((1, 2, 2, 2), (low + high) / 2)
    grid[0, 0, 0, 0], grid[0, 1, 1, 1] = low, high
    show_heatmaps(grid, "Keys", "Queries")
    assert [image.get_clim() for image in images()] == [scale, scale]


def test_nan_does_not_affect_scale() -> None:
    show_heatmaps([[[[np.nan, 1.0], [2.0, 3.0]]]], "Keys", "Queries")
    assert images()[0].get_clim() == (1, 3)


def test_heat_map_has_defaults() -> None:
    show_heatmaps(np.eye(3)[None, None], "Keys", "Queries")
    (image,) = images()
    assert image.get_cmap().name == "Reds"
    assert image.get_interpolation() == "none"
    assert image.colorbar is not None
    assert len(plt.gcf().axes) == 2


def test_cells_may_be_named() -> None:
    grid = np.ones((2, 2, 2, 3))
    show_heatmaps(grid, "Keys", "Queries", xticklabels=["a\n1", "b\n2", "c\n3"], yticklabels="xy")
    panels = [image.axes for image in images()]
    for axes in panels[2:]:  # below the last row of the grid
        labels = axes.xaxis.get_ticklabels()
        assert [label.get_text() for label in labels if label.get_visible()] == [
            "a\n1",
            "b\n2",
            "c\n3",
        ]
    for axes in panels[::2]:  # beside the first column
        labels = axes.yaxis.get_ticklabels()
        assert [label.get_text() for label in labels if label.get_visible()] == ["x", "y"]
    np.testing.assert_array_equal(panels[3].get_xticks(), [0, 1, 2])


@pytest.mark.parametrize(
    ("marks", "cells"),
    [
        pytest.param([[1, 0, 0], [0, 0, 1]], [{(0, 0), (1, 2)}] * 2, id="every map"),
        pytest.param([True, False, False], [{(0, 0), (1, 0)}] * 2, id="every row"),
        pytest.param(np.eye(2)[:, :, None] * [0, 0, 1], [{(0, 2)}, {(1, 2)}], id="each column"),
    ],
)
def test_marked_cells_have_frames(marks: Any, cells: list[set[tuple[int, int]]]) -> None:
    show_heatmaps(np.ones((1, 2, 2, 3)), "Keys", "Queries", marks=marks)
    for image, want in zip(images(), cells, strict=True):
        # In data coordinates, a cell's centre is its column and row.
        boxes = [patch.get_bbox() for patch in image.axes.patches]
        assert {(box.y0 + 0.5, box.x0 + 0.5) for box in boxes} == want
        assert {(box.width, box.height) for box in boxes} == {(1, 1)}
        # White below black, so that a frame is visible on any colour.
        widths = {patch.get_edgecolor()[:3]: patch.get_linewidth() for patch in image.axes.patches}
        assert widths[1, 1, 1] > widths[0, 0, 0]


# The text alternative


def test_line_plot_description_lists_curves() -> None:
    plot(X, Y, "row", "value", ["square", "fall"])
    assert describe(plt.gcf()) == (
        "Line plot of value against row. "
        "square: 3 points from (1, 1.00) to (3, 9.00), values from 1.00 to 9.00. "
        "fall: 3 points from (1, 2.00) to (3, -2.00), values from -2.00 to 2.00."
    )


def test_line_plot_without_names_is_described() -> None:
    plot(Y[0])
    assert describe(plt.gcf()) == (
        "Line plot of values against index. "
        "Curve: 3 points from (0, 1.00) to (2, 9.00), values from 1.00 to 9.00."
    )


def test_heat_maps_are_described_with_shared_labels() -> None:
    grid = np.array([[[[0, 1, 2], [0, 3, 4]], [[-1, 0, 0], [1, 1, 1]]]])
    show_heatmaps(grid, "Keys", "Queries", titles=["Head 1", "Head 2"])
    size = "Heat map, 2 rows (Queries) by 3 columns (Keys)"
    assert describe(plt.gcf()) == (
        f'"Head 1": {size}, values from 0.00 to 4.00, 2 of 6 zero; colours Reds from -4.00 to 4.00.'
        f' "Head 2": {size}, values from -1.00 to 1.00, 2 of 6 zero; '
        "colours Reds from -4.00 to 4.00."
    )


def test_frames_are_described() -> None:
    grid = np.array([[[[0, 1, 2], [0, 3, np.nan]], [[np.nan, 4, 5], [1, 0, 0]]]])
    marks = [[0, 0, 1], [1, 1, 0]]
    show_heatmaps(grid, "Keys", "Queries", marks=marks)
    frames = "3 cells framed; {} of 2 rows have their largest value in one."
    first, second = describe(plt.gcf()).split(" Heat map")
    assert first.endswith(frames.format(2))
    assert second.endswith(frames.format(2))
    plt.close("all")
    show_heatmaps(-grid, "鍵", "查詢", marks=marks)
    assert describe(plt.gcf()).endswith("加框的有 3 格；最大值在框內的有 1 列（共 2 列）。")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiny_numbers_are_described_as_zero(dtype: Any) -> None:
    smallest = np.finfo(np.float32).smallest_normal
    show_heatmaps(np.array([[[[0, 1e-40, -1e-40, smallest, -smallest, 1]]]], dtype), "K", "Q")
    assert "3 of 6 zero" in describe(plt.gcf())


def test_plt_is_pyplot_with_old_stem_argument() -> None:
    got = d2l_plt.stem([1, 2, 3], [0.1, 0.2, 0.7], use_line_collection=True)
    want = plt.figure().gca().stem([1, 2, 3], [0.1, 0.2, 0.7])
    for ours, theirs in zip(
        got.stemlines.get_segments(), want.stemlines.get_segments(), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert len(got.stemlines.get_segments()) == 3
    assert d2l_plt.gcf() is plt.gcf()
    assert d2l_plt.figure is plt.figure
    assert dir(d2l_plt) == dir(plt)
    with pytest.raises(TypeError, match="whatever"):
        d2l_plt.stem([1], [2], whatever=True)


def test_curves_are_described_by_their_names() -> None:
    plot([[], [1, 2], [1, 2]], [[], [3, 4], [5, 6]], legend=["a", "b"])
    text = describe(plt.gcf())
    assert "a: no points. b: 2 points from (1, 3.00)" in text
    assert text.endswith("Curve: 2 points from (1, 5.00) to (2, 6.00), values from 5.00 to 6.00.")


def test_extent_ignores_gaps() -> None:
    plot([0.0, np.nan, 2.0])
    assert describe(plt.gcf()).endswith("to (2, 2.00), values from 0.00 to 2.00.")


@pytest.mark.parametrize("x", [["one", "two"], [date(2017, 6, 12), date(2018, 10, 11)]])
def test_figure_of_other_code_is_described(x: list) -> None:
    plt.plot(x, [1, 2])
    assert "2 points" in describe(plt.gcf())


def test_empty_figure_is_described() -> None:
    assert describe(plt.figure()) == "Empty figure."


# SVG and PNG


def draw_lines() -> None:
    plot(X, Y, 'a "quoted" <label>', "x & y", ["a", "b"])


def draw_heatmaps() -> None:
    show_heatmaps(np.eye(3)[None, None], 'a "quoted" <label>', "x & y")


DRAWINGS = [draw_lines, draw_heatmaps]


@pytest.mark.parametrize("draw", DRAWINGS)
def test_svg_has_description(draw: Any) -> None:
    draw()
    svg = ElementTree.fromstring(as_svg(plt.gcf()))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert svg.get("role") == "img"
    assert svg.findtext("{*}desc") == describe(plt.gcf())
    assert "x & y" in svg.findtext("{*}desc")
    assert svg.findtext("{*}title") in ('Line plot of x & y against a "quoted" <label>', "Heat map")


@pytest.mark.parametrize("draw", DRAWINGS)
def test_same_figure_gives_same_bytes(draw: Any) -> None:
    svgs = set()
    for _ in range(2):
        draw()
        svgs.add(as_svg(plt.gcf()))
        plt.close("all")
    assert len(svgs) == 1


def test_svg_has_no_date_or_version() -> None:
    draw_lines()
    assert not re.search(r"metadata|dc:|Matplotlib", as_svg(plt.gcf()))


@pytest.mark.parametrize("draw", DRAWINGS)
def test_svg_and_png_show_same_image(draw: Any) -> None:
    draw()
    png, metadata = as_png(plt.gcf())
    pixels = np.asarray(Image.open(BytesIO(png)).convert("L"), float)
    svg_pixels = render(as_svg(plt.gcf())).mean(axis=-1)
    assert metadata == {"width": pixels.shape[1] // 2, "alt": describe(plt.gcf())}
    assert np.abs(np.subtract(pixels.shape, svg_pixels.shape)).max() <= 2
    # Lines of the two renderers may differ by half a pixel, so blocks are compared.
    assert np.abs(block_means(pixels) - block_means(svg_pixels)).max() < 25


def block_means(pixels: np.ndarray, side: int = 20) -> np.ndarray:
    """Return the means of square blocks of pixels."""
    height, width = (length // side for length in pixels.shape)
    return pixels[: height * side, : width * side].reshape(height, side, width, side).mean((1, 3))


def test_heat_map_cells_are_coloured_squares() -> None:
    numbers = np.array([[0.0, 0.25, np.nan], [1, 0.25, 0.5]])
    show_heatmaps(numbers[None, None], "Keys", "Queries", cmap="Blues")
    svg = as_svg(plt.gcf())
    assert "<image" not in svg
    (heat_map,) = filter(is_heat_map, ElementTree.fromstring(svg).iter())
    colors = mpl.colormaps["Blues"](np.nan_to_num(numbers), bytes=True)
    colors[0, 2] = 0  # transparent
    np.testing.assert_array_equal(read_heat_map(heat_map), colors)


def test_colour_bar_has_colours_of_map() -> None:
    show_heatmaps(np.eye(3)[None, None], "Keys", "Queries", cmap="viridis")
    svg = as_svg(plt.gcf())
    (bar,) = ElementTree.fromstring(svg).findall(".//{*}rect[@id='bar']")
    left, top, width, height = (
        2 * float(bar.get(side)) * 4 / 3 for side in ("x", "y", "width", "height")
    )
    column = render(svg)[round(top) + 2 : round(top + height) - 2, round(left + width / 2)]
    expected = mpl.colormaps["viridis"](np.linspace(1, 0, len(column)), bytes=True)[:, :3]
    assert np.abs(column.astype(int) - expected).max() <= 8


def test_jupyter_shows_svg_png_and_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell.instance()
    shell.kernel = object()  # distinguishes Jupyter's shell from a terminal's
    try:
        draw_lines()
        data, metadata = shell.display_formatter.format(plt.gcf())
    finally:
        InteractiveShell.clear_instance()
    png, png_metadata = as_png(plt.gcf())
    assert data == {
        "image/svg+xml": as_svg(plt.gcf()),
        "image/png": png,
        "text/plain": describe(plt.gcf()),
    }
    assert metadata == {"image/png": png_metadata}


@pytest.mark.parametrize(
    ("installed", "font"),
    [
        (["DejaVu Sans", "Noto Sans CJK JP", "PingFang TC"], ["PingFang TC"]),
        (["WenQuanYi Zen Hei", "DejaVu Sans"], ["WenQuanYi Zen Hei"]),
        (["DejaVu Sans"], []),
    ],
    ids=["the best of two", "the only one", "none"],
)
def test_chinese_labels_get_chinese_font(
    monkeypatch: pytest.MonkeyPatch, installed: list[str], font: list[str]
) -> None:
    monkeypatch.setattr(font_manager.fontManager, "get_font_names", lambda: installed)
    find_fallback_fonts.cache_clear()
    # Nothing is drawn: only the choice of the font is tested.
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
    plot(X, Y, xlabel="位置", ylabel="value", legend=["餘弦 cos", "sin"])
    as_svg(plt.gcf())
    axes = plt.gca()
    chinese, latin = axes.get_legend().get_texts()
    assert axes.xaxis.label.get_fontfamily() == ["sans-serif", FAMILY, *font]
    assert chinese.get_fontfamily() == ["sans-serif", FAMILY, *font]
    assert axes.yaxis.label.get_fontfamily() == ["sans-serif"]
    assert latin.get_fontfamily() == ["sans-serif"]
    find_fallback_fonts.cache_clear()


def test_descriptions_use_language_of_labels() -> None:
    plot(X, Y, xlabel="橫列", legend=["甲", "b"])
    assert describe(plt.gcf()) == (
        "折線圖，縱軸是數值，橫軸是橫列。"
        "甲：3 個點，從 (1, 1.00) 到 (3, 9.00)，數值從 1.00 到 9.00。"
        "b：3 個點，從 (1, 2.00) 到 (3, -2.00)，數值從 -2.00 到 2.00。"
    )
    plt.close("all")
    plot([[], []], legend=["甲"])
    assert describe(plt.gcf()) == "折線圖，縱軸是數值，橫軸是編號。甲：沒有點。曲線：沒有點。"
    plt.close("all")
    show_heatmaps(np.array([[[[0, 2]], [[np.nan, np.nan]]]]), "", "", titles=["頭 1", "b"])
    assert describe(plt.gcf()) == (
        "「頭 1」：熱圖，縱軸 1 格，是未命名的軸；橫軸 2 格，是未命名的軸；數值從 0.00 到 2.00，零有 1 個（共 2 個）；"
        "顏色 Reds，從 0.00 到 2.00。"
        "「b」：熱圖，縱軸 1 格，是未命名的軸；橫軸 2 格，是未命名的軸；沒有數值，零有 0 個（共 0 個）；"
        "顏色 Reds，從 0.00 到 2.00。"
    )


# Bad calls

# fmt: off
BAD_CALLS: dict[str, Callable[[], Any]] = {
    "ValueError: matrices: got shape (2, 3); need ...(grid rows, grid columns, matrix rows, matrix columns)...":
        lambda: show_heatmaps(np.zeros((2, 3)), "x", "y"),
    "ValueError: matrices: got shape (1, 1, 0, 3) without a finite number; need at least one number":
        lambda: show_heatmaps(np.zeros((1, 1, 0, 3)), "x", "y"),
    "ValueError: matrices: got rows of unequal length; need rows of one length...":
        lambda: show_heatmaps([[[[1, 2], [3]]]], "x", "y"),
    "TypeError: matrices: got str...; need an array of real numbers...":
        lambda: show_heatmaps("Reds", "x", "y"),
    "ValueError: curve 1: got 3 points in X and 2 in Y; need the same number of each...":
        lambda: plot([1, 2, 3], [[1, 2, 3], [1, 2]]),
    "ValueError: curves: got 2 of X and 3 of Y; need one X for all curves, or one for each...":
        lambda: plot([[1, 2], [3, 4]], [[1, 2]] * 3),
    "ValueError: X: got shape (2, 3, 4); need 1 dimension (points) or 2 (curves, points)...":
        lambda: plot(np.zeros((2, 3, 4))),
    "TypeError: Y: got ...; need an array of real numbers...": lambda: plot([1, 2], ["a", "b"]),
    "TypeError: X: got ndarray of dtype complex128; need an array of real numbers...":
        lambda: plot(np.zeros(3, complex)),
    "ValueError: titles: got 1 for 2 columns of heat maps; need one for each column":
        lambda: show_heatmaps(np.zeros((1, 2, 3, 3)), "x", "y", titles=["one"]),
    "ValueError: xticklabels: got 2 for 3 columns; need one for each":
        lambda: show_heatmaps(np.zeros((1, 1, 4, 3)), "x", "y", xticklabels="ab"),
    "ValueError: yticklabels: got 3 for 4 rows; need one for each":
        lambda: show_heatmaps(np.zeros((1, 1, 4, 3)), "x", "y", yticklabels="abc"),
    "ValueError: marks: got shape (4,); need a shape that broadcasts to that of matrices, (1, 1, 4, 3)":
        lambda: show_heatmaps(np.zeros((1, 1, 4, 3)), "x", "y", marks=np.zeros(4)),
    "TypeError: marks: got str...; need an array of real numbers...":
        lambda: show_heatmaps(np.zeros((1, 1, 4, 3)), "x", "y", marks="diagonal"),
    "ValueError: matrices: got shape (1, 1, 2, 2) without a finite number; need at least one number...":
        lambda: show_heatmaps(np.full((1, 1, 2, 2), np.nan), "x", "y"),
}
# fmt: on


@pytest.mark.parametrize(("message", "call"), BAD_CALLS.items(), ids=BAD_CALLS)
def test_bad_calls_raise_clear_errors(message: str, call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert matches_message(message, f"{caught.type.__name__}: {caught.value}")
