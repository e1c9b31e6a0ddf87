"""Distribute pages to xdist's workers: all languages of a page to the same worker, and the longest page first."""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tools.run.sharing import get_page_key


class PageScheduling(LoadScopeScheduling):
    def __init__(self, config: pytest.Config, log: Any, seconds: dict[str, float]) -> None:
        super().__init__(config, log)
        self.seconds = seconds

    def _split_scope(self, nodeid: str) -> str:
        return _page_scope(nodeid) or super()._split_scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        longest = max(self.workqueue, key=lambda scope: self.seconds.get(scope, 0))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


def _page_scope(nodeid: str) -> str | None:
    """Return the scope of a notebook's page, or None if the test is not a notebook's cell."""
    file = nodeid.partition("::")[0]
    return "/".join(get_page_key(file)) if file.endswith(".ipynb") else None


class Stopwatch:
    """Record in pytest's cache how long each page takes."""

    KEY = "regression/seconds"

    def __init__(self, config: pytest.Config) -> None:
        self.cache = config.cache if hasattr(config, "cache") else None
        self.previous: dict[str, float] = self.cache.get(self.KEY, {}) if self.cache else {}
        self.current: dict[str, float] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> PageScheduling:
        return PageScheduling(config, log, self.previous)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if scope := _page_scope(report.nodeid):
            self.current[scope] = self.current.get(scope, 0) + report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.cache and self.current:
            self.cache.set(self.KEY, self.previous | self.current)
