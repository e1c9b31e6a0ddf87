"""axe-core, on every page, in light and in dark, and on a telephone: nothing but what it calls minor.

Contrast is found element by element, which takes most of its time. It is the style sheets', so it is tried where
they differ: in light and in dark, and in one language of those that a page is told in. All else is tried everywhere,
but in the dark: only colours differ there.
"""

import re
from itertools import groupby
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.lessons.live import TURNED, live_on_slides, turn_to
from tests.site.browser import Open
from tests.site.conftest import EDITIONS, LESSON, leave_to_release
from tests.site.conftest import PAGES as LESSONS
from tools.site.slides import deck_path
from tools.weave.lessons import LANGUAGES

# Of each lesson the first and the last: they differ in language and framework.
OF_LESSONS = [list(each) for _, each in groupby(EDITIONS, key=lambda edition: edition.folder)]
DECKS = [deck_path(each) for editions in OF_LESSONS for each in (editions[0], editions[-1])]
PAGES = [
    "en/index.html",
    "en/agreement.html",
    "en/coming-from-d2l.html",
    "en/reference.html",
    "en/reference/d2l_compat/alias/index.html",
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


# One of each kind.
OF_EACH_KIND = {
    "en/index.html",
    "en/agreement.html",
    "en/multi-head-attention.html",
    "en/reference/d2l_compat/alias/index.html",
    "en/reference/d2l_compat/java/index.html",
    "en/search.html?q=attention",
    "slides/en/pytorch/multi-head-attention.html",
}
assert {*PAGES} >= OF_EACH_KIND

# Whose colours a narrow window may change: the pages of one lesson, the first page, and all decks.
ON_A_TELEPHONE = {"en/index.html", LESSONS[0], *DECKS}

# The rules that a colour may break.
COLOURS = "color-contrast", "link-in-text-block"


def shows_all_colours(path: str) -> bool:
    """No page here is the same in a language before its own."""
    languages = [*LANGUAGES]
    own = next(language for language in languages if f"{language}/" in path)
    before = languages[: languages.index(own)]
    return not any(path.replace(f"{own}/", f"{other}/") in PAGES for other in before)


def in_both_schemes(page: Page, contrast: bool = True) -> dict[str, dict[str, list[str]]]:
    """In light and in dark, what :func:`findings` has found."""
    page.emulate_media(color_scheme="light")
    found = {"light": findings(page, rules={"color-contrast": {"enabled": contrast}})}
    if contrast:
        page.emulate_media(color_scheme="dark")
        found["dark"] = findings(page, runOnly=COLOURS)
    return {scheme: faults for scheme, faults in found.items() if faults}


def findings(page: Page, **options: object) -> dict[str, list[str]]:
    """By rule, with the first elements that break it."""
    page.evaluate(TURNED)  # colours change slowly
    # Its own look at the style sheets would be refused from file://. What it says of all that is
    # right would take as long as to find it.
    options |= {"preload": False, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return {
        violation["id"]: [node["html"][:120] for node in violation["nodes"]][:5]
        for violation in found
        if violation["impact"] != "minor"
    }


@pytest.mark.parametrize("path", leave_to_release(PAGES, but=OF_EACH_KIND))
def test_nothing_is_found(open_page: Open, path: str):
    assert in_both_schemes(open_page(path), contrast=shows_all_colours(path)) == {}


@pytest.mark.parametrize("path", leave_to_release(DECKS, but=OF_EACH_KIND))
def test_nothing_is_found_on_a_slide_with_a_live_figure(open_page: Open, path: str):
    page = open_page(path)
    for figure in live_on_slides(page):
        turn_to(figure)
        assert in_both_schemes(page) == {}


@pytest.mark.parametrize("path", leave_to_release(PAGES, but=OF_EACH_KIND & {*DECKS}))
def test_nothing_is_found_on_a_telephone(open_page: Open, path: str):
    page = open_page(path, viewport={"width": 390, "height": 844})
    page.wait_for_load_state()
    # Of slides that are stacked, axe-core cannot tell the contrast: it is told here, for decks in both.
    if path in DECKS:
        assert in_both_schemes(page) == {}
    else:
        rules = {"color-contrast": {"enabled": path in ON_A_TELEPHONE}}
        assert findings(page, rules=rules) == {}


def test_no_language_has_colours_of_its_own(site: Path):
    sheets = [*site.glob("*/_static/*.css"), *site.glob("slides/*/reveal/*.css")]
    rules = [
        rule
        for sheet in sheets
        for rule in re.findall(r"[^{}]+\{[^{}]*\}", sheet.read_text("utf-8"))
    ]
    of_one = [rule for rule in rules if ":lang(" in rule or "[lang" in rule]
    assert of_one
    assert [rule for rule in of_one if re.search(r"color|background|opacity|filter", rule)] == []


def test_keys_reach_a_table_that_is_too_wide_for_the_window(open_page: Open):
    # However narrow letters are, its eight columns have no room there.
    page = open_page("en/agreement.html", viewport={"width": 320, "height": 844})
    table = page.get_by_role("group", name="float32")
    table.focus()
    assert table.evaluate("box => box === document.activeElement")
    assert table.evaluate("box => box.scrollWidth > box.clientWidth")


def test_keys_reach_what_comes_into_sight_later_and_is_too_wide(open_page: Open):
    page = open_page(f"en/{LESSON}", viewport={"width": 390, "height": 844})
    page.locator(".bar select").select_option("djl")
    for button in page.locator(".show-solution").all():
        button.click()
    code = page.locator(".highlight pre").filter(visible=True)
    page.wait_for_function(
        """([...all]) => all.filter(each => each.scrollWidth > each.clientWidth)
             .every(each => each.getAttribute("tabindex") === "0" && each.ariaLabel)""",
        arg=code.element_handles(),
    )


def test_a_table_that_fits_is_no_stop_for_keys(open_page: Open):
    page = open_page("en/agreement.html", viewport={"width": 320, "height": 844})
    expect(page.locator("[tabindex='0'][role].table-wrapper")).to_have_count(2)
    page.add_style_tag(content=".table-wrapper :is(th, td):nth-child(n + 2) { display: none; }")
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.locator("[tabindex].table-wrapper, .table-wrapper[role]")).to_have_count(0)
    expect(page.locator(".table-wrapper")).to_have_count(2)
