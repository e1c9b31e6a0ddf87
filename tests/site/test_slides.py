"""Test that everything on a deck fits, that live figures work, and that the speaker has notes."""

from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.lessons.live import find_live_figures, go_to_slide
from tests.site.browser import Open
from tests.site.conftest import FIRST_NOTEBOOKS, LESSON, NOTEBOOKS, mark_release
from tools.site.slides import get_deck_path
from tools.weave.lessons import Notebook

DECKS = [*map(get_deck_path, FIRST_NOTEBOOKS)]
LONGEST_NOTEBOOKS = [
    notebook for notebook in FIRST_NOTEBOOKS if notebook.lesson.name == LESSON.removesuffix(".html")
]
LONGEST_DECK = get_deck_path(LONGEST_NOTEBOOKS[0])
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}

MEASURE = """() => Reveal.getSlides().map((slide, number) => {
  Reveal.slide(number);
  const current = Reveal.getCurrentSlide();
  const images = [...current.querySelectorAll(":scope > img, :scope p img")];
  return {
    heading: current.querySelector("h1, h2")?.textContent,
    height: current.scrollHeight,
    width: current.scrollWidth,
    wide: [...current.querySelectorAll("pre, div.math")].some((box) => box.scrollWidth > box.clientWidth + 1),
    notes: current.querySelector("aside.notes")?.textContent.trim().length,
    described: images.every((image) => image.naturalWidth && image.alt.length > 40),
  };
})"""


@pytest.mark.parametrize("notebook", mark_release(NOTEBOOKS, always=FIRST_NOTEBOOKS), ids=str)
def test_every_slide_fits_and_has_notes(open_page: Open, notebook: Notebook):
    page = open_page(get_deck_path(notebook))
    assert page.locator("html").get_attribute("lang") == notebook.language
    slides = page.evaluate(MEASURE)
    assert len(slides) == notebook.text.read_text(encoding="utf-8").count(":::{slide}")
    for slide in slides:
        assert slide["heading"], slide
        assert slide["height"] <= 700, slide
        assert slide["width"] <= 960, slide
        assert not slide["wide"], slide
        assert slide["notes"] > 40, slide
        assert slide["described"], slide


def test_the_code_on_a_slide_is_in_the_decks_framework(open_page: Open):
    for framework, code in (("pytorch", "attention.eval()"), ("djl", "new MultiHeadAttention")):
        page = open_page(f"slides/en/{framework}/{LESSON}#/4")
        expect(page.locator("section.present .highlight")).to_contain_text(code)


def test_the_speakers_window_shows_the_notes(open_page: Open):
    page = open_page(f"slides/en/jax/{LESSON}#/5")
    with page.context.expect_page() as window:
        page.keyboard.press("s")
    notes = window.value.locator(".speaker-controls-notes")
    expect(notes).to_contain_text("Look again at the formula.")


def test_a_deck_links_to_its_lesson(open_page: Open):
    page = open_page(f"slides/zh-TW/mxnet/{LESSON}")
    link = page.locator(".credit a").first
    expect(link).to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/zh-TW/{LESSON}?framework=mxnet")
    expect(page.locator(".bar select")).to_have_value("mxnet")


# Live figures on slides


def find_current_slide(page: Page) -> int:
    """Return the index of the current slide."""
    return page.evaluate("Reveal.getIndices().h")


@pytest.mark.parametrize("path", mark_release(DECKS, always=[LONGEST_DECK]))
def test_a_live_figure_captures_keys_until_escape(open_page: Open, path: str):
    page = open_page(path)
    for figure in find_live_figures(page):
        go_to_slide(figure)
        index = find_current_slide(page)
        for slider in figure.locator("input[type=range]").all():
            for key in ("Home", "ArrowRight"):
                before = slider.input_value()
                slider.press(key)
            assert slider.input_value() != before
        for box in figure.locator("input[type=checkbox]").all():
            box.press("Space")
            assert box.is_checked()
        for button in figure.locator("button").all():
            before = figure.evaluate("each => JSON.stringify(each.live.state())")
            button.press("Space")
            assert figure.evaluate("each => JSON.stringify(each.live.state())") != before
            button.press("ArrowRight")
        assert find_current_slide(page) == index
        page.keyboard.press("Escape")
        assert not page.evaluate("Reveal.isOverview()")
        page.keyboard.press("ArrowRight")
        assert find_current_slide(page) == index + 1


