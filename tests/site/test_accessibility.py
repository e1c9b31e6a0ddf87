"""axe-core, on every page, in light and in dark, and on a telephone: nothing but what it calls minor.

Contrast is found element by element, which takes most of its time. It is the style sheets', so it is tried where
they differ: in light and in dark, and in one language of those that a page is told in; all else is tried everywhere.
"""

import re
from itertools import groupby
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser import Open
from tests.live import live_on_slides, turn_to
from tests.site.conftest import EDITIONS
from tests.site.conftest import PAGES as LESSONS
from tools.site.slides import deck_path
from tools.weave.lessons import LANGUAGES

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


# Whose colours a narrow window may change: the pages of one lesson, the first page, and all decks.
ON_A_TELEPHONE = {"en/index.html", LESSONS[0], *DECKS}

# Colours change slowly.
FADED = """() => Promise.all(
    document.getAnimations().filter(each => each instanceof CSSTransition).map(each => each.finished)
)"""


def shows_all_colours(path: str) -> bool:
    """No page here is the same in a language before its own."""
    languages = [*LANGUAGES]
    own = next(language for language in languages if f"{language}/" in path)
    before = languages[: languages.index(own)]
    return not any(path.replace(f"{own}/", f"{other}/") in PAGES for other in before)


def findings(page: Page, contrast: bool = True) -> dict[str, list[str]]:
    """By rule, with the first elements that break it."""
    page.evaluate(FADED)
    # Its own look at the style sheets would be refused from file://. What it says of all that is
    # right would take as long as to find it.
    options = {
        "preload": False,
        "resultTypes": ["violations"],
        "rules": {"color-contrast": {"enabled": contrast}},
    }
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
        assert findings(page, contrast=shows_all_colours(path)) == {}, scheme


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
        assert findings(page, contrast=path in ON_A_TELEPHONE) == {}, scheme


def test_no_language_has_colours_of_its_own(site: Path):
    sheets = [*site.glob("*/_static/*.css"), *site.glob("slides/*/reveal/*.css")]
    rules = [
        rule for sheet in sheets for rule in re.findall(r"[^{}]+\{[^{}]*\}", sheet.read_text())
    ]
    of_one = [rule for rule in rules if ":lang(" in rule or "[lang" in rule]
    assert of_one
    assert [rule for rule in of_one if re.search(r"color|background|opacity|filter", rule)] == []


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
