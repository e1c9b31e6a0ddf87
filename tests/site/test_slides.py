"""The decks: everything fits, the speaker has notes, and all of it offline."""

import pytest
from playwright.sync_api import expect

from tests.browser import Open
from tests.site.conftest import EDITIONS, LESSON
from tools.site.slides import deck_path
from tools.weave.lessons import Edition

READS = "build/site/**/*.html", "build/site/**/_static/**/*"

MEASURE = """() => Reveal.getSlides().map((slide, number) => {
  Reveal.slide(number);
  const shown = Reveal.getCurrentSlide();
  const pictures = [...shown.querySelectorAll(":scope > img, :scope p img")];
  return {
    heading: shown.querySelector("h1, h2")?.textContent,
    height: shown.scrollHeight,
    width: shown.scrollWidth,
    wide: [...shown.querySelectorAll("pre, div.math")].some((box) => box.scrollWidth > box.clientWidth + 1),
    notes: shown.querySelector("aside.notes")?.textContent.trim().length,
    said: pictures.every((picture) => picture.naturalWidth && picture.alt.length > 40),
  };
})"""


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_every_slide_fits_and_has_notes(open_page: Open, edition: Edition):
    page = open_page(deck_path(edition))
    assert page.locator("html").get_attribute("lang") == edition.language
    slides = page.evaluate(MEASURE)
    assert len(slides) == edition.text.read_text(encoding="utf-8").count(":::{slide}")
    for slide in slides:
        assert slide["heading"], slide
        assert slide["height"] <= 700, slide
        assert slide["width"] <= 960, slide
        assert not slide["wide"], slide
        assert slide["notes"] > 40, slide
        assert slide["said"], slide


def test_the_code_on_a_slide_is_the_frameworks_own(open_page: Open):
    for framework, code in (("pytorch", "attention.eval()"), ("djl", "new MultiHeadAttention")):
        page = open_page(f"slides/en/{framework}/{LESSON}#/5")
        expect(page.locator("section.present .highlight")).to_contain_text(code)


def test_the_speaker_sees_the_notes_in_a_window_of_their_own(open_page: Open):
    page = open_page(f"slides/en/jax/{LESSON}#/5")
    with page.context.expect_page() as opened:
        page.keyboard.press("s")
    notes = opened.value.locator(".speaker-controls-notes")
    expect(notes).to_contain_text("One softmax gives each word one average.")


def test_a_deck_leads_back_to_its_lesson(open_page: Open):
    page = open_page(f"slides/zh-TW/mxnet/{LESSON}")
    page.locator(".credit a").first.click()
    page.wait_for_url(f"**/zh-TW/{LESSON}?framework=mxnet")
    expect(page.locator(".bar select")).to_have_value("mxnet")
