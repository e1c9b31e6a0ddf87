"""A pytest plugin (conftest.py) that opens the built site in a browser.

The tests of the site and the claims of live figures use it. A test fails if the browser reports a problem or loads
something from another machine.
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
# These settings make the browser independent of this machine's settings.
DEVICE = {
    "viewport": {"width": 1280, "height": 900},
    "color_scheme": "light",
    "reduced_motion": "no-preference",
    "locale": "en-US",
    "timezone_id": "UTC",
}
TIMEOUT = 120_000  # milliseconds; only a guard against hanging


@pytest.fixture(scope="session")
def site() -> Path:
    assert (SITE / "index.html").exists(), "run `make site` first"
    return SITE


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        if program is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium: install it, or run `.venv/bin/playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS, timeout=TIMEOUT)
        yield browser
        browser.close()


Open = Callable[..., "Page"]


def has_failed(request: "Request") -> bool:
    """Check whether a request failed, and was not just interrupted because another page was opened."""
    return request.failure != "net::ERR_ABORTED"


class Reader:
    """Open pages of the site, and collect their problems.

    Pages share a tab, because a new tab is a new process, which starts as slowly as a page opens. Each combination of
    settings that cannot be changed later has its own tab. A tab is replaced after PAGES_PER_TAB pages, because Chromium
    crashed after some hundred pages.
    """

    PAGES_PER_TAB = 40

    def __init__(self, browser: "Browser", site: Path) -> None:
        self._browser = browser
        self._site = f"file://{site}"
        self._tabs: dict[str, Page] = {}
        self._num_opened = Counter[str]()  # pages, by tab
        self._problems: list[str] = []

    def open(self, path: str, *, in_new_tab: bool = False, **settings: Any) -> "Page":
        """Open a page by its path, as if no other page had been opened before."""
        fixed_settings = DEVICE | settings
        media = {name: fixed_settings.pop(name) for name in ("color_scheme", "reduced_motion")}
        viewport = fixed_settings.pop("viewport")
        name = repr(fixed_settings)
        needs_new_tab = in_new_tab or self._num_opened[name] % self.PAGES_PER_TAB == 0
        if name in self._tabs and needs_new_tab:
            self._tabs.pop(name).context.close()
        if name not in self._tabs:
            self._tabs[name] = self._new_tab(name, fixed_settings)
        self._num_opened[name] += 1
        tab = self._tabs[name]
        self._reset(tab)
        tab.set_viewport_size(viewport)
        tab.emulate_media(media="null", **media)
        tab.goto(f"{self._site}/{path}")
        return tab

    def _new_tab(self, name: str, settings: dict[str, Any]) -> "Page":
        tab = self._browser.new_context(**settings).new_page()
        tab.context.set_default_timeout(TIMEOUT)

        def report(problem: str) -> None:
            self._problems.append(f"{tab.url}: {problem}")

        def remove_crashed_tab() -> None:
            report("crashed")
            del self._tabs[name]

        tab.on("console", lambda m: m.type in ("error", "warning") and report(m.text))
        tab.on("pageerror", lambda error: report(str(error)))
        tab.on("requestfailed", lambda r: has_failed(r) and report(f"not loaded: {r.url}"))
        tab.on("request", lambda r: is_external(r.url) and report(f"external request: {r.url}"))
        tab.on("crash", lambda _: remove_crashed_tab())
        return tab

    def _reset(self, tab: "Page") -> None:
        """Clear a tab and the storage of its pages."""
        blank_page = f"{self._site}/sitemap.txt"  # a file of the same origin, without scripts
        if tab.url == blank_page:
            return
        for other in tab.context.pages:
            if other != tab:
                other.close()
        tab.goto(blank_page)
        tab.evaluate("localStorage.clear(), sessionStorage.clear()")
        tab.mouse.move(-1, -1)

    def close(self) -> None:
        """Close all pages; raise AssertionError if one had a problem."""
        for tab in list(self._tabs.values()):
            self._reset(tab)
        problems, self._problems = self._problems, []
        assert problems == []


def is_external(url: str) -> bool:
    """Check whether an address is on another machine."""
    return not url.startswith(("file:", "data:", "blob:", "about:"))


@pytest.fixture(scope="session")
def reader(browser: "Browser", site: Path) -> Reader:
    return Reader(browser, site)


@pytest.fixture
def open_page(reader: Reader) -> Iterator[Open]:
    """Yield a function that opens a page by its path; after the test, check that the page had no problems."""
    yield reader.open
    reader.close()


@pytest.fixture(scope="module")
def open_shared_page(browser: "Browser", site: Path) -> Iterator[Open]:
    """Yield a function like open_page, for fixtures that a module's tests share."""
    reader = Reader(browser, site)
    yield reader.open
    reader.close()


@pytest.fixture(scope="module")
def page(request: pytest.FixtureRequest, open_shared_page: Open) -> "Page":
    """Return the page of the lesson whose live figures are tested (LESSON/live/claims.py)."""
    return open_shared_page(f"en/{request.path.parent.parent.name}.html")


@pytest.fixture
def live(request: pytest.FixtureRequest, page: "Page") -> "Locator":
    """Return the live figure that the module names."""
    return page.locator(f'[data-live="{request.module.FIGURE}"]')
