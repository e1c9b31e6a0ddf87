"""What all tests share."""

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

from d2l_compat.frameworks import FACES

# In the environment rather than by importing matplotlib, so that subprocesses have it as well.
os.environ["MPLBACKEND"] = "Agg"
# A test tells for itself which d2l its code was written for.
os.environ.pop("D2L_VERSION", None)


def pytest_configure(config: pytest.Config) -> None:
    # Hypothesis draws the same examples each time, and more of them where no marker is left out
    # (`make test-all`). The other frameworks build each operation anew for each shape, which takes them long.
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
    """What is in tests/shim/each/FRAMEWORK runs with this framework alone."""
    is_of_another = collection_path.name in FACES.keys() - {config.getoption("framework")}
    return True if collection_path.parent.name == "each" and is_of_another else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """``@pytest.mark.release("jax")`` is meant for JAX alone, of which the test takes long."""
    framework = item.config.getoption("framework")
    item.own_markers = [
        mark
        for mark in item.own_markers
        if mark.name != "release" or not mark.args or framework in mark.args
    ]


def list_lessons(root: Path, *names: str) -> None:
    """Write a project's chapter file."""
    chapter = root / "lessons" / "chapter.toml"
    chapter.parent.mkdir(parents=True, exist_ok=True)
    chapter.write_text(f"lessons = {list(names)}\n".replace("'", '"'), encoding="utf-8")


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server on this machine, which answers as the handler does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


PATIENCE = 120  # seconds: a guard against hanging, not a measure


def still_running(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that do not end in this time.

    One that has ended stays in the list of processes until its parent has asked how, and where
    that has ended as well, nobody may ever ask: it is not running all the same.
    """

    def runs(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return process.status() != psutil.STATUS_ZOMBIE
        return False

    until = time.monotonic() + seconds
    while (left := [*filter(runs, processes)]) and time.monotonic() < until:
        time.sleep(0.1)
    return left


@pytest.fixture
def control_c() -> Iterator[Callable[..., str]]:
    """Interrupts a command in its midst, and gives what it printed; its children must end before it.

    No time is limited, which a slow machine would exceed. What the command runs sleeps, not for ever: a
    command that does not hear, or never comes to it, ends as another than was expected.
    """
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # heard in the background, too

    def interrupt(
        run: subprocess.Popen[str],
        marks: list[Path],
        send: Callable[[], object],
        *,
        at_least: int,
    ) -> str:
        """Once all ``marks`` exist and ``at_least`` so many children run."""
        children: list[psutil.Process] = []
        try:
            while not all(mark.exists() for mark in marks):
                assert run.poll() is None, run.communicate()[0]
                time.sleep(0.1)
            children = psutil.Process(run.pid).children(recursive=True)
            assert len(children) >= at_least
            send()
            said, _ = run.communicate()
            assert not still_running(children, seconds=0)
        finally:
            for process in (run, *children):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        return said

    yield interrupt
    signal.signal(signal.SIGINT, before)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many names were compared with upstream's d2l, and which were not, and why.

    And how the calls ended whose arguments were drawn.
    """
    said: dict[str, set[str]] = {}
    drawn = Counter[str]()
    for report in terminalreporter.getreports("passed"):
        for what, value in report.user_properties:
            if "compared with upstream" in what:
                said.setdefault(what, set()).add(str(value))
            elif what.startswith("drawn calls"):
                drawn[what] += int(str(value))
    for what, count in sorted(drawn.items()):
        terminalreporter.line(f"{count} {what}")
    for what, names in sorted(said.items()):
        terminalreporter.line(f"{len(names)} names {what}")
        if what.startswith("not"):
            for name in sorted(names):
                terminalreporter.line(f"  {name}")
