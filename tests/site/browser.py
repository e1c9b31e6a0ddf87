"""A pytest plugin (conftest.py) that opens the built site in a browser, which may report nothing and load nothing
from other machines. For the tests of the site and the claims of live figures.
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
# A headless browser needs no updates and no network.
OPTIONS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",
]
PROGRAMS = "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"
# Independent of this machine's settings.
DEVICE = {
    "viewport": {"width": 1280, "height": 900},
    "color_scheme": "light",
    "reduced_motion": "no-preference",
    "locale": "en-US",
    "timezone_id": "UTC",
}
TIMEOUT = 120_000  # milliseconds; only so that nothing hangs for ever


@pytest.fixture(scope="session")
def site() -> Path:
    assert (SITE / "index.html").exists(), "run `make site` first"
    return SITE


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium: install it, or run `.venv/bin/playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=found, args=OPTIONS, timeout=TIMEOUT)
        yield browser
        browser.close()


Open = Callable[..., "Page"]


def is_missing(failed: "Request") -> bool:
    """Return whether a failed request was not just interrupted by the opening of another page."""
    return failed.failure != "net::ERR_ABORTED"


class Reader:
    """Open pages of the site, and collect the problems in them.

    Pages are opened in the same tab, because a new tab is a new process, which takes as long to start as a
    page to open. There is a tab for each combination of settings that a tab cannot change. A tab is replaced
    after some pages, because Chromium crashed after some hundred.
    """

    PAGES_PER_TAB = 40

    def __init__(self, browser: "Browser", site: Path) -> None:
        self._browser, self._site = browser, f"file://{site}"
        self._tabs: dict[str, Page] = {}
        self._opened = Counter[str]()  # number of pages by tab
        self._problems: list[str] = []

    def open(self, path: str, *, in_new_tab: bool = False, **settings: Any) -> "Page":
        """Open a page by its path, as if no other had been open before."""
        wanted = DEVICE | settings
        changeable = {name: wanted.pop(name) for name in ("color_scheme", "reduced_motion")}
        viewport = wanted.pop("viewport")
        name = repr(wanted)
        is_worn_out = in_new_tab or self._opened[name] % self.PAGES_PER_TAB == 0
        if name in self._tabs and is_worn_out:
            self._tabs.pop(name).context.close()
        if name not in self._tabs:
            self._tabs[name] = self._new_tab(name, wanted)
        self._opened[name] += 1
        tab = self._tabs[name]
        self._reset(tab)
        tab.set_viewport_size(viewport)
        tab.emulate_media(media="null", **changeable)
        tab.goto(f"{self._site}/{path}")
        return tab

    def _new_tab(self, name: str, settings: dict[str, Any]) -> "Page":
        tab = self._browser.new_context(**settings).new_page()
        tab.context.set_default_timeout(TIMEOUT)

        def report(problem: str) -> None:
            self._problems.append(f"{tab.url}: {problem}")

        def drop() -> None:
            report("crashed")
            del self._tabs[name]

        tab.on("console", lambda m: m.type in ("error", "warning") and report(m.text))
        tab.on("pageerror", lambda error: report(str(error)))
        tab.on("requestfailed", lambda r: is_missing(r) and report(f"not loaded: {r.url}"))
        tab.on("request", lambda r: is_external(r.url) and report(f"external request: {r.url}"))
        tab.on("crash", lambda _: drop())
        return tab

    def _reset(self, tab: "Page") -> None:
        """Clear a tab and the storage of its pages."""
        empty = f"{self._site}/sitemap.txt"  # has the same origin and no scripts
        if tab.url == empty:
            return
        for other in tab.context.pages:
            if other != tab:
                other.close()
        tab.goto(empty)
        tab.evaluate("localStorage.clear(), sessionStorage.clear()")
        tab.mouse.move(-1, -1)

    def close(self) -> None:
        """Leave all pages; raise AssertionError if there was a problem in one."""
        for tab in list(self._tabs.values()):
            self._reset(tab)
        problems, self._problems = self._problems, []
        assert problems == []


def is_external(url: str) -> bool:
    """Return whether an address is on another machine."""
    return not url.startswith(("file:", "data:", "blob:", "about:"))


@pytest.fixture(scope="session")
def reader(browser: "Browser", site: Path) -> Reader:
    return Reader(browser, site)


@pytest.fixture
def open_page(reader: Reader) -> Iterator[Open]:
    """Open a page of the site by its path; after the test, check that the page had no problems."""
    yield reader.open
    reader.close()


@pytest.fixture(scope="module")
def open_for_all(browser: "Browser", site: Path) -> Iterator[Open]:
    """Like open_page, for fixtures of a module; no test may rely on what others have changed."""
    reader = Reader(browser, site)
    yield reader.open
    reader.close()


@pytest.fixture(scope="module")
def page(request: pytest.FixtureRequest, open_for_all: Open) -> "Page":
    """The page that the claims of live figures (LESSON/live/claims.py) are about."""
    return open_for_all(f"en/{request.path.parent.parent.name}.html")


@pytest.fixture
def live(request: pytest.FixtureRequest, page: "Page") -> "Locator":
    """The only live figure of such a page."""
    return page.locator(f'[data-live="{request.module.FIGURE}"]')
