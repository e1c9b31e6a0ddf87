"""What the claims of live figures (LESSON/live/claims.py) compare: a page's figures, and those stored in notebooks.
And those in decks.
"""

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
# Slides move slowly.
TURNED = """() => Promise.all(
    document.getAnimations().filter(each => each instanceof CSSTransition).map(each => each.finished)
)"""
POINT = re.compile(r"[ML] (\S+) (\S+)")


def cells(lesson: str) -> dict[str, Any]:
    """The cells of a lesson's original notebook, by their names."""
    notebook = ROOT / "notebooks" / "en" / "pytorch" / f"{lesson}.ipynb"
    return {cell.id: cell for cell in nbformat.read(notebook, as_version=4).cells}


def figure(lesson: str, name: str) -> ElementTree.Element:
    """The stored figure of a notebook's cell."""
    shown = [output.get("data", {}) for output in cells(lesson)[name].outputs]
    return ElementTree.fromstring(next(data[figures.SVG] for data in shown if figures.SVG in data))


def curves(lesson: str, name: str, points: int) -> list[NDArray[np.float64]]:
    """The heights of a figure's curves, in its own units, downwards."""
    drawn = []
    for path in figure(lesson, name).iter(f"{SVG}path"):
        found = POINT.findall(path.get("d", ""))
        if len(found) == points and COLOUR.search(path.get("style", "")):
            drawn.append(np.array([float(y) for _, y in found]))
    return drawn


def state(page: Page, name: str, **settings: Any) -> dict[str, Any]:
    """What a live figure shows, after it was set."""
    return states(page, name, [settings])[0]


def states(page: Page, name: str, settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a live figure shows, each time that it was set."""
    live = page.locator(f'[data-live="{name}"]')
    return live.evaluate(
        "(root, all) => all.map(one => { root.live.set(one); return root.live.state(); })", settings
    )


def live_on_slides(page: Page) -> list[Locator]:
    """Those of a deck, each on a slide."""
    found = page.locator(".slides [data-live]").all()
    assert found
    return found


def turn_to(figure: Locator) -> None:
    """Turns a deck to the slide that has it."""
    figure.evaluate("each => Reveal.slide(Reveal.getIndices(each.closest('.slides > section')).h)")
    figure.page.evaluate(TURNED)


def lies_on(drawn: list[NDArray[Any]], values: list[NDArray[Any]]) -> bool:
    """Whether curves as drawn are the values, but for one scale and one origin for all."""
    y, x = np.concatenate(drawn), np.concatenate(values)
    fitted = np.polyval(np.polyfit(x, y, 1), x)
    return bool(np.abs(fitted - y).max() < 0.01)  # of a point, a 72nd of an inch
