"""Test the bar, which is always visible: framework, menu, language and neighbouring lessons."""

import pytest
from playwright.sync_api import Page, expect

from d2l_compat.frameworks import FRAMEWORKS
from tests.site.browser import Open
from tests.site.conftest import LESSON, mark_release
from tests.site.test_frameworks import list_chosen_frameworks
from tools.weave.lessons import LANGUAGES, list_lessons

SCROLL_DOWN = "window.scrollTo({top: 13000, behavior: 'instant'})"
PHONE = (390, 844)
SCREENS = PHONE, (820, 1180), (1280, 900), (1920, 1080)
NAMES = [lesson.name for lesson in list_lessons()]


def open_scrolled_down(open_page: Open, path: str, screen: tuple[int, int] = (1280, 900)) -> Page:
    page = open_page(path, viewport={"width": screen[0], "height": screen[1]})
    page.wait_for_load_state()
    page.evaluate(SCROLL_DOWN)
    return page


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("screen", mark_release(SCREENS, always=[PHONE]))
def test_all_parts_are_visible_far_down(open_page: Open, language: str, screen: tuple[int, int]):
    page = open_scrolled_down(open_page, f"{language}/{LESSON}", screen)
    parts = page.locator(".bar :is(select, summary, a)").filter(visible=True)
    boxes = [part.bounding_box() for part in parts.all()]
    assert len(boxes) == 5  # previous, framework, menu, language, next
    ends = [0, *(end for box in boxes for end in (box["x"], box["x"] + box["width"]))]
    assert ends == sorted(ends)  # the parts do not overlap
    assert ends[-1] <= screen[0]
    assert all(box["y"] >= 0 and box["y"] + box["height"] <= 54 for box in boxes), boxes
    for part in parts.all():
        part.click(trial=True)  # nothing covers it
    for theme in page.locator(".theme-toggle:visible").all():
        theme.click(trial=True)
    assert abs(page.evaluate("scrollY") - 13000) < 2


@pytest.mark.parametrize("width", mark_release([390, 1280], always=[1280]))
def test_choosing_a_framework_does_not_move_the_text(open_page: Open, width: int):
    page = open_scrolled_down(open_page, f"en/{LESSON}", (width, 800))
    page.evaluate(
        """() => { window.read = [...document.querySelectorAll("article section > p")]
          .find((each) => each.getBoundingClientRect().top > 60) }"""
    )
    top = "read.getBoundingClientRect().top"
    page.evaluate(f"window.scrollBy({{top: {top} - 100, behavior: 'instant'}})")
    for framework in reversed(FRAMEWORKS):
        page.locator(".bar select").select_option(framework)
        assert list_chosen_frameworks(page) == {framework}
        assert abs(page.evaluate(top) - 100) < 2


def test_the_bar_shows_what_was_chosen_elsewhere(open_page: Open):
    page = open_page(f"en/{LESSON}?framework=mlx")
    expect(page.locator(".bar select")).to_have_value("mlx")
    page.locator(".sd-tab-set:not([id]) > label", has_text="JAX").click()
    expect(page.locator(".bar select")).to_have_value("jax")


@pytest.mark.parametrize("screen", mark_release(SCREENS, always=[PHONE]))
def test_the_menu_opens_and_closes(open_page: Open, screen: tuple[int, int]):
    page = open_scrolled_down(open_page, f"zh-TW/{LESSON}?framework=paddle", screen)
    menu, entries = page.locator(".bar summary"), page.locator(".bar .launch a")
    assert entries.filter(visible=True).count() == 0
    menu.click()
    assert entries.all_inner_texts() == ["Colab", "Kaggle", "Binder", "GitHub", "下載", "投影片"]
    for entry in entries.all():
        assert "paddle" in entry.get_attribute("href")
        entry.click(trial=True)
    page.keyboard.press("Escape")
    expect(entries.first).to_be_hidden()
    expect(menu).to_be_focused()
    page.locator(".bar select").select_option("djl")
    menu.click()
    assert entries.all_inner_texts() == ["Binder", "GitHub", "下載", "投影片"]
    page.mouse.click(screen[0] / 2, screen[1] - 60)
    expect(entries.first).to_be_hidden()


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["en"]))
@pytest.mark.parametrize("width", mark_release([390, 1280], always=[1280]))
def test_lessons_link_to_their_neighbours(open_page: Open, language: str, width: int):
    page = open_page(f"{language}/{NAMES[0]}.html", viewport={"width": width, "height": 800})
    for before, after in zip([None, *NAMES[:-1]], [*NAMES[1:], None], strict=True):
        assert page.locator(".bar a[rel=prev]").count() == bool(before)
        assert page.locator(".bar a[rel=next]").count() == bool(after)
        if after:
            title = page.locator(".bar a[rel=next]").get_attribute("title")
            page.locator(".bar a[rel=next]").click()
            page.wait_for_url(f"**/{language}/{after}.html")
            assert page.locator("h1").evaluate("each => each.firstChild.data") == title


@pytest.mark.parametrize("language", mark_release(LANGUAGES, always=["zh-TW"]))
def test_a_cell_has_its_frameworks_name_and_no_tabs(open_page: Open, language: str):
    page = open_page(f"{language}/{LESSON}?framework=mxnet")
    cell = page.locator("#cell-binary")
    labels = cell.locator("> label").filter(visible=True)
    assert labels.all_inner_texts() == ["MXNet"]
    # It is in the same box as the code, above its first line.
    label, code = labels.first.bounding_box(), cell.locator("pre:visible").first
    padding = code.evaluate("each => parseFloat(getComputedStyle(each).paddingTop)")
    assert 0 <= label["y"] - code.bounding_box()["y"] <= padding - label["height"]
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.locator(".sd-tab-set[id] > label").filter(visible=True).count() == 0


def test_consecutive_cells_are_close_together(open_page: Open):
    page = open_page(f"en/{LESSON}")
    first, second = (
        page.locator(f"#cell-{name}").bounding_box() for name in ("influence", "influence-heatmaps")
    )
    assert 0 <= second["y"] - (first["y"] + first["height"]) < 10


def test_a_framework_in_the_front_pages_address_is_chosen_in_lessons(open_page: Open):
    page = open_page("index.html?framework=jax")
    page.wait_for_url("**/en/index.html?framework=jax")
    page.locator(f"article a[href='{LESSON}']").first.click()
    page.wait_for_url(f"**/{LESSON}")
    assert list_chosen_frameworks(page) == {"jax"}


def test_the_tab_key_skips_the_hidden_tabs_of_cells(open_page: Open):
    page = open_page(f"en/{LESSON}")
    assert page.locator(".sd-tab-set[id] > input").filter(visible=True).count() == 0
    group = page.locator(".sd-tab-set:not([id])")
    expect(group).to_have_role("radiogroup")
    expect(group).to_have_accessible_name("Framework")
