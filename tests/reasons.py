"""A pytest plugin (conftest.py) that prints, with -v, the reason of a failed test immediately, below its line.

These lines begin with four spaces; tools/checks.py shows them, too.
"""

import os
import re

import pytest

NUM_LINES = 3  # to print from the beginning of a long message, and from its end
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Reasons:
    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self.reporter = reporter

    @pytest.hookimpl(trylast=True)  # after the test's own line
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.print_reason(report)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.reporter.ensure_newline()
            self.reporter.line(f"{report.nodeid} ERROR [  0%]")
            self.print_reason(report)

    def print_reason(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        self.reporter.ensure_newline()
        for line in describe_failure(report):
            self.reporter.line(f"    {line}")


def describe_failure(report: pytest.TestReport | pytest.CollectReport) -> list[str]:
    """Return the location of a failure and its message, or both ends of a long message."""
    crash = getattr(report.longrepr, "reprcrash", None)
    location = [f"{os.path.relpath(crash.path)}:{crash.lineno}"] if crash else []
    text = COLOUR.sub("", crash.message if crash else report.longreprtext)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 2 * NUM_LINES:
        lines = [*lines[:NUM_LINES], "...", *lines[-NUM_LINES:]]
    return [*location, *lines]


@pytest.hookimpl(trylast=True)  # after the reporter is registered
def pytest_configure(config: pytest.Config) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter and config.option.verbose > 0:
        config.pluginmanager.register(Reasons(reporter))
