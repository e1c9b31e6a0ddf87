"""Test readers' paths through the site, from the front page to their goals, by clicks and taps only.

The site comes from a server on this machine, because browsers save no downloads from file://. tests/elsewhere
tests whether the downloaded files work.
"""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.conftest import run_server
from tests.site.conftest import LESSON, mark_release
from tools.project.dist import WHEEL
from tools.site.words import SITE_TEXT
from tools.weave.launch import D2L_FIRST_CELL, INSTALL, INSTALL_FROM_CLONE
from tools.weave.lessons import LANGUAGES, ROOT, list_lessons
from tools.weave.prose import read_title

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1280, "height": 900}}


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with run_server(partial(SimpleHTTPRequestHandler, directory=site)) as address:
        yield address


@pytest.fixture(params=mark_release(LANGUAGES, always=["en"]))
def language(request: pytest.FixtureRequest) -> str:
    return request.param


def open_front_page(browser: Browser, address: str, language: str, **device: object) -> Page:
    """Open the front page in the reader's language."""
    device |= {"locale": "en-US", "permissions": ["clipboard-read"]}
    page = browser.new_context(**device).new_page()
    page.goto(address)
    page.wait_for_url("**/index.html")
    if f"/{language}/" not in page.url:
        page.get_by_role("link", name=LANGUAGES[language]).filter(visible=True).first.click()
    page.wait_for_url(f"**/{language}/index.html")
    return page


def download(page: Page, link: Locator) -> Path:
    with page.expect_download() as file:
        link.click()
    return Path(file.value.path())


def copy_code(page: Page, block: Locator) -> str:
    block.hover()
    block.locator("button.copybtn").click()
    return page.evaluate("navigator.clipboard.readText()").strip()


def test_a_reader_can_repair_a_notebook_of_d2l(browser: Browser, address: str, language: str):
    page = open_front_page(browser, address, language, **DESKTOP)
    page.locator("article a[href$='coming-from-d2l.html']").click()
    blocks = page.locator("article div.highlight:has(> pre)")
    assert copy_code(page, blocks.nth(0)) == D2L_FIRST_CELL
    assert copy_code(page, blocks.nth(1)) == INSTALL_FROM_CLONE
    # The wheel is for readers who cannot reach the repository.
    page.locator("article a[href$='index.html']").first.click()
    link = page.get_by_role("link", name=WHEEL)
    assert download(page, link).read_bytes().startswith(b"PK")
    page.context.close()


def test_a_teacher_can_show_slides_and_solutions(browser: Browser, address: str, language: str):
    name = read_title(ROOT / "lessons" / LESSON.removesuffix(".html") / f"text.{language}.md")
    page = open_front_page(browser, address, language, **DESKTOP)
    page.locator(".sidebar-tree a[href$='slides.html']").click()
    page.locator("article li", has_text=name).get_by_role("link", name="JAX").click()
    page.locator(".reveal.ready").wait_for()
    with page.expect_popup() as window:
        page.keyboard.press("s")
    notes = window.value.locator(".speaker-controls-notes .value")
    expect(notes).not_to_be_empty()
    window.value.close()
    page.get_by_role("link", name=name).click()
    page.wait_for_url(f"**/{language}/{LESSON}?framework=jax")
    expect(page.locator(".bar select")).to_have_value("jax")
    solution = page.locator('section[id$="solutions"] > section').first
    paragraphs = solution.locator("p").filter(visible=True)
    expect(paragraphs).to_have_count(0)
    solution.get_by_role("button", name=SITE_TEXT[language].solution).click()
    expect(paragraphs.first).to_be_in_viewport()
    page.locator(".bar summary").click()
    link = page.locator(".bar details").get_by_role("link", name=SITE_TEXT[language].download)
    content = nbformat.read(download(page, link), as_version=4)
    assert content.cells[0].source.startswith(f"# {name}")
    (install,) = (cell for cell in content.cells if cell.id == INSTALL)
    assert 'd2l_compat.install("jax")' in install.source
    page.context.close()


def test_a_reader_can_download_a_notebook_on_a_phone(browser: Browser, address: str, language: str):
    page = open_front_page(browser, address, language, **PHONE)
    page.locator(".gallery a").first.tap()
    page.wait_for_url(f"**/{language}/{list_lessons()[0].name}.html")
    page.evaluate("window.scrollTo({top: 5000, behavior: 'instant'})")
    page.locator(".bar summary").tap()
    menu = page.locator(".bar details a")
    assert menu.count() == 6
    for button in menu.all()[:4]:
        assert button.get_attribute("href").startswith("https://")
        button.tap(trial=True)  # without opening it, which needs a network
    assert page.evaluate("scrollY") == pytest.approx(5000, abs=2)
    link = page.locator(".bar details").get_by_role("link", name=SITE_TEXT[language].download)
    content = nbformat.read(download(page, link), as_version=4)
    assert INSTALL in [cell.id for cell in content.cells]
    page.context.close()
