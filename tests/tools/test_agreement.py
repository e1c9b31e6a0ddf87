"""What counts as the same output, and which differences are found."""

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
from tools.compare.agreement import difference
from tools.compare.figures import PNG, SVG, figure_difference
from tools.compare.numbers import DEFAULT, tolerance
from tools.compare.pictures import as_png


def both_ways(stored: Any, fresh: Any) -> bool:
    """Whether the two differ; which of them came first must not matter."""
    compare = difference
    if is_svg(stored) and is_svg(fresh):
        compare = partial(figure_difference, tolerance=DEFAULT)
    there, back = compare(stored, fresh), compare(fresh, stored)
    assert (there is None) == (back is None)
    return there is not None


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
        # A sign takes the place of a blank.
        ("[[ 0.00  1.50]\n [ 2.00  3.25]]", "[[-0.00  1.50]\n [ 2.00  3.25]]"),
        ("[ 1e-07  2.00]", "[-1e-07  2.00]"),
        # So does a digit.
        ("[0.99999994 1.        ]", "[1. 1.]"),
        ("a  9.9999\nb  1.0", "a 10.0000\nb  1.0"),
        # Just within what is allowed.
        ("0.0", "1e-06"),
        ("1.0000000", "1.0000100"),
        ("12.34", "12.35"),
        ("0.51", "0.52"),
    ],
)
def test_these_agree(stored, fresh):
    assert not both_ways(stored, fresh)


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
        # Just beyond it.
        ("0.0", "1.1e-06"),
        ("1.0000000", "1.0000101"),
        ("12.34", "12.36"),
        ("0.48", "0.49"),
        # The same number, or nearly, written in another way.
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
def test_these_differ(stored, fresh):
    assert both_ways(stored, fresh)


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
def test_parts_agree_one_by_one(stored, fresh):
    assert not both_ways(stored, fresh)


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
def test_another_part_differs(stored, fresh):
    assert both_ways(stored, fresh)


def test_a_difference_shows_the_first_line_that_differs():
    assert difference("same\n1\n2", "same\n3\n4") == "'3' instead of '1'"
    assert difference("a\nb", "a") == "1 lines instead of 2"
    assert difference(["a"], []) == "0 instead of 1"


# Figures


@pytest.fixture(autouse=True)
def fresh_figures() -> Iterator[None]:
    with mpl.rc_context():
        yield
    plt.close("all")


POSITIONS = np.arange(60)
ANGLES = POSITIONS[:, None] / 10000 ** (np.arange(0, 32, 2) / 32)
P = np.stack([np.sin(ANGLES), np.cos(ANGLES)], axis=-1).reshape(60, 32)
SWAPPED = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=-1).reshape(60, 32)
NOISE = 1e-5 * np.random.default_rng(0).standard_normal(P.shape) * (P != 0)
ONE_CELL = P.copy()
ONE_CELL[7, 3] += 0.1


def shown() -> str:
    """The current figure, as SVG."""
    svg = as_svg(plt.gcf())
    plt.close("all")
    return svg


def curves(Y: Any = P, columns: slice = slice(6, 10), **changed: Any) -> str:
    legend = [f"Col {i}" for i in range(6, 10)]
    options = {"xlabel": "Row (position)", "legend": legend, "figsize": (6, 2.5)}
    plot(POSITIONS, Y[:, columns].T, **options | changed)
    return shown()


def heatmap(matrix: Any = P, **changed: Any) -> str:
    options = {"titles": ["P"], "figsize": (3.5, 4), "cmap": "RdBu"}
    show_heatmaps(
        matrix[None, None], "Column (encoding dimension)", "Row (position)", **options | changed
    )
    return shown()


def drawn(change: Callable[[Any], object]) -> str:
    """The curves, changed once they are drawn."""
    plot(POSITIONS, P[:, 6:10].T, xlabel="Row (position)", figsize=(6, 2.5))
    change(plt.gca())
    return shown()


