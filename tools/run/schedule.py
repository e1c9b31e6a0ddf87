"""Which worker of xdist checks which page, and when: a page with all its languages goes to one worker, the
longest first."""

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tools.run.sharing import page_of


class PageByPage(LoadScopeScheduling):
    def __init__(self, config: pytest.Config, log: Any, seconds: dict[str, float]) -> None:
        super().__init__(config, log)
        self.seconds = seconds

    def _split_scope(self, nodeid: str) -> str:
        return _page(nodeid) or super()._split_scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        longest = max(self.workqueue, key=lambda scope: self.seconds.get(scope, 0))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


def _page(nodeid: str) -> str | None:
    file = nodeid.partition("::")[0]
    return "/".join(page_of(file)) if file.endswith(".ipynb") else None


class Stopwatch:
    """Remembers, from run to run, how long each page took."""

    KEY = "regression/seconds"

    def __init__(self, config: pytest.Config) -> None:
        self.cache = config.cache if hasattr(config, "cache") else None
        self.seconds: dict[str, float] = self.cache.get(self.KEY, {}) if self.cache else {}
        self.now: dict[str, float] = {}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> PageByPage:
        return PageByPage(config, log, self.seconds)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if scope := _page(report.nodeid):
            self.now[scope] = self.now.get(scope, 0) + report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.cache and self.now:
            self.cache.set(self.KEY, self.seconds | self.now)
