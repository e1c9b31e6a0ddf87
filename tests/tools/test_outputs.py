"""Test which outputs agree, and which differ."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from d2l_compat._shared.plot import as_svg, plot, show_heatmaps
from tools.compare.figures import PNG, SVG, compare_figures
from tools.compare.numbers import DEFAULT, read_tolerance
from tools.compare.outputs import compare_outputs
from tools.compare.pixels import render_png


def differ(stored: Any, fresh: Any) -> bool:
    """Check whether two outputs differ; the order must not matter."""
    compare = compare_outputs
    if is_svg(stored) and is_svg(fresh):
        compare = partial(compare_figures, tolerance=DEFAULT)
    forward, backward = compare(stored, fresh), compare(fresh, stored)
    assert (forward is None) == (backward is None)
    return forward is not None


def is_svg(output: Any) -> bool:
    return isinstance(output, str) and output.startswith(("<svg", "<?xml"))


# Text and numbers


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("", ""),
        ("the same", "the same"),
        ("0.123", "0.124"),
        ("-0.123", "-0.124"),
        ("12.34 s", "12.35 s"),
        ("1.234e-05", "1.235e-05"),
        ("4.8e-07", "6.1e-07"),
        ("0.0", "-2.4e-07"),
        ("0.0000", "-0.0000"),
        ("9.99e-05", "1.00e-04"),
        ("1.000000", "1.000009"),
        ("0.99999994", "1.0"),
        ("[ 0.5  nan -inf]", "[ 0.5  nan -inf]"),
        ("tensor([[0., 1.]])", "tensor([[-0., 1.]])"),
        # A sign replaces a space.
        ("[[ 0.00  1.50]\n [ 2.00  3.25]]", "[[-0.00  1.50]\n [ 2.00  3.25]]"),
        ("[ 1e-07  2.00]", "[-1e-07  2.00]"),
        # A digit replaces a space.
        ("[0.99999994 1.        ]", "[1. 1.]"),
        ("a  9.9999\nb  1.0", "a 10.0000\nb  1.0"),
        # Just within the tolerance.
        ("0.0", "1e-06"),
        ("1.0000000", "1.0000100"),
        ("12.34", "12.35"),
        ("0.51", "0.52"),
    ],
)
def test_texts_agree(stored, fresh):
    assert not differ(stored, fresh)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("3", "4"),
        ("(2, 4, 100)", "(2, 4, 101)"),
        ("(2, 4)", "(24,)"),
        ("1000000", "1000001"),
        ("step 9: 0.500", "step 10: 0.500"),
        ("0.123", "0.125"),
        ("0.0", "0.1"),
        ("1.0", "0.9"),
        ("128.", "129."),
        ("1e5", "2e5"),
        ("0.500", "-0.500"),
        ("0.001", "0.002"),
        ("1.234e-05", "1.234e-04"),
        ("4.8e-07", "4.8e-05"),
        ("[0.5 0.5]", "[0.5]"),
        ("[0.5 1.5]", "[1.5 0.5]"),
        ("0.5", "nan"),
        ("nan", "0.5"),
        ("inf", "-inf"),
        ("inf", "1e308"),
        ("1e999", "2e999"),
        ("true", "false"),
        ("float32", "float64"),
        ("0.5 s", "0.5 ms"),
        ("a", "b"),
        ("a", "A"),
        ("", "0.0"),
        ("one line", "one line\nand another"),
        # Just outside the tolerance.
        ("0.0", "1.1e-06"),
        ("1.0000000", "1.0000101"),
        ("12.34", "12.36"),
        ("0.48", "0.49"),
        # The same number, or nearly the same, in another notation.
        ("0.0000", "0.000"),
        ("is 000", "is -000"),
        ("0.0000", "00000"),
        ("5.1e-07", "5.10e-07"),
        ("1.0", "1."),
        ("28 pairs", "28. pairs"),
        ("0.17", "00.17"),
        ("0.82", "0.825"),
        ("123.4", "123.45"),
        # Lines and columns.
        ("a  1.50\nb  2.50", "a  1.50 b  2.50"),
        ("a  1.50\nb  2.50", "a  1.50\n\nb  2.50"),
        ("a  1.50\nb  2.50", "a  1.50\nb 2.50"),
        ("a  1.50\nb  2.50", "a  1.50\n b  2.50"),
        ("a  1.50\nb  2.50", "a  1.50\nb\t2.50"),
        ("a  1.50\nb  2.50", "a  1.50\nb  2.50\n"),
        ("a 10.0000\nb  1.0", "a  9.9999 b  1.0"),
        ("some  words", "some words"),
    ],
)
def test_texts_differ(stored, fresh):
    assert differ(stored, fresh)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ({"text": "0.123", "n": [1, None]}, {"n": [1, None], "text": "0.124"}),
        (["0.123", ["0.5"]], ["0.124", ["0.5"]]),
        ({}, {}),
        ([], []),
        (None, None),
    ],
)
def test_outputs_with_parts_agree(stored, fresh):
    assert not differ(stored, fresh)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ({"text": "a"}, {}),
        ({"text/html": "a"}, {"text/plain": "a"}),
        ({"text": "a"}, {"text": "b"}),
        ({"n": 1}, {"n": 2}),
        ({"n": None}, {"n": 1}),
        (["a"], ["a", "a"]),
        (["a", "b"], ["b", "a"]),
        ([{"deep": ["0.5"]}], [{"deep": ["0.6"]}]),
        ("1", 1),
        (["a"], "a"),
        ({}, []),
    ],
)
def test_outputs_with_parts_differ(stored, fresh):
    assert differ(stored, fresh)


def test_a_difference_shows_the_first_line_that_differs():
    assert compare_outputs("same\n1\n2", "same\n3\n4") == "'3' instead of '1'"
    assert compare_outputs("a\nb", "a") == "1 lines instead of 2"
    assert compare_outputs(["a"], []) == "0 instead of 1"


# Figures


@pytest.fixture(autouse=True)
def fresh_figures() -> Iterator[None]:
    with mpl.rc_context():
        yield
    plt.close("all")


POSITIONS = np.arange(60)
ANGLES = POSITIONS[:, None] / 10000 ** (np.arange(0, 32, 2) / 32)
P = np.stack([np.sin(ANGLES), np.cos(ANGLES)], axis=-1).reshape(60, 32)
SWAPPED_P = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=-1).reshape(60, 32)
NOISE = 1e-5 * np.random.default_rng(0).standard_normal(P.shape) * (P != 0)
P_WITH_CHANGED_CELL = P.copy()
P_WITH_CHANGED_CELL[7, 3] += 0.1


def save_svg() -> str:
    """Return the current figure as SVG, and close it."""
    svg = as_svg(plt.gcf())
    plt.close("all")
    return svg


def plot_curves(Y: Any = P, columns: slice = slice(6, 10), **options: Any) -> str:
    legend = [f"Col {i}" for i in range(6, 10)]
    defaults = {"xlabel": "Row (position)", "legend": legend, "figsize": (6, 2.5)}
    plot(POSITIONS, Y[:, columns].T, **defaults | options)
    return save_svg()


def plot_heatmap(matrix: Any = P, **options: Any) -> str:
    defaults = {"titles": ["P"], "figsize": (3.5, 4), "cmap": "RdBu"}
    show_heatmaps(
        matrix[None, None], "Column (encoding dimension)", "Row (position)", **defaults | options
    )
    return save_svg()


def plot_changed_curves(change: Callable[[Any], object]) -> str:
    """Plot the curves, change the axes, and return the SVG."""
    plot(POSITIONS, P[:, 6:10].T, xlabel="Row (position)", figsize=(6, 2.5))
    change(plt.gca())
    return save_svg()


def draw_two_axes(bottom: float) -> str:
    """Draw two axes, the bottom of the second at this fraction of the figure's height."""
    figure = plt.figure(figsize=(4, 3))
    for rectangle in ((0.1, 0.1, 0.3, 0.8), (0.6, bottom, 0.3, 0.4)):
        figure.add_axes(rectangle).plot([0, 1])
    return save_svg()