def beside(bottom: float) -> str:
    """Two axes, the second so high above the figure's lower edge."""
    figure = plt.figure(figsize=(4, 3))
    for place in ((0.1, 0.1, 0.3, 0.8), (0.6, bottom, 0.3, 0.4)):
        figure.add_axes(place).plot([0, 1])
    return shown()


FIGURES = {"curves": curves, "heat map": heatmap}
OTHERS: dict[str, tuple[Callable[[], str], Callable[[], str]]] = {
    "sin and cos swapped": (curves, lambda: curves(SWAPPED)),
    "columns 5 to 8": (curves, lambda: curves(columns=slice(5, 9))),
    "one row further": (curves, lambda: curves(np.roll(P, 1, axis=0))),
    "a curve less": (curves, lambda: curves(columns=slice(6, 9))),
    "curves in another order": (curves, lambda: curves(P[:, ::-1], slice(22, 26))),
    "another label": (curves, lambda: curves(xlabel="Row (positiom)")),
    "no label": (curves, lambda: curves(xlabel=None)),
    "another legend": (curves, lambda: curves(legend=[f"Col {i}" for i in range(5, 9)])),
    "no legend": (curves, lambda: curves(legend=None)),
    "another line style": (curves, lambda: curves(fmts=["-"])),
    "other limits": (curves, lambda: curves(xlim=(0, 61))),
    "another scale": (curves, lambda: curves(xscale="symlog")),
    "another size": (curves, lambda: curves(figsize=(6.1, 2.5))),
    "another colour": (
        lambda: drawn(lambda axes: None),
        lambda: drawn(lambda axes: axes.lines[0].set_color("#0072B3")),
    ),
    "a flipped axis": (
        lambda: drawn(lambda axes: None),
        lambda: drawn(lambda axes: axes.invert_yaxis()),
    ),
    "a title": (lambda: drawn(lambda axes: None), lambda: drawn(lambda axes: axes.set_title("P"))),
    "axes in another place": (lambda: beside(0.1), lambda: beside(0.2)),
    "matrix: sin and cos swapped": (heatmap, lambda: heatmap(SWAPPED)),
    "matrix: one row further": (heatmap, lambda: heatmap(np.roll(P, 1, axis=0))),
    "matrix: flipped": (heatmap, lambda: heatmap(P[::-1])),
    "matrix: a row less": (heatmap, lambda: heatmap(P[:-1])),
    "matrix: one cell": (heatmap, lambda: heatmap(ONE_CELL)),
    "matrix: another colour map": (heatmap, lambda: heatmap(cmap="PuOr")),
    "matrix: the colour map reversed": (heatmap, lambda: heatmap(cmap="RdBu_r")),
    "matrix: another title": (heatmap, lambda: heatmap(titles=["Q"])),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_the_same_figure_agrees(draw):
    assert is_svg(draw())
    assert draw() == draw()


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_last_digits_agree_in_a_figure_of_other_bytes(draw):
    stored, fresh = draw(), draw(P + NOISE)
    assert stored != fresh
    assert not both_ways(stored, fresh)


@pytest.mark.parametrize(("stored", "fresh"), OTHERS.values(), ids=OTHERS)
def test_another_figure_differs(stored, fresh):
    assert both_ways(stored(), fresh())


def raised(by: float) -> str:
    """The first curve, by so many points."""

    def raise_it(axes: Any) -> None:
        points = axes.get_window_extent().height * 72 / axes.figure.dpi
        curve = axes.lines[0]
        curve.set_ydata(curve.get_ydata() + by * np.ptp(axes.get_ylim()) / points)

    return drawn(raise_it)


def lowered(by: float) -> str:
    """A label, by so many points."""

    def lower(axes: Any) -> None:
        axes.xaxis.labelpad += by

    return drawn(lower)


def in_grey(by: float) -> str:
    """Two cells, one brighter by so many levels."""
    return heat_map(CELL + f'<path fill="#{100 + round(by):02x}6464" d="M1 0h1v1h-1z"/>')


def heat_map(cells: str) -> str:
    place = 'transform="matrix(9 0 0 9 1 1)" shape-rendering="crispEdges"'
    return f"<svg><g {place}>{cells}</g></svg>"


CELL = '<path fill="#646464" d="M0 0h1v1h-1z"/>'


LIMITS: dict[str, tuple[Callable[[float], str], float]] = {
    "a curve, in points": (raised, 0.05),
    "a label, in points": (lowered, 2),
    "a cell, in levels": (in_grey, 4),
}


@pytest.mark.parametrize(("draw", "limit"), LIMITS.values(), ids=LIMITS)
def test_a_figure_may_be_off_by_so_much_and_no_more(
    draw: Callable[[float], str], limit: float
) -> None:
    for by, is_off in ((0.9, False), (-0.9, False), (1.25, True), (-1.25, True)):
        assert both_ways(draw(0), draw(by * limit)) == is_off, by


def test_what_a_figure_says_of_itself_counts():
    figure = curves()
    assert both_ways(figure, figure.replace("<desc>Line", "<desc>A line"))
    assert both_ways(figure, figure.replace("<title>Line", "<title>A line"))
    assert not both_ways(figure, figure.replace("(0, 0.00)", "(0, -0.00)"))


@pytest.mark.parametrize("words", ["{} of 36 zero; colours Blues", "零有 {} 個（共 36 個）"])
def test_more_cells_may_be_zero_where_a_tag_says_so(words: str) -> None:
    forgiving = tolerance(["tolerance:zeros=2"])
    figure = curves()

    def says(count: int) -> str:
        return figure.replace("<desc>Line", f"<desc>{words.format(count)} Line")

    for by, is_off in ((-2, False), (2, False), (3, True), (-3, True)):
        assert figure_difference(says(5), says(5 + by), DEFAULT)
        assert bool(figure_difference(says(5), says(5 + by), forgiving)) == is_off, by
    for stored, fresh in (("5 of 36", "5 of 37"), ("5 of 36 zero", "6 of 36 one")):
        assert difference(stored, fresh, forgiving)


def test_a_png_has_to_be_that_of_the_svg_beside_it():
    svg = curves()
    whole, other = as_png(svg), as_png(curves(SWAPPED))
    spotted, spot = np.asarray(Image.open(BytesIO(whole)).convert("RGB")).copy(), BytesIO()
    spotted[40:44, 40:44] = 0
    Image.fromarray(spotted).save(spot, "png")
    pngs = {
        "whole": whole,
        "another": other,
        "with a spot": spot.getvalue(),
        "half": whole[:200],
        "none": b"",
    }
    figures = {name: {SVG: svg, PNG: b64encode(png).decode()} for name, png in pngs.items()}
    said = {name: difference(each, figures["whole"]) for name, each in figures.items()}
    assert said["whole"] is None
    assert said["none"] == "the figure: no PNG beside the SVG"
    assert said["half"].startswith("the figure: damaged: no PNG")
    spot_fault = "the figure: the PNG is another picture than the SVG: 16 of 496860 pixels differ"
    assert said["with a spot"] == spot_fault
    assert said["another"] is not None
    assert difference({SVG: svg}, figures["whole"]) is not None


def in_base64(image: Image.Image, **options: object) -> str:
    file = BytesIO()
    image.save(file, "png", **options)
    return b64encode(file.getvalue()).decode()


BLUE, CLEAR = Image.new("RGB", (30, 20), "blue"), Image.new("RGBA", (30, 20), (255, 255, 255, 0))
WHOLE_PNG = in_base64(BLUE)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        (WHOLE_PNG, in_base64(BLUE.convert("P"), compress_level=0)),
        (WHOLE_PNG, in_base64(BLUE.convert("RGBA"))),
        (WHOLE_PNG, in_base64(Image.new("RGB", (30, 20), (24, 24, 231)))),  # 24 levels are allowed
        (WHOLE_PNG, f"{WHOLE_PNG[:76]}\n{WHOLE_PNG[76:]}\n"),
        (in_base64(CLEAR), in_base64(Image.new("RGBA", (30, 20), (0, 0, 0, 0)))),
    ],
    ids=["in a palette", "with opacity", "nearly", "in lines", "invisible"],
)
def test_a_png_alone_agrees_by_its_pixels(stored, fresh):
    assert not both_ways({PNG: stored, "text/plain": "a"}, {PNG: fresh, "text/plain": "a"})


