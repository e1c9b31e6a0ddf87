"""Test that the plugin of these tests notices missing files."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from tests.site.browser import has_failed

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_a_missing_file_is_noticed_but_not_an_interrupted_request(browser: "Browser", site: Path):
    page = browser.new_page()
    page.goto(f"file://{site}/en/index.html")
    with page.expect_event("requestfailed") as missing:
        page.evaluate("new Image().src = 'there-is-no-such.svg'")
    assert has_failed(missing.value)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts requests and never answers
        slow = f"http://127.0.0.1:{silent.getsockname()[1]}/slow.svg"
        with page.expect_event("requestfailed") as interrupted:
            with page.expect_request(slow):
                page.evaluate("address => { new Image().src = address }", slow)
            page.goto(f"file://{site}/zh-TW/index.html")
    assert not has_failed(interrupted.value)
    page.close()
