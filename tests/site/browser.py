"""A real browser on the built site (``make site``), which must neither complain nor leave the machine.

A pytest plugin (conftest.py): for the tests of the site, and the claims of live figures.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tools.weave.lessons import ROOT

if TYPE_CHECKING:  # most tests need no browser
    from playwright.sync_api import Browser, Locator, Page, Request

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
# Whatever this machine's own are.
DEVICE = {
    "viewport": {"width": 1280, "height": 900},
    "color_scheme": "light",
    "reduced_motion": "no-preference",
    "locale": "en-US",
    "timezone_id": "UTC",
}
PATIENCE = 120_000  # milliseconds: a guard against hanging, not a measure


@pytest.fixture(scope="session")
def site() -> Path:
    assert (SITE / "index.html").exists(), "run `make site` first"
    return SITE


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium: install it, or run `.venv/bin/playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=found, args=QUIET, timeout=PATIENCE)
        yield browser
        browser.close()


Open = Callable[..., "Page"]


def is_missing(failed: "Request") -> bool:
    """Whatever the reason, save that the reader went on before it had come."""
    return failed.failure != "net::ERR_ABORTED"


class Reader:
    """Opens pages of the site, and notes what goes wrong in them.

    One page after the other comes into the same tab, as a new tab is a new process, which takes as long
    to start as a page to open. Tabs differ in what they cannot change later. None serves for ever: after
    some hundred pages Chromium was seen to crash.
    """

    PAGES_OF_A_TAB = 40

    def __init__(self, browser: "Browser", site: Path) -> None:
        self._browser, self._site = browser, f"file://{site}"
        self._tabs: dict[str, Page] = {}
        self._opened = Counter[str]()  # pages of each tab
        self._complaints: list[str] = []

    def open(self, path: str, *, in_new_tab: bool = False, **settings: Any) -> "Page":
        """Open a page by its path, as if no other had been read before."""
        wanted = DEVICE | settings
        changeable = {name: wanted.pop(name) for name in ("color_scheme", "reduced_motion")}
        viewport = wanted.pop("viewport")
        name = repr(wanted)
        is_used_up = in_new_tab or self._opened[name] % self.PAGES_OF_A_TAB == 0
        if name in self._tabs and is_used_up:
            self._tabs.pop(name).context.close()
        if name not in self._tabs:
            self._tabs[name] = self._new_tab(name, wanted)
        self._opened[name] += 1
        tab = self._tabs[name]
        self._forget(tab)
        tab.set_viewport_size(viewport)
        tab.emulate_media(media="null", **changeable)
        tab.goto(f"{self._site}/{path}")
        return tab

    def _new_tab(self, name: str, settings: dict[str, Any]) -> "Page":
        tab = self._browser.new_context(**settings).new_page()
        tab.context.set_default_timeout(PATIENCE)

        def note(what: str) -> None:
            self._complaints.append(f"{tab.url}: {what}")

        def drop() -> None:
            note("crashed")
            del self._tabs[name]

        tab.on("console", lambda said: said.type in ("error", "warning") and note(said.text))
        tab.on("pageerror", lambda error: note(str(error)))
        tab.on("requestfailed", lambda r: is_missing(r) and note(f"not loaded: {r.url}"))
        tab.on("request", lambda r: leaves(r.url) and note(f"asked: {r.url}"))
        tab.on("crash", lambda _: drop())
        return tab

    def _forget(self, tab: "Page") -> None:
        """Empty a tab, and what its pages have stored."""
        empty = f"{self._site}/sitemap.txt"  # of the same origin, and without scripts
        if tab.url == empty:
            return
        for other in tab.context.pages:
            if other != tab:
                other.close()
        tab.goto(empty)
        tab.evaluate("localStorage.clear(), sessionStorage.clear()")
        tab.mouse.move(-1, -1)

    def leave(self) -> None:
        """Close all pages; raises AssertionError where something went wrong in one."""
        for tab in list(self._tabs.values()):
            self._forget(tab)
        complaints, self._complaints = self._complaints, []
        assert complaints == []


def leaves(url: str) -> bool:
    """Whether it leads away from this machine."""
    return not url.startswith(("file:", "data:", "blob:", "about:"))


@pytest.fixture(scope="session")
def reader(browser: "Browser", site: Path) -> Reader:
    return Reader(browser, site)


@pytest.fixture
def open_page(reader: Reader) -> Iterator[Open]:
    """Opens a page of the site by its path; afterwards, nothing may have gone wrong in it."""
    yield reader.open
    reader.leave()


@pytest.fixture(scope="module")
def open_for_all(browser: "Browser", site: Path) -> Iterator[Open]:
    """The same for all tests of a module: none may rely on what others have set."""
    reader = Reader(browser, site)
    yield reader.open
    reader.leave()


@pytest.fixture(scope="module")
def page(request: pytest.FixtureRequest, open_for_all: Open) -> "Page":
    """The page that the claims of live figures (LESSON/live/claims.py) are about."""
    return open_for_all(f"en/{request.path.parent.parent.name}.html")


@pytest.fixture
def live(request: pytest.FixtureRequest, page: "Page") -> "Locator":
    """The only live figure of such a page."""
    return page.locator(f'[data-live="{request.module.FIGURE}"]')