def test_a_remote_control_changes_the_slide_from_a_live_figure(open_page: Open):
    page = open_page(f"slides/en/jax/{LESSON}")
    figure = find_live_figures(page)[0]
    go_to_slide(figure)
    index = find_current_slide(page)
    for key, expected in (("PageDown", index + 1), ("PageUp", index)):
        figure.locator("input").first.evaluate("each => each.focus()")
        page.keyboard.press(key)
        assert find_current_slide(page) == expected


@pytest.mark.parametrize("path", mark_release(DECKS, always=[LONGEST_DECK]))
def test_a_slide_with_a_live_figure_fits_with_any_setting(open_page: Open, path: str):
    page = open_page(path)
    for figure in find_live_figures(page):
        go_to_slide(figure)
        for text_field in figure.locator("input[type=text]").all():
            text_field.fill("one two three four five six seven eight nine")
        for box in figure.locator("input[type=checkbox]").all():
            for checked in (False, True):
                box.set_checked(checked)
                for slider in figure.locator("input[type=range]").all():
                    for end in ("End", "Home"):
                        slider.press(end)
                        fits = "each => each.scrollHeight <= 700 && each.scrollWidth <= 960"
                        assert figure.locator("xpath=ancestor::section[1]").evaluate(fits)


def test_a_live_figure_follows_mouse_and_finger(open_page: Open):
    page = open_page(
        "slides/en/jax/attention.html", viewport={"width": 1500, "height": 1100}, has_touch=True
    )
    (figure,) = find_live_figures(page)
    go_to_slide(figure)
    index = find_current_slide(page)
    state = "each => each.live.state()"

    is_unscaled = "plot => Math.abs(plot.viewBox.baseVal.width - plot.clientWidth) < 1"
    assert figure.locator(".live-plot").evaluate(is_unscaled)  # so its labels are as large as text
    plot = figure.locator(".live-plot").bounding_box()
    page.mouse.move(plot["x"] + plot["width"] / 4, plot["y"] + plot["height"] / 2)
    ring = figure.locator(".live-target").bounding_box()
    distance = ring["x"] + ring["width"] / 2 - plot["x"] - plot["width"] / 4
    assert abs(distance) <= plot["width"] / 200  # half a step of a slider with 100 steps

    slider = figure.get_by_role("slider").first
    box = slider.bounding_box()
    before = figure.evaluate(state)["width"]
    y = box["y"] + box["height"] / 2
    drag_finger(page, [(box["x"] + box["width"] * tenth / 10, y) for tenth in range(4, 10)])
    assert figure.evaluate(state)["width"] > before
    assert find_current_slide(page) == index


def drag_finger(page: Page, points: list[tuple[float, float]]) -> None:
    """Move a finger over the screen through these points."""
    devtools = page.context.new_cdp_session(page)
    for number, (x, y) in enumerate(points):
        kind = "touchMove" if number else "touchStart"
        event = {"type": kind, "touchPoints": [{"x": x, "y": y}]}
        devtools.send("Input.dispatchTouchEvent", event)
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


@pytest.mark.parametrize("path", mark_release(DECKS, always=[LONGEST_DECK]))
def test_decks_load_live_figures_from_the_files_of_the_page(open_page: Open, path: str):
    list_scripts = "[...document.scripts].map(each => each.src.split('?')[0]).filter(each => each.includes('/live/'))"
    deck_scripts = open_page(path).evaluate(list_scripts)
    _, language, _, lesson = path.split("/")
    page_scripts = open_page(f"{language}/{lesson}").evaluate(list_scripts)
    assert deck_scripts
    assert {*deck_scripts} <= {*page_scripts}


def test_the_tab_key_skips_hidden_slides(open_page: Open):
    page = open_page(f"slides/en/jax/{LESSON}")
    (figure,) = find_live_figures(page)
    go_to_slide(figure)
    page.keyboard.press("ArrowLeft")  # the figure is now on the next slide, already laid out
    for _ in range(8):
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('section:not(.present)')")


# Decks on phones and on paper