@pytest.mark.parametrize(
    ("stored", "fresh", "fault"),
    [
        (BLUE, Image.new("RGB", (30, 20), "red"), "600 of 600 pixels differ"),
        (BLUE, Image.new("RGB", (30, 20), (0, 25, 255)), "600 of 600 pixels differ"),
        (BLUE, BLUE.resize((31, 20)), "31 x 20 pixels instead of 30 x 20"),
        (CLEAR, Image.new("RGB", (30, 20), "white"), "600 of 600 pixels differ"),
        (
            Image.new("I;16", (30, 20), 10_000),
            Image.new("I;16", (30, 20), 60_000),
            "600 of 600 pixels differ",
        ),
    ],
    ids=["another colour", "another shade", "another size", "on a dark page", "in 16 bits"],
)
def test_another_png_alone_differs(stored, fresh, fault):
    stored, fresh = ({PNG: in_base64(each)} for each in (stored, fresh))
    assert both_ways(stored, fresh)
    assert difference(stored, fresh) == f"the picture: {fault}"


@pytest.mark.parametrize("place", [0, 20, 30, 50, 70, -20])
def test_a_damaged_png_alone_differs(place):
    bytes_of = bytearray(b64decode(WHOLE_PNG))
    bytes_of[place] ^= 255
    damaged = b64encode(bytes_of).decode()
    for png in (damaged, damaged[: 4 * len(damaged) // 8], "no base64!", ""):
        assert both_ways({PNG: WHOLE_PNG}, {PNG: png})


def test_what_is_beside_a_png_counts():
    whole = {"data": {PNG: WHOLE_PNG, "text/plain": "a"}, "metadata": {PNG: {"width": 30}}}
    assert not both_ways(whole, {**whole, "metadata": {PNG: {"width": 30}}})
    assert both_ways(whole, {**whole, "metadata": {PNG: {"width": 31}}})
    assert both_ways(whole, {**whole, "data": {PNG: WHOLE_PNG, "text/plain": "b"}})


def test_colours_are_no_numbers():
    stored, fresh = (f'<svg fill="#0e{x}"/>' for x in ("1111", "9999"))
    assert both_ways(stored, fresh)  # 0e1111 and 0e9999 are both zero


WHOLE = heat_map(CELL)
DAMAGED = {
    "no XML": "<svg",
    "nothing in it": "<svg/>",
    "half a figure": WHOLE[:40],
    "no cells": heat_map(""),
    "no colour": heat_map(CELL.replace("#646464", "grey")),
    "no square": heat_map(CELL.replace("h1v1h-1z", "h2v1h-2z")),
    "a cell twice": heat_map(CELL * 2),
    "a cell that is hidden": heat_map(CELL.replace("fill", 'display="none" fill')),
    "something else among the cells": heat_map(CELL + '<rect width="9" height="9"/>'),
    "something in a cell": heat_map(CELL.replace("/>", "><title>x</title></path>")),
    "words among the cells": heat_map(f"{CELL}x"),
    "not stretched": WHOLE.replace("matrix(9 0 0 9 1 1)", "scale(9)"),
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_figure_differs(damaged):
    assert both_ways(WHOLE, damaged)
