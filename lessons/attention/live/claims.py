"""Test that the live figure shows the notebook's numbers, and can be operated by keyboard and pointer."""

import re

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from tests.lessons.live import (
    SVG,
    get_state,
    matches_up_to_scale,
    read_curves,
    read_figure,
    set_state,
)
from tests.site.browser import Open

LESSON, FIGURE = "attention", "width"
Points = tuple[NDArray[np.float64], NDArray[np.float64]]
WIDTHS = 0.05, 0.3, 3


@pytest.fixture(scope="module")
def points(page: Page) -> Points:
    x, y = page.evaluate("[d2lLive.points.x, d2lLive.points.y]")
    assert len(x) == len(y) == 40
    return np.array(x), np.array(y)


def test_curves_match_notebook(page: Page):
    live_states = [set_state(page, FIGURE, width=width) for width in WIDTHS]
    grid = np.array(live_states[0]["grid"])
    np.testing.assert_allclose(grid, np.linspace(0, 5, 101), atol=1e-12)
    truth, *notebook_fits = read_curves(LESSON, "three-widths", 101)
    fits = [np.array(live_state["answers"]) for live_state in live_states]
    expected = [np.sin(2 * grid) + grid / 2, *fits]
    assert matches_up_to_scale([truth, *notebook_fits], expected)
    assert not matches_up_to_scale(notebook_fits, fits[::-1])


def test_points_match_notebook(points: Points):
    marks = read_figure(LESSON, "three-widths").iter(f"{SVG}use")
    dots = [mark for mark in marks if mark.get("style", "").startswith("fill")][:40]
    for axis, values in zip("xy", points, strict=True):
        positions = np.array([float(dot.get(axis)) for dot in dots])
        assert matches_up_to_scale([positions], [values])


@pytest.mark.parametrize("width", [*WIDTHS, 0.18, 1.08])
@pytest.mark.parametrize("q", [0, 1.15, 2.5, 5])
def test_weights_match_kernel(page: Page, points: Points, width: float, q: float):
    live_state = set_state(page, FIGURE, width=width, q=q)
    assert (live_state["width"], live_state["q"]) == (width, q)
    x, y = points
    kernel = np.exp(-((q - x) ** 2) / (2 * width**2))
    weights = kernel / kernel.sum()
    np.testing.assert_allclose(live_state["weights"], weights, atol=1e-12)
    assert sum(live_state["weights"]) == pytest.approx(1, abs=1e-12)
    assert live_state["answer"] == pytest.approx(weights @ y, abs=1e-12)
    nearest = weights[np.abs(q - x).argmin()]
    assert live_state["share"] == pytest.approx(nearest, abs=1e-12)


def test_point_areas_grow_with_weights(page: Page, live: Locator):
    weights = np.array(set_state(page, FIGURE, width=0.05, q=4)["weights"])
    radii = live.locator(".live-point").evaluate_all(
        "circles => circles.map((circle) => circle.r.baseVal.value)"
    )
    assert min(weights) < 1e-12
    assert min(radii) >= 2
    assert max(radii) > 10
    areas = np.square(radii)
    line = np.polyfit(weights, areas, 1)
    np.testing.assert_allclose(areas, np.polyval(line, weights), rtol=1e-4)


def test_caption_shows_numbers(page: Page, live: Locator):
    live_state = set_state(page, FIGURE, width=0.3, q=1.15)
    caption = (
        f"At q = 1.15 the answer is {live_state['answer']:.2f}; "
        f"the nearest point has {100 * live_state['share']:.1f}% of the weight."
    )
    expect(live.locator("p output")).to_have_text(caption)
    expect(live.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(re.escape(caption))
    )
    slider = live.get_by_label("Query q")
    slider.press("ArrowRight")
    slider.press("ArrowLeft")
    expect(live.locator("[role=status]")).to_have_text(caption)


def test_drawing_shows_numbers(page: Page, live: Locator):
    live_state = set_state(page, FIGURE, width=0.3, q=1.15)
    heights = "line => Array.from(line.points, (point) => point.y)"
    curve = np.array(live.locator(".live-curve").evaluate(heights))
    truth = np.array(live.locator(".live-truth").evaluate(heights))
    ring = np.array([float(live.locator("circle.live-target").get_attribute("cy"))])
    grid = np.array(live_state["grid"])
    true_values = np.sin(2 * grid) + grid / 2
    values = [live_state["answers"], true_values, [live_state["answer"]]]
    assert matches_up_to_scale([curve, truth, ring], values)


def test_keyboard_moves_width_and_query(page: Page, live: Locator):
    before = set_state(page, FIGURE, width=0.3, q=2.5)
    live.get_by_label("Query q").press("ArrowRight")
    after = get_state(page, FIGURE)
    assert (after["width"], after["q"]) == (before["width"], 2.55)
    for key, width in ("Home", 0.05), ("End", 3):
        live.get_by_label("Width σ").press(key)
        assert get_state(page, FIGURE)["width"] == width
    expect(live.get_by_label("Width σ")).to_have_attribute("aria-valuetext", "3.00")


def test_pointer_moves_query(page: Page, live: Locator):
    plot = live.get_by_role("img")
    plot.scroll_into_view_if_needed()
    dots = live.locator(".live-point")
    for k, q in (5, 0.75), (33, 4):  # measured at 0.7534 and 4.0001
        box = dots.nth(k).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert get_state(page, FIGURE)["q"] == q
        expect(live.get_by_label("Query q")).to_have_attribute(
            "aria-valuetext", f"{q:.2f}"
        )
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
    assert get_state(page, FIGURE)["q"] == 0


@pytest.mark.release
def test_text_is_in_page_language(open_page: Open):
    page = open_page(f"zh-TW/{LESSON}.html")
    live = page.locator('[data-live="width"]')
    expect(live.get_by_label("寬度 σ")).to_be_visible()
    expect(live).to_contain_text("權重")
