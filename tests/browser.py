"""A real browser on the built site (``make site``), which must neither complain nor leave the machine.

A pytest plugin (conftest.py): for the tests of the site, and the claims of live figures.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools.weave.lessons import ROOT

if TYPE_CHECKING:  # most tests need no browser
    from playwright.sync_api import Browser, Page, Request

SITE = ROOT / "build" / "site"
# For a headless browser, which has nothing to look up or to update.
QUIET = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",
]
NAMES = "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"


@pytest.fixture(scope="session")
def site() -> Path:
    assert (SITE / "index.html").exists(), "run `make site` first"
    return SITE


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium: install it, or run `.venv/bin/playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()


Open = Callable[..., "Page"]


def is_missing(failed: "Request") -> bool:
    """Whatever the reason, save that the reader went on before it had come."""
    return failed.failure != "net::ERR_ABORTED"


@pytest.fixture
def open_page(browser: "Browser", site: Path) -> Iterator[Open]:
    """Opens a page of the site by its path; afterwards, nothing may have gone wrong in it."""
    complaints: list[str] = []
    contexts = []

    def open_one(path: str, **settings: object) -> "Page":
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: said.type in ("error", "warning") and note(said.text))
        page.on("pageerror", lambda error: note(str(error)))
        page.on("requestfailed", lambda r: is_missing(r) and note(f"not loaded: {r.url}"))
        page.on("request", lambda request: leaves(request.url) and note(f"asked: {request.url}"))
        page.goto(f"file://{site}/{path}")
        return page

    def note(what: str) -> None:
        complaints.append(what)

    def leaves(url: str) -> bool:
        return not url.startswith(("file:", "data:", "blob:", "about:"))

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []
