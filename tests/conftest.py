"""Configuration, fixtures and helpers for all tests."""

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from d2l_compat.frameworks import PYTHON_FRAMEWORKS

# Set as an environment variable, so that subprocesses inherit it.
os.environ["MPLBACKEND"] = "Agg"
# Tests that need this variable set it.
os.environ.pop("D2L_VERSION", None)


def pytest_configure(config: pytest.Config) -> None:
    # Hypothesis draws the same examples each time, and more in `make test-all`, which passes -m "". It draws fewer for
    # frameworks other than PyTorch, because they compile each operation for each shape.
    is_pytorch = config.getoption("framework") == "pytorch"
    if config.getoption("markexpr"):
        examples = 20 if is_pytorch else 3
    else:
        examples = 60 if is_pytorch else 15
    settings.register_profile(
        "reproducible", derandomize=True, deadline=None, max_examples=examples
    )
    settings.load_profile("reproducible")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore tests/shim/each/FRAMEWORK for other frameworks."""
    belongs_to_other_framework = collection_path.name in PYTHON_FRAMEWORKS.keys() - {
        config.getoption("framework")
    }
    is_ignored = collection_path.parent.name == "each" and belongs_to_other_framework
    return True if is_ignored else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Remove ``@pytest.mark.release("jax")``, which marks a test that is slow in JAX, for other frameworks."""
    framework = item.config.getoption("framework")
    item.own_markers = [
        mark
        for mark in item.own_markers
        if mark.name != "release" or not mark.args or framework in mark.args
    ]


def write_chapter(root: Path, *names: str) -> None:
    """Write a project's chapter file."""
    chapter = root / "lessons" / "chapter.toml"
    chapter.parent.mkdir(parents=True, exist_ok=True)
    chapter.write_text(f"lessons = {list(names)}\n".replace("'", '"'), encoding="utf-8")


@contextmanager
def run_server(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Run a server on this machine, with this handler for its requests; yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


TIMEOUT = 120  # seconds; only a guard against hanging


def wait_for_exit(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait for processes to end; return those that still run after this time.

    A zombie counts as ended: if its parent has ended too, nobody removes it.
    """

    def is_running(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return process.status() != psutil.STATUS_ZOMBIE
        return False

    deadline = time.monotonic() + seconds
    while (running := [*filter(is_running, processes)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return running


@pytest.fixture
def interrupt() -> Iterator[Callable[..., str]]:
    """Return a function that interrupts a running command and returns its output.

    The command's children must end before it. There is no time limit, because a slow machine might exceed it:
    the command sleeps for a limited time, and ends with another result if it is not interrupted.
    """
    # A background job ignores SIGINT by default.
    old_handler = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt_command(
        command: subprocess.Popen[str],
        start_files: list[Path],
        send_signal: Callable[[], object],
        *,
        min_children: int,
    ) -> str:
        """Call ``send_signal`` when all ``start_files`` exist; the command must then have ``min_children`` or more."""
        children: list[psutil.Process] = []
        try:
            while not all(file.exists() for file in start_files):
                assert command.poll() is None, command.communicate()[0]
                time.sleep(0.1)
            children = psutil.Process(command.pid).children(recursive=True)
            assert len(children) >= min_children
            send_signal()
            output, _ = command.communicate()
            assert not wait_for_exit(children, seconds=0)
        finally:
            for process in (command, *children):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        return output

    yield interrupt_command
    signal.signal(signal.SIGINT, old_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many names were compared with upstream's d2l, and which were not, with the reason.

    Also print the results of calls with random arguments.
    """
    names_by_result: dict[str, set[str]] = {}
    random_calls = Counter[str]()
    for report in terminalreporter.getreports("passed"):
        for result, value in report.user_properties:
            if "compared with upstream" in result:
                names_by_result.setdefault(result, set()).add(str(value))
            elif result.startswith("random calls"):
                random_calls[result] += int(str(value))
    for result, count in sorted(random_calls.items()):
        terminalreporter.line(f"{count} {result}")
    for result, names in sorted(names_by_result.items()):
        terminalreporter.line(f"{len(names)} names {result}")
        if result.startswith("not"):
            for name in sorted(names):
                terminalreporter.line(f"  {name}")
