"""What the live figure claims: it shows the numbers of the notebook, and is operated by keyboard and pointer."""

import re

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from tests.lessons.live import SVG, curves, figure, lies_on, state
from tests.site.browser import Open

LESSON, FIGURE = "attention", "width"
Points = tuple[NDArray[np.float64], NDArray[np.float64]]
WIDTHS = 0.05, 0.3, 3


@pytest.fixture(scope="module")
def points(page: Page) -> Points:
    x, y = page.evaluate("[d2lLive.points.x, d2lLive.points.y]")
    assert len(x) == len(y) == 40
    return np.array(x), np.array(y)


def test_the_curves_are_the_notebooks(page: Page):
    shown = [state(page, FIGURE, width=width) for width in WIDTHS]
    places = np.array(shown[0]["places"])
    np.testing.assert_allclose(places, np.linspace(0, 5, 101), atol=1e-12)
    truth, *drawn = curves(LESSON, "three-widths", 101)
    fits = [np.array(each["answers"]) for each in shown]
    assert lies_on([truth, *drawn], [np.sin(2 * places) + places / 2, *fits])
    assert not lies_on(drawn, fits[::-1])


def test_the_points_are_the_notebooks(points: Points):
    marks = figure(LESSON, "three-widths").iter(f"{SVG}use")
    dots = [mark for mark in marks if mark.get("style", "").startswith("fill")][:40]
    for axis, values in zip("xy", points, strict=True):
        drawn = np.array([float(dot.get(axis)) for dot in dots])
        assert lies_on([drawn], [values])


@pytest.mark.parametrize("width", [*WIDTHS, 0.18, 1.08])
@pytest.mark.parametrize("q", [0, 1.15, 2.5, 5])
def test_the_weights_are_the_kernels(
    page: Page, points: Points, width: float, q: float
):
    shown = state(page, FIGURE, width=width, q=q)
    assert (shown["width"], shown["q"]) == (width, q)
    x, y = points
    kernel = np.exp(-((q - x) ** 2) / (2 * width**2))
    weights = kernel / kernel.sum()
    np.testing.assert_allclose(shown["weights"], weights, atol=1e-12)
    assert sum(shown["weights"]) == pytest.approx(1, abs=1e-12)
    assert shown["answer"] == pytest.approx(weights @ y, abs=1e-12)
    assert shown["share"] == pytest.approx(weights[np.abs(q - x).argmin()], abs=1e-12)


def test_a_points_area_grows_with_its_weight_and_none_disappears(
    page: Page, live: Locator
):
    weights = np.array(state(page, FIGURE, width=0.05, q=4)["weights"])
    radii = live.locator(".live-point").evaluate_all(
        "all => all.map((each) => each.r.baseVal.value)"
    )
    assert min(weights) < 1e-12
    assert min(radii) >= 2
    assert max(radii) > 10
    areas = np.square(radii)
    np.testing.assert_allclose(
        areas, np.polyval(np.polyfit(weights, areas, 1), weights), rtol=1e-4
    )


def test_it_is_said_in_numbers(page: Page, live: Locator):
    shown = state(page, FIGURE, width=0.3, q=1.15)
    said = (
        f"At q = 1.15 the answer is {shown['answer']:.2f}; "
        f"the nearest point has {100 * shown['share']:.1f}% of the weight."
    )
    expect(live.locator("p output")).to_have_text(said)
    expect(live.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(re.escape(said))
    )
    slider = live.get_by_label("Query q")
    slider.press("ArrowRight")
    slider.press("ArrowLeft")
    expect(live.locator("[role=status]")).to_have_text(said)


def test_what_is_drawn_are_these_numbers(page: Page, live: Locator):
    shown = state(page, FIGURE, width=0.3, q=1.15)
    curve, truth = (
        live.locator(kind).evaluate("line => Array.from(line.points, (each) => each.y)")
        for kind in (".live-curve", ".live-truth")
    )
    ring = live.locator("circle.live-target").get_attribute("cy")
    places = np.array(shown["places"])
    values = [shown["answers"], np.sin(2 * places) + places / 2, [shown["answer"]]]
    assert lies_on([np.array(curve), np.array(truth), np.array([float(ring)])], values)


def test_the_keyboard_moves_the_width_and_the_place(page: Page, live: Locator):
    before = state(page, FIGURE, width=0.3, q=2.5)
    live.get_by_label("Query q").press("ArrowRight")
    after = state(page, FIGURE)
    assert (after["width"], after["q"]) == (before["width"], 2.55)
    for key, width in ("Home", 0.05), ("End", 3):
        live.get_by_label("Width σ").press(key)
        assert state(page, FIGURE)["width"] == width
    expect(live.get_by_label("Width σ")).to_have_attribute("aria-valuetext", "3.00")


def test_the_pointer_moves_the_place(page: Page, live: Locator):
    plot = live.get_by_role("img")
    plot.scroll_into_view_if_needed()
    dots = live.locator(".live-point")
    for k, q in (5, 0.75), (33, 4):  # measured at 0.7534 and 4.0001
        box = dots.nth(k).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert state(page, FIGURE)["q"] == q
        expect(live.get_by_label("Query q")).to_have_attribute(
            "aria-valuetext", f"{q:.2f}"
        )
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
    assert state(page, FIGURE)["q"] == 0


@pytest.mark.release
def test_words_are_the_pages_language(open_page: Open):
    page = open_page(f"zh-TW/{LESSON}.html")
    live = page.locator('[data-live="width"]')
    expect(live.get_by_label("寬度 σ")).to_be_visible()
    expect(live).to_contain_text("權重")
