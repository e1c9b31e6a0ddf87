"""``python -m tools.checks [--jobs N] CHECK ...``: run checks, which are targets of make, and show their progress.

Three checks run at a time, in the given order, each with half of the cores, since checks often wait for kernels and
browsers. Their output goes to ``build/logs/CHECK.log``.

The start and the end of a check, and each failed test with its reason, are shown at once. The numbers of passed and
failed tests are shown continuously in a terminal, and every half minute in a pipe. At the end the failed tests are
listed again; the last line is ``N passed, N failed, N skipped``.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

LOGS = Path("build", "logs")
INTERVAL = 30  # seconds between two lines about running checks, in a pipe
SECONDS_TO_STOP = 10  # between the interrupt and the kill

OUTCOMES = {"PASSED": "passed", "XPASS": "passed", "XFAIL": "passed", "SKIPPED": "skipped"}
OUTCOMES |= {"FAILED": "failed", "ERROR": "failed"}
# `pytest -v` prints `tests/a.py::test PASSED [ 50%]`, and with xdist `[gw0] [ 50%] PASSED tests/a.py::test`.
OUTCOME = f"(?P<outcome>{'|'.join(OUTCOMES)})"
PYTEST = re.compile(rf"(?P<test>.+) {OUTCOME}( \(.*\))? +\[ *\d+%\]")
XDIST = re.compile(rf"\[gw\d+\] \[ *\d+%\] {OUTCOME} (?P<test>.*)")
# Maven prints a line like MAVEN for each class of tests, and like MAVEN_FAILED above the reason of each failed test.
MAVEN = re.compile(r".*Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+), T.* in .*")
MAVEN_FAILED = re.compile(r"\[ERROR\] +(?!Tests run)(\S+) .*<<< (FAILURE|ERROR)!.*")
# pytest's reason is indented (tests/reasons.py); Maven's begins with the name of a Java class.
REASON = re.compile(r" {4}.*|[a-z]+(\.\w+)+: .*")


@dataclass
class Check:
    name: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    started: float = 0.0
    seconds: float = 0.0
    process: subprocess.Popen[str] | None = None
    is_running: bool = False
    expects_reason: bool = False

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"

    def read_line(self, line: str) -> str:
        """Count the tests that a line of output reports; return the message to show at once, or ""."""
        if self.expects_reason and REASON.fullmatch(line):
            return f"    {line.strip()}"
        self.expects_reason = False
        if match := MAVEN.fullmatch(line):
            run, failures, errors, skipped = map(int, match.groups())
            failed = failures + errors
            self.counts.update(passed=run - failed - skipped, failed=failed, skipped=skipped)
            return ""
        if match := XDIST.fullmatch(line) or PYTEST.fullmatch(line):
            outcome, test = OUTCOMES[match["outcome"]], match["test"].strip()
            self.counts[outcome] += 1
        elif match := MAVEN_FAILED.fullmatch(line):
            outcome, test = "failed", match[1]  # counted by the other line
        else:
            return ""
        self.expects_reason = outcome == "failed"
        return f"{self.name}: FAILED {test}" if self.expects_reason else ""


def summarize(counts: Counter[str]) -> str:
    return f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"


class Run:
    def __init__(self, names: list[str], jobs: int, console: Console) -> None:
        self.checks = [Check(name) for name in names]
        self.num_parallel = 3 if jobs > 1 else 1
        self.cores = max(1, jobs // 2)
        self.console = console
        self.is_stopped = False

    def run(self) -> int:
        """Return 0 if all checks pass, 1 if one fails, 130 after Ctrl-C."""
        live = Live(get_renderable=self.describe_running, console=self.console, transient=True)
        with ThreadPoolExecutor(self.num_parallel) as pool:
            pending = {pool.submit(self.run_check, check) for check in self.checks}
            try:
                with live if self.console.is_terminal else nullcontext():
                    while pending:
                        done, pending = wait(pending, timeout=INTERVAL)
                        for future in done:
                            future.result()
                        if pending and not self.console.is_terminal:
                            self.print(self.describe_running())
            except KeyboardInterrupt:
                return 130
            finally:
                self.stop()
        self.report()
        return 1 if any(check.counts["failed"] for check in self.checks) else 0

    def print(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style), soft_wrap=True)

    def describe_running(self) -> str:
        running = [check for check in self.checks if check.is_running]
        return "\n".join(
            f"{check.name}: {summarize(check.counts)}, after {time.monotonic() - check.started:.0f} s"
            for check in running
        )

    def run_check(self, check: Check) -> None:
        if self.is_stopped:
            return
        self.print(f"{check.name} starts")
        check.started = time.monotonic()
        check.process = subprocess.Popen(
            ["make", "--no-print-directory", check.name, f"JOBS={self.cores}", "VERBOSE=-v"],
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C does not reach it; stop() passes it on
        )
        check.is_running = True
        lines = self.read_output(check)
        exit_code = check.process.wait()
        check.seconds = time.monotonic() - check.started
        check.is_running = False
        if self.is_stopped:
            return
        if exit_code and not check.counts["failed"]:  # no test failed, but a linter or a build did
            check.counts["failed"] = 1
            last_lines = [f"    {line}" for line in lines[-10:]]
            # In one piece: the other checks print beside it.
            self.add_failure(check, "\n".join([f"{check.name}: FAILED", *last_lines]))
        elif not check.counts:
            check.counts["passed"] = 1
        outcome, style = ("failed", "red") if check.counts["failed"] else ("passed", "green")
        self.print(
            f"{check.name} {outcome} in {check.seconds:.0f} s: {summarize(check.counts)}", style
        )

    def read_output(self, check: Check) -> list[str]:
        """Log and count a check's output until its end; return its lines."""
        log = check.log
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()
        except OSError:  # the checkout is read-only
            log = Path(os.devnull)
        lines = []
        assert check.process
        assert check.process.stdout
        with log.open("w", encoding="utf-8", buffering=1) as file:
            for line in check.process.stdout:
                file.write(line)
                lines.append(line.rstrip())
                if message := check.read_line(lines[-1]):
                    self.add_failure(check, message)
        return lines

    def add_failure(self, check: Check, text: str) -> None:
        check.failures.append(text)
        self.print(text, "red")

    def stop(self) -> None:
        """Interrupt running checks, then kill their remaining children, which may be in other sessions."""
        self.is_stopped = True
        children: list[psutil.Process] = []
        for check in self.checks:
            if check.process and check.is_running:
                with suppress(psutil.NoSuchProcess, ProcessLookupError):
                    children += psutil.Process(check.process.pid).children(recursive=True)
                    os.killpg(check.process.pid, signal.SIGINT)
        for process in psutil.wait_procs(children, timeout=SECONDS_TO_STOP)[1]:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def report(self) -> None:
        table = Table(box=None, pad_edge=False)
        for column in ("check", "passed", "failed", "skipped", "seconds", "log"):
            is_text = column in ("check", "log")
            table.add_column(column, justify="left" if is_text else "right", no_wrap=True)
        total = Counter[str]()
        for check in self.checks:
            total += check.counts
            counts = [str(check.counts[outcome]) for outcome in ("passed", "failed", "skipped")]
            style = "red" if check.counts["failed"] else "green"
            table.add_row(check.name, *counts, f"{check.seconds:.0f}", str(check.log), style=style)
        self.console.print(table)
        for check in self.checks:
            for text in check.failures:
                self.print(text, "red")
        self.print(summarize(total))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.checks", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cores to use")
    parser.add_argument("check", nargs="+", help="a target of make")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # the output of a pipe is not wrapped
    # A background job ignores SIGINT by default.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return Run(options.check, options.jobs, console).run()


if __name__ == "__main__":
    sys.exit(main())
