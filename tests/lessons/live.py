"""Read live figures of pages and decks, and figures stored in notebooks, for claims (LESSON/live/claims.py)."""

import re
from typing import Any
from xml.etree import ElementTree

import nbformat
import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page

from tools.compare import figures
from tools.weave.lessons import ROOT

SVG = "{http://www.w3.org/2000/svg}"
COLOUR = re.compile(r"stroke: (#[0-9a-f]{6})")
# Changes of slides and of colours are animated.
WAIT_FOR_TRANSITIONS = """() => Promise.all(
    document.getAnimations().filter(each => each instanceof CSSTransition).map(each => each.finished)
)"""
# Measures the overflow and the height of a figure's slide, or of the figure itself on a page, at each setting.
MEASURE = """(root, all) => all.map((one) => {
  root.live.set(one);
  const box = root.closest(".slides > section") ?? root;
  return [box.scrollWidth - box.clientWidth, box.scrollHeight];
})"""
POINT = re.compile(r"[ML] (\S+) (\S+)")


def read_cells(lesson: str) -> dict[str, Any]:
    """Return the cells of a lesson's original notebook by name."""
    notebook = ROOT / "notebooks" / "en" / "pytorch" / f"{lesson}.ipynb"
    return {cell.id: cell for cell in nbformat.read(notebook, as_version=4).cells}


def read_figure(lesson: str, name: str) -> ElementTree.Element:
    """Return the stored figure of a notebook's cell."""
    outputs = [output.get("data", {}) for output in read_cells(lesson)[name].outputs]
    svg = next(data[figures.SVG] for data in outputs if figures.SVG in data)
    return ElementTree.fromstring(svg)


def read_curves(lesson: str, name: str, points: int) -> list[NDArray[np.float64]]:
    """Return the y coordinates of a figure's curves, in SVG units, in which y grows downwards."""
    heights = []
    for path in read_figure(lesson, name).iter(f"{SVG}path"):
        pairs = POINT.findall(path.get("d", ""))
        if len(pairs) == points and COLOUR.search(path.get("style", "")):
            heights.append(np.array([float(y) for _, y in pairs]))
    return heights


def get_state(page: Page, name: str) -> dict[str, Any]:
    return set_state(page, name)


def set_state(page: Page, name: str, **settings: Any) -> dict[str, Any]:
    """Change these settings of a live figure, and return its state."""
    return set_states(page, name, [settings])[0]


def set_states(page: Page, name: str, settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Change the settings of a live figure several times, and return its state after each change."""
    live = page.locator(f'[data-live="{name}"]')
    return live.evaluate(
        "(root, all) => all.map(one => { root.live.set(one); return root.live.state(); })", settings
    )


def find_live_figures(page: Page) -> list[Locator]:
    """Return the live figures of a deck, each on a slide."""
    live = page.locator(".slides [data-live]").all()
    assert live
    return live


def go_to_slide(figure: Locator) -> None:
    """Move a deck to the slide with this figure."""
    figure.evaluate("each => Reveal.slide(Reveal.getIndices(each.closest('.slides > section')).h)")
    figure.page.evaluate(WAIT_FOR_TRANSITIONS)


def check_fit(
    page: Page, settings: dict[str, list[dict[str, Any]]], max_height: float = np.inf
) -> None:
    """Check that the live figures of a page or deck fit at all of their settings, given by name."""
    for figure in page.locator("[data-live]").all():
        if "/slides/" in page.url:
            go_to_slide(figure)
        sizes = figure.evaluate(MEASURE, settings[figure.get_attribute("data-live") or ""])
        overflow, height = np.max(sizes, axis=0)
        assert overflow <= 0
        assert height <= max_height


def matches_up_to_scale(drawn: list[NDArray[Any]], values: list[NDArray[Any]]) -> bool:
    """Check whether drawn curves show the values, up to a scale and an origin common to all of them."""
    y, x = np.concatenate(drawn), np.concatenate(values)
    fitted = np.polyval(np.polyfit(x, y, 1), x)
    return bool(np.abs(fitted - y).max() < 0.01)  # in points, 72 to the inch
