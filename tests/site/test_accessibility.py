"""Run axe-core on every page, in light and dark, and on a phone; only minor violations are allowed.

axe-core spends most of its time on contrast, which it measures for each element. Contrast depends on the style sheets,
so it is tested in light and dark, but in one language only. All other rules are tested in light, in every language.
"""

import re
from itertools import groupby
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.lessons.live import WAIT_FOR_TRANSITIONS, find_live_figures, go_to_slide
from tests.site.browser import Open
from tests.site.conftest import LESSON, NOTEBOOKS, mark_release
from tests.site.conftest import PAGES as LESSONS
from tools.site.slides import get_deck_path
from tools.weave.lessons import LANGUAGES

NOTEBOOKS_BY_LESSON = [
    list(group) for _, group in groupby(NOTEBOOKS, key=lambda notebook: notebook.lesson)
]
# The first and the last deck of each lesson: they differ in language and framework.
DECKS = [
    get_deck_path(each)
    for notebooks in NOTEBOOKS_BY_LESSON
    for each in (notebooks[0], notebooks[-1])
]
PAGES = [
    "en/index.html",
    "en/agreement.html",
    "en/cheat-sheet.html",
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
    "zh-TW/cheat-sheet.html",
    "zh-TW/coming-from-d2l.html",
    "zh-TW/reference.html",
    "zh-TW/reference/d2l_compat/java/index.html",
    "zh-TW/reference/d2l_compat/jax/index.html",
    "zh-TW/slides.html",
    *LESSONS,
    *DECKS,
]

# One page of each kind.
EXAMPLE_PAGES = {
    "en/index.html",
    "en/agreement.html",
    "en/multi-head-attention.html",
    "en/reference/d2l_compat/alias/index.html",
    "en/reference/d2l_compat/java/index.html",
    "en/search.html?q=attention",
    "slides/en/pytorch/multi-head-attention.html",
}
assert {*PAGES} >= EXAMPLE_PAGES

# Pages whose colours a narrow window may change: the front page, a lesson, and all decks.
PHONE_CONTRAST_PAGES = {"en/index.html", LESSONS[0], *DECKS}
COLOUR_RULES = "color-contrast", "link-in-text-block"


def needs_contrast_test(path: str) -> bool:
    """Check whether this is the first language that has the page: contrast is tested only in this one."""
    languages = [*LANGUAGES]
    language = next(tag for tag in languages if f"{tag}/" in path)
    earlier_languages = languages[: languages.index(language)]
    return not any(path.replace(f"{language}/", f"{each}/") in PAGES for each in earlier_languages)


def find_violations_by_scheme(page: Page, contrast: bool = True) -> dict[str, dict[str, list[str]]]:
    """Return the violations in light and in dark."""
    page.emulate_media(color_scheme="light")
    by_scheme = {"light": find_violations(page, rules={"color-contrast": {"enabled": contrast}})}
    if contrast:
        page.emulate_media(color_scheme="dark")
        by_scheme["dark"] = find_violations(page, runOnly=COLOUR_RULES)
    return {scheme: violations for scheme, violations in by_scheme.items() if violations}


def find_violations(page: Page, **options: object) -> dict[str, list[str]]:
    """Return the violated rules, with the first elements that violate each."""
    page.evaluate(WAIT_FOR_TRANSITIONS)
    # Style sheets cannot be preloaded from file://. Reporting passed rules would take as long as testing them.
    options |= {"preload": False, "resultTypes": ["violations"]}
    violations = Axe().run(page, options=options).response["violations"]
    return {
        violation["id"]: [node["html"][:120] for node in violation["nodes"]][:5]
        for violation in violations
        if violation["impact"] != "minor"
    }


@pytest.mark.parametrize("path", mark_release(PAGES, always=EXAMPLE_PAGES))
def test_axe_accepts_a_page(open_page: Open, path: str):
    assert find_violations_by_scheme(open_page(path), contrast=needs_contrast_test(path)) == {}


@pytest.mark.parametrize("path", mark_release(DECKS, always=EXAMPLE_PAGES))
def test_axe_accepts_slides_with_live_figures(open_page: Open, path: str):
    page = open_page(path)
    for figure in find_live_figures(page):
        go_to_slide(figure)
        assert find_violations_by_scheme(page) == {}


@pytest.mark.parametrize("path", mark_release(PAGES, always=EXAMPLE_PAGES & {*DECKS}))
def test_axe_accepts_a_page_on_a_phone(open_page: Open, path: str):
    page = open_page(path, viewport={"width": 390, "height": 844})
    page.wait_for_load_state()
    # On a wide screen slides overlap, and axe-core cannot measure their contrast. On a phone they are stacked.
    if path in DECKS:
        assert find_violations_by_scheme(page) == {}
    else:
        rules = {"color-contrast": {"enabled": path in PHONE_CONTRAST_PAGES}}
        assert find_violations(page, rules=rules) == {}


def test_languages_have_the_same_colours(site: Path):
    sheets = [*site.glob("*/_static/*.css"), *site.glob("slides/*/reveal/*.css")]
    rules = [
        rule
        for sheet in sheets
        for rule in re.findall(r"[^{}]+\{[^{}]*\}", sheet.read_text("utf-8"))
    ]
    by_language = [rule for rule in rules if ":lang(" in rule or "[lang" in rule]
    assert by_language
    colours = re.compile(r"color|background|opacity|filter")
    assert [rule for rule in by_language if colours.search(rule)] == []


def test_a_table_that_is_too_wide_is_focusable(open_page: Open):
    # Its eight columns do not fit with any font.
    page = open_page("en/agreement.html", viewport={"width": 320, "height": 844})
    table = page.get_by_role("group", name="float32")
    table.focus()
    assert table.evaluate("box => box === document.activeElement")
    assert table.evaluate("box => box.scrollWidth > box.clientWidth")


def test_code_that_becomes_visible_and_is_too_wide_is_focusable(open_page: Open):
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


def test_a_table_that_fits_is_not_focusable(open_page: Open):
    page = open_page("en/agreement.html", viewport={"width": 320, "height": 844})
    expect(page.locator("[tabindex='0'][role].table-wrapper")).to_have_count(2)
    page.add_style_tag(content=".table-wrapper :is(th, td):nth-child(n + 2) { display: none; }")
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.locator("[tabindex].table-wrapper, .table-wrapper[role]")).to_have_count(0)
    expect(page.locator(".table-wrapper")).to_have_count(2)