# Measures the positions, the right edge and the font sizes of stacked slides.
MEASURE_STACKED = """() => [...document.querySelectorAll(".slides > section")].map((slide) => {
  const box = slide.getBoundingClientRect();
  const scrolled = "pre, div.math, table:not(.live *)";
  const parts = [...slide.querySelectorAll("*")].filter((each) => each.getClientRects().length);
  const scale = box.width / slide.offsetWidth;
  const size = (each) => scale * parseFloat(getComputedStyle(each).fontSize);
  return {
    heading: slide.querySelector("h1, h2").textContent,
    top: box.top,
    bottom: box.bottom,
    right: Math.max(...parts.filter((each) => !each.parentElement.closest(scrolled))
      .map((each) => each.getBoundingClientRect().right)),
    small: Math.min(...parts.filter((each) => each.matches("p:not(.live *, .credit *), li")).map(size), 99),
    smallest: Math.min(...parts.filter((each) => !each.closest("math, img")).map(size)),
    unreachable: parts.filter((each) => each.matches(scrolled) && each.scrollWidth > each.clientWidth
      && (each.tabIndex < 0 || getComputedStyle(each).overflowX !== "auto")).length,
    notes: slide.querySelector("aside.notes").getClientRects().length,
  };
})"""


@pytest.mark.parametrize("path", mark_release(DECKS, always=[LONGEST_DECK]))
@pytest.mark.parametrize("width", mark_release([320, 390], always=[320]))
def test_slides_are_stacked_on_a_phone(open_page: Open, path: str, width: int):
    page = open_page(f"{path}#/2", **PHONE | {"viewport": {"width": width, "height": 844}})
    page.wait_for_load_state()
    slides = page.evaluate(MEASURE_STACKED)
    is_at_end = page.evaluate("innerHeight + scrollY > document.documentElement.scrollHeight - 1")
    top = slides[2]["top"]  # of the slide in the address
    assert -1 < top < (844 if is_at_end else 1)
    for before, after in pairwise(slides):
        assert before["top"] < before["bottom"] <= after["top"] + 1
    for slide in slides:
        assert slide["right"] <= width, slide
        assert slide["small"] >= 16, slide
        assert slide["smallest"] >= 12, slide
        assert not slide["unreachable"], slide
        assert not slide["notes"], slide


def test_a_live_figure_works_on_a_phone(open_page: Open):
    page = open_page("slides/zh-TW/jax/attention.html", **PHONE)
    (figure,) = find_live_figures(page)
    slider = figure.get_by_role("slider").first
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    before = slider.input_value()
    page.touchscreen.tap(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    assert int(slider.input_value()) > int(before)


@pytest.mark.release  # `make test` opens decks at both widths
def test_resizing_the_window_stacks_and_unstacks_slides(open_page: Open):
    # The deck reloads itself. Chromium crashed on this in a tab that had shown other pages.
    page = open_page(f"slides/en/jax/{LESSON}", in_new_tab=True)
    for width, is_stacked in ((390, True), (1280, False)):
        page.set_viewport_size({"width": width, "height": 844})
        expect(page.locator(".slides > section").last).to_be_visible(visible=is_stacked)
        expect(page.locator(".controls")).to_have_count(0 if is_stacked else 1)


def test_slides_in_the_speakers_window_are_not_stacked(open_page: Open):
    page = open_page(f"slides/en/jax/{LESSON}?receiver", viewport={"width": 300, "height": 200})
    expect(page.locator(".controls")).to_have_count(1)


@pytest.mark.parametrize("path", mark_release(DECKS, always=[LONGEST_DECK]))
def test_slides_are_stacked_in_print(open_page: Open, path: str):
    page = open_page(path, color_scheme="dark", viewport={"width": 794, "height": 1123})
    go_to_slide(find_live_figures(page)[0])
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    slides = page.evaluate(MEASURE_STACKED)
    for before, after in pairwise(slides):
        assert before["top"] < before["bottom"] <= after["top"] + 1
    assert max(slide["right"] for slide in slides) <= 794
    assert not any(slide["notes"] for slide in slides)
    expect(page.locator(".controls, .slide-number").first).to_be_hidden()
    color = "each => getComputedStyle(each).color"
    for text in page.locator("h2, .live label").all():
        assert text.evaluate(color) == "rgb(27, 31, 36)"
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("html.page").count() == 0
    assert page.evaluate("""!document.querySelector('link[href$="/reveal.css"]').sheet.disabled""")
