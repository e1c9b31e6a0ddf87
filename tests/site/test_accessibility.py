"""axe-core, on every page, in light and in dark, and on a telephone: nothing but what it calls minor."""

from itertools import groupby

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser import Open
from tests.live import live_on_slides, turn_to
from tests.site.conftest import EDITIONS
from tests.site.conftest import PAGES as LESSONS
from tools.site.slides import deck_path

READS = "markup of build/site/**/*.html", "build/site/**/_static/**/*"

# Of each lesson the first and the last: they differ in language and framework.
OF_LESSONS = [list(each) for _, each in groupby(EDITIONS, key=lambda edition: edition.folder)]
DECKS = [deck_path(each) for editions in OF_LESSONS for each in (editions[0], editions[-1])]
PAGES = [
    "en/index.html",
    "en/agreement.html",
    "en/coming-from-d2l.html",
    "en/reference.html",
    "en/reference/d2l_compat/java/index.html",
    "en/reference/d2l_compat/torch/index.html",
    "en/regression.html",
    "en/search.html",
    "en/search.html?q=attention",
    "en/slides.html",
    "zh-TW/index.html",
    "zh-TW/agreement.html",
    "zh-TW/coming-from-d2l.html",
    "zh-TW/reference.html",
    "zh-TW/reference/d2l_compat/java/index.html",
    "zh-TW/reference/d2l_compat/jax/index.html",
    "zh-TW/slides.html",
    *LESSONS,
    *DECKS,
]


# Colours change slowly.
FADED = """() => Promise.all(
    document.getAnimations().filter(each => each instanceof CSSTransition).map(each => each.finished)
)"""


def findings(page: Page) -> dict[str, list[str]]:
    """By rule, with the first elements that break it."""
    page.evaluate(FADED)
    # Its own look at the style sheets would be refused from file://. What it says of all that is
    # right would take as long as to find it.
    options = {"preload": False, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return {
        violation["id"]: [node["html"][:120] for node in violation["nodes"]][:5]
        for violation in found
        if violation["impact"] != "minor"
    }


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_found(open_page: Open, path: str):
    page = open_page(path)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert findings(page) == {}, scheme


@pytest.mark.parametrize("path", DECKS)
def test_nothing_is_found_on_a_slide_with_a_live_figure(open_page: Open, path: str):
    page = open_page(path)
    for figure in live_on_slides(page):
        turn_to(figure)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert findings(page) == {}, scheme


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_found_on_a_telephone(open_page: Open, path: str):
    page = open_page(path, viewport={"width": 390, "height": 844})
    page.wait_for_load_state()
    # Of slides that are stacked, axe-core cannot tell the contrast: it is told here, for decks in both.
    for scheme in ("light", "dark") if path in DECKS else ("light",):
        page.emulate_media(color_scheme=scheme)
        assert findings(page) == {}, scheme


def test_keys_reach_a_table_that_is_too_wide_for_the_window(open_page: Open):
    page = open_page("en/agreement.html", viewport={"width": 390, "height": 844})
    table = page.get_by_role("group", name="float32")
    table.focus()
    assert table.evaluate("box => box === document.activeElement")
    assert table.evaluate("box => box.scrollWidth > box.clientWidth")


def test_a_table_that_fits_is_no_stop_for_keys(open_page: Open):
    page = open_page("en/agreement.html")
    page.add_style_tag(content=".table-wrapper table { font-size: 2px; }")
    page.set_viewport_size({"width": 1300, "height": 900})
    page.wait_for_timeout(300)
    assert page.locator(".table-wrapper").count() == 2
    assert page.locator("[tabindex='0'].table-wrapper, .table-wrapper[role]").count() == 0
