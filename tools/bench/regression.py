"""``python -m tools.bench.regression [FRAMEWORK ...]``: how long the notebook regression takes.

In one run, one after the other: plain nbval, with and without xdist; ours; and the floor, which is
the lessons' code files run bare, as many at a time.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from tools.run.kernels import neutral_environment
from tools.weave.lessons import ROOT, Edition, editions


@dataclass
class Run:
    """How long something took, and how many of its parts failed."""

    what: str
    seconds: float
    failed: int


def timed(what: str, act: Callable[[], int]) -> Run:
    start = time.monotonic()
    failed = act()
    run = Run(what, time.monotonic() - start, failed)
    print(f"{run.seconds:7.1f} s  {run.failed:4} failed  {what}", flush=True)
    return run


def nbval(folders: list[Path], *options: str) -> int:
    """How many cells failed. Raises RuntimeError where pytest itself did."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        words = ["-q", "--nbval", "--junit-xml", str(report), *options]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *map(str, folders)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(done.stdout + done.stderr)
        (suite,) = ElementTree.parse(report).iter("testsuite")
        return int(suite.attrib["failures"]) + int(suite.attrib["errors"])


def bare(chosen: list[Edition], jobs: int) -> int:
    """How many code files failed."""
    with ThreadPoolExecutor(jobs) as pool, neutral_environment():
        return sum(pool.map(_bare, chosen))


def _bare(edition: Edition) -> bool:
    command = [sys.executable, str(edition.code)]
    if edition.code.suffix == ".java":
        # Java's cells are no program: there, the floor is Jupyter's own way to execute them.
        command = [str(Path(sys.prefix, "bin", "jupyter-execute")), str(edition.notebook)]
    environment = os.environ | {"MPLBACKEND": "agg"}
    return bool(
        subprocess.run(command, capture_output=True, env=environment, check=False).returncode
    )


def main(arguments: list[str] | None = None) -> int:
    """1 where ours failed, or took longer than it may."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.regression", description=__doc__)
    parser.add_argument("framework", nargs="*", help="only these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time")
    asked = parser.parse_args(arguments)
    jobs = ["-n", str(asked.jobs)]
    chosen = list(editions(frameworks=asked.framework or None))
    folders = sorted({edition.notebook.parent for edition in chosen})
    one_language = list({edition.code: edition for edition in chosen}.values())
    plain = ["--noconftest", "-c", os.devnull, "--rootdir", str(ROOT)]
    print(f"{len(chosen)} notebooks of {len(one_language)} code files, {asked.jobs} at a time")
    with neutral_environment():  # for plain nbval too, whose threads would only be in the way
        a = timed("(a) plain nbval", lambda: nbval(folders, *plain))
        b = timed(
            "(b) plain nbval, xdist", lambda: nbval(folders, *plain, *jobs, "--dist=loadscope")
        )
    c = timed("(c) ours", lambda: nbval(folders, *jobs))
    d = timed("(d) the code files, bare", lambda: bare(one_language, asked.jobs))
    print(f"\n(c) / (a) = {c.seconds / a.seconds:.2f}, which may be 0.50")
    print(f"(c) / (b) = {c.seconds / b.seconds:.2f}")
    print(f"(c) / (d) = {c.seconds / d.seconds:.2f}, which may be 1.25")
    too_slow = c.seconds > 0.5 * a.seconds or c.seconds > 1.25 * d.seconds
    return 1 if c.failed or d.failed or too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
