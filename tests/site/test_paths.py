"""Readers' paths through the site, from the first page to what they came for, by clicks and taps alone.

From a server on this machine, as only then a browser stores what it is to download. What the files that are taken
are good for is tried in tests/elsewhere.
"""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.conftest import serving
from tests.site.conftest import LESSON, leave_to_release
from tools.project.dist import WHEEL
from tools.site.words import WORDS
from tools.weave.launch import FOR_D2L, FROM_A_CLONE, INSTALL
from tools.weave.lessons import LANGUAGES, ROOT, lessons
from tools.weave.prose import title

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1280, "height": 900}}


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with serving(partial(SimpleHTTPRequestHandler, directory=site)) as address:
        yield address


@pytest.fixture(params=leave_to_release(LANGUAGES, but=["en"]))
def language(request: pytest.FixtureRequest) -> str:
    return request.param


def arrive(browser: Browser, address: str, language: str, **device: object) -> Page:
    """On the first page, in the reader's language."""
    device |= {"locale": "en-US", "permissions": ["clipboard-read"]}
    page = browser.new_context(**device).new_page()
    page.goto(address)
    page.wait_for_url("**/index.html")
    if f"/{language}/" not in page.url:
        page.get_by_role("link", name=LANGUAGES[language]).filter(visible=True).first.click()
    page.wait_for_url(f"**/{language}/index.html")
    return page


def take(page: Page, link: Locator) -> Path:
    with page.expect_download() as taken:
        link.click()
    return Path(taken.value.path())


def copied(page: Page, block: Locator) -> str:
    block.hover()
    block.locator("button.copybtn").click()
    return page.evaluate("navigator.clipboard.readText()").strip()


def test_i_have_a_notebook_of_d2l_that_no_longer_runs(
    browser: Browser, address: str, language: str
):
    page = arrive(browser, address, language, **DESKTOP)
    page.locator("article a[href$='coming-from-d2l.html']").click()
    blocks = page.locator("article div.highlight:has(> pre)")
    assert copied(page, blocks.nth(0)) == FOR_D2L
    assert copied(page, blocks.nth(1)) == FROM_A_CLONE
    # Where that address is out of reach.
    page.locator("article a[href$='index.html']").first.click()
    link = page.get_by_role("link", name=WHEEL)
    assert take(page, link).read_bytes().startswith(b"PK")
    page.context.close()


def test_i_teach_this_on_monday(browser: Browser, address: str, language: str):
    name = title(ROOT / "lessons" / LESSON.removesuffix(".html") / f"text.{language}.md")
    page = arrive(browser, address, language, **DESKTOP)
    page.locator(".sidebar-tree a[href$='slides.html']").click()
    page.locator("article li", has_text=name).get_by_role("link", name="JAX").click()
    page.locator(".reveal.ready").wait_for()
    with page.expect_popup() as opened:
        page.keyboard.press("s")
    notes = opened.value.locator(".speaker-controls-notes .value")
    expect(notes).not_to_be_empty()
    opened.value.close()
    page.get_by_role("link", name=name).click()
    page.wait_for_url(f"**/{language}/{LESSON}?framework=jax")
    expect(page.locator(".bar select")).to_have_value("jax")
    solution = page.locator('section[id$="solutions"] > section').first
    words = solution.locator("p").filter(visible=True)
    expect(words).to_have_count(0)
    solution.get_by_role("button", name=WORDS[language].solution).click()
    expect(words.first).to_be_in_viewport()
    page.locator(".bar summary").click()
    link = page.locator(".bar details").get_by_role("link", name=WORDS[language].download)
    taken = nbformat.read(take(page, link), as_version=4)
    assert taken.cells[0].source.startswith(f"# {name}")
    assert 'd2l_compat.install("jax")' in next(c.source for c in taken.cells if c.id == INSTALL)
    page.context.close()


def test_i_want_to_run_it_in_my_phones_browser(browser: Browser, address: str, language: str):
    page = arrive(browser, address, language, **PHONE)
    page.locator(".gallery a").first.tap()
    page.wait_for_url(f"**/{language}/{lessons()[0].name}.html")
    page.evaluate("window.scrollTo({top: 5000, behavior: 'instant'})")
    page.locator(".bar summary").tap()
    menu = page.locator(".bar details a")
    assert menu.count() == 6
    for button in menu.all()[:4]:
        assert button.get_attribute("href").startswith("https://")
        button.tap(trial=True)  # not taken: it leaves the machine
    assert page.evaluate("scrollY") == pytest.approx(5000, abs=2)
    link = page.locator(".bar details").get_by_role("link", name=WORDS[language].download)
    taken = nbformat.read(take(page, link), as_version=4)
    assert INSTALL in [cell.id for cell in taken.cells]
    page.context.close()