FIGURES = {"curves": plot_curves, "heat map": plot_heatmap}
DIFFERENT_FIGURES: dict[str, tuple[Callable[[], str], Callable[[], str]]] = {
    "sin and cos swapped": (plot_curves, lambda: plot_curves(SWAPPED_P)),
    "columns 5 to 8": (plot_curves, lambda: plot_curves(columns=slice(5, 9))),
    "shifted by one row": (plot_curves, lambda: plot_curves(np.roll(P, 1, axis=0))),
    "one curve fewer": (plot_curves, lambda: plot_curves(columns=slice(6, 9))),
    "curves in another order": (plot_curves, lambda: plot_curves(P[:, ::-1], slice(22, 26))),
    "another label": (plot_curves, lambda: plot_curves(xlabel="Row (positiom)")),
    "no label": (plot_curves, lambda: plot_curves(xlabel=None)),
    "another legend": (plot_curves, lambda: plot_curves(legend=[f"Col {i}" for i in range(5, 9)])),
    "no legend": (plot_curves, lambda: plot_curves(legend=None)),
    "another line style": (plot_curves, lambda: plot_curves(fmts=["-"])),
    "other limits": (plot_curves, lambda: plot_curves(xlim=(0, 61))),
    "another scale": (plot_curves, lambda: plot_curves(xscale="symlog")),
    "another size": (plot_curves, lambda: plot_curves(figsize=(6.1, 2.5))),
    "another colour": (
        lambda: plot_changed_curves(lambda axes: None),
        lambda: plot_changed_curves(lambda axes: axes.lines[0].set_color("#0072B3")),
    ),
    "a flipped axis": (
        lambda: plot_changed_curves(lambda axes: None),
        lambda: plot_changed_curves(lambda axes: axes.invert_yaxis()),
    ),
    "a title": (
        lambda: plot_changed_curves(lambda axes: None),
        lambda: plot_changed_curves(lambda axes: axes.set_title("P")),
    ),
    "axes in another position": (lambda: draw_two_axes(0.1), lambda: draw_two_axes(0.2)),
    "matrix: sin and cos swapped": (plot_heatmap, lambda: plot_heatmap(SWAPPED_P)),
    "matrix: shifted by one row": (plot_heatmap, lambda: plot_heatmap(np.roll(P, 1, axis=0))),
    "matrix: flipped": (plot_heatmap, lambda: plot_heatmap(P[::-1])),
    "matrix: one row fewer": (plot_heatmap, lambda: plot_heatmap(P[:-1])),
    "matrix: one cell": (plot_heatmap, lambda: plot_heatmap(P_WITH_CHANGED_CELL)),
    "matrix: another colour map": (plot_heatmap, lambda: plot_heatmap(cmap="PuOr")),
    "matrix: the colour map reversed": (plot_heatmap, lambda: plot_heatmap(cmap="RdBu_r")),
    "matrix: another title": (plot_heatmap, lambda: plot_heatmap(titles=["Q"])),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_drawing_a_figure_again_gives_the_same_bytes(draw):
    assert is_svg(draw())
    assert draw() == draw()


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_figures_whose_data_differ_by_last_digits_agree(draw):
    stored, fresh = draw(), draw(P + NOISE)
    assert stored != fresh
    assert not differ(stored, fresh)


@pytest.mark.parametrize(("stored", "fresh"), DIFFERENT_FIGURES.values(), ids=DIFFERENT_FIGURES)
def test_a_different_figure_differs(stored, fresh):
    assert differ(stored(), fresh())


def raise_curve(distance: float) -> str:
    """Draw the curves with the first one raised by a distance in points."""

    def change(axes: Any) -> None:
        points = axes.get_window_extent().height * 72 / axes.figure.dpi
        curve = axes.lines[0]
        curve.set_ydata(curve.get_ydata() + distance * np.ptp(axes.get_ylim()) / points)

    return plot_changed_curves(change)


def lower_label(distance: float) -> str:
    """Draw the curves with the label lowered by a distance in points."""

    def change(axes: Any) -> None:
        axes.xaxis.labelpad += distance

    return plot_changed_curves(change)


def draw_two_cells(levels: float) -> str:
    """Draw a heat map of two cells, whose red differs by ``levels``."""
    return make_heat_map(CELL + f'<path fill="#{100 + round(levels):02x}6464" d="M1 0h1v1h-1z"/>')


def make_heat_map(cells: str) -> str:
    attributes = 'transform="matrix(9 0 0 9 1 1)" shape-rendering="crispEdges"'
    return f"<svg><g {attributes}>{cells}</g></svg>"


CELL = '<path fill="#646464" d="M0 0h1v1h-1z"/>'


LIMITS: dict[str, tuple[Callable[[float], str], float]] = {
    "a curve, in points": (raise_curve, 0.05),
    "a label, in points": (lower_label, 2),
    "a cell, in levels": (draw_two_cells, 4),
}


@pytest.mark.parametrize(("draw", "limit"), LIMITS.values(), ids=LIMITS)
def test_a_figure_may_differ_up_to_the_tolerance(
    draw: Callable[[float], str], limit: float
) -> None:
    for factor, is_different in ((0.9, False), (-0.9, False), (1.25, True), (-1.25, True)):
        assert differ(draw(0), draw(factor * limit)) == is_different, factor


def test_titles_and_descriptions_of_figures_are_compared():
    figure = plot_curves()
    assert differ(figure, figure.replace("<desc>Line", "<desc>A line"))
    assert differ(figure, figure.replace("<title>Line", "<title>A line"))
    assert not differ(figure, figure.replace("(0, 0.00)", "(0, -0.00)"))


@pytest.mark.parametrize("words", ["{} of 36 zero; colours Blues", "零有 {} 個（共 36 個）"])
def test_a_tag_allows_more_cells_to_be_zero(words: str) -> None:
    tolerance = read_tolerance(["tolerance:zeros=2"])
    figure = plot_curves()

    def describe(count: int) -> str:
        return figure.replace("<desc>Line", f"<desc>{words.format(count)} Line")

    for change, is_different in ((-2, False), (2, False), (3, True), (-3, True)):
        assert compare_figures(describe(5), describe(5 + change), DEFAULT)
        difference = compare_figures(describe(5), describe(5 + change), tolerance)
        assert bool(difference) == is_different, change
    for stored, fresh in (("5 of 36", "5 of 37"), ("5 of 36 zero", "6 of 36 one")):
        assert compare_outputs(stored, fresh, tolerance)


def test_a_png_is_compared_with_the_svg_beside_it():
    svg = plot_curves()
    whole = render_png(svg)
    pixels = np.asarray(Image.open(BytesIO(whole)).convert("RGB")).copy()
    pixels[40:44, 40:44] = 0
    spotted = BytesIO()
    Image.fromarray(pixels).save(spotted, "png")
    pngs = {
        "whole": whole,
        "another": render_png(plot_curves(SWAPPED_P)),
        "with a spot": spotted.getvalue(),
        "half": whole[:200],
        "none": b"",
    }
    figures = {name: {SVG: svg, PNG: b64encode(png).decode()} for name, png in pngs.items()}
    messages = {name: compare_outputs(figure, figures["whole"]) for name, figure in figures.items()}
    assert messages["whole"] is None
    assert messages["none"] == "the figure: no PNG beside the SVG"
    assert messages["half"].startswith("the figure: damaged: not a PNG")
    spot_message = "the figure: the PNG differs from the SVG: 16 of 496860 pixels differ"
    assert messages["with a spot"] == spot_message
    assert messages["another"] is not None
    assert compare_outputs({SVG: svg}, figures["whole"]) is not None


def encode(image: Image.Image, **options: object) -> str:
    file = BytesIO()
    image.save(file, "png", **options)
    return b64encode(file.getvalue()).decode()


BLUE = Image.new("RGB", (30, 20), "blue")
TRANSPARENT = Image.new("RGBA", (30, 20), (255, 255, 255, 0))
BLUE_PNG = encode(BLUE)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        (BLUE_PNG, encode(BLUE.convert("P"), compress_level=0)),
        (BLUE_PNG, encode(BLUE.convert("RGBA"))),
        (BLUE_PNG, encode(Image.new("RGB", (30, 20), (24, 24, 231)))),  # 24 levels are allowed
        (BLUE_PNG, f"{BLUE_PNG[:76]}\n{BLUE_PNG[76:]}\n"),
        (encode(TRANSPARENT), encode(Image.new("RGBA", (30, 20), (0, 0, 0, 0)))),
    ],
    ids=["in a palette", "with opacity", "nearly equal", "in lines", "transparent"],
)
def test_pngs_without_svgs_agree_by_their_pixels(stored, fresh):
    assert not differ({PNG: stored, "text/plain": "a"}, {PNG: fresh, "text/plain": "a"})


@pytest.mark.parametrize(
    ("stored", "fresh", "message"),
    [
        (BLUE, Image.new("RGB", (30, 20), "red"), "600 of 600 pixels differ"),
        (BLUE, Image.new("RGB", (30, 20), (0, 25, 255)), "600 of 600 pixels differ"),
        (BLUE, BLUE.resize((31, 20)), "31 x 20 pixels instead of 30 x 20"),
        (TRANSPARENT, Image.new("RGB", (30, 20), "white"), "600 of 600 pixels differ"),
        (
            Image.new("I;16", (30, 20), 10_000),
            Image.new("I;16", (30, 20), 60_000),
            "600 of 600 pixels differ",
        ),
    ],
    ids=["another colour", "another shade", "another size", "on a dark page", "in 16 bits"],
)
def test_pngs_without_svgs_differ_by_their_pixels(stored, fresh, message):
    stored, fresh = ({PNG: encode(each)} for each in (stored, fresh))
    assert differ(stored, fresh)
    assert compare_outputs(stored, fresh) == f"the image: {message}"


@pytest.mark.parametrize("position", [0, 20, 30, 50, 70, -20])
def test_a_damaged_png_without_svg_differs(position):
    png = bytearray(b64decode(BLUE_PNG))
    png[position] ^= 255
    damaged = b64encode(png).decode()
    for png in (damaged, damaged[: len(damaged) // 2], "no base64!", ""):
        assert differ({PNG: BLUE_PNG}, {PNG: png})


def test_text_and_metadata_beside_a_png_are_compared():
    whole = {"data": {PNG: BLUE_PNG, "text/plain": "a"}, "metadata": {PNG: {"width": 30}}}
    assert not differ(whole, {**whole, "metadata": {PNG: {"width": 30}}})
    assert differ(whole, {**whole, "metadata": {PNG: {"width": 31}}})
    assert differ(whole, {**whole, "data": {PNG: BLUE_PNG, "text/plain": "b"}})


def test_colours_are_not_compared_as_numbers():
    stored, fresh = (f'<svg fill="#0e{x}"/>' for x in ("1111", "9999"))
    assert differ(stored, fresh)  # 0e1111 and 0e9999 are both zero


INTACT = make_heat_map(CELL)
DAMAGED_FIGURES = {
    "invalid XML": "<svg",
    "an empty drawing": "<svg/>",
    "half a figure": INTACT[:40],
    "no cells": make_heat_map(""),
    "an invalid colour": make_heat_map(CELL.replace("#646464", "grey")),
    "a rectangle": make_heat_map(CELL.replace("h1v1h-1z", "h2v1h-2z")),
    "a cell twice": make_heat_map(CELL * 2),
    "a cell that is hidden": make_heat_map(CELL.replace("fill", 'display="none" fill')),
    "another element": make_heat_map(CELL + '<rect width="9" height="9"/>'),
    "an element in a cell": make_heat_map(CELL.replace("/>", "><title>x</title></path>")),
    "text": make_heat_map(f"{CELL}x"),
    "not scaled by a matrix": INTACT.replace("matrix(9 0 0 9 1 1)", "scale(9)"),
}


@pytest.mark.parametrize("damaged", DAMAGED_FIGURES.values(), ids=DAMAGED_FIGURES)
def test_a_damaged_figure_differs(damaged):
    assert differ(INTACT, damaged)
