"""``python -m tools.bench.regression [FRAMEWORK ...]``: measure how long the notebook regression takes.

Run, one after the other: plain nbval, without and with xdist; our regression run; and the lessons' programs alone, with
as many jobs, as a lower bound.
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
from tools.weave.lessons import ROOT, Notebook, list_notebooks


@dataclass
class Run:
    """How long a run took, and how many cells or programs failed."""

    seconds: float
    failed: int


def measure(title: str, count_failed: Callable[[], int]) -> Run:
    start = time.monotonic()
    failed = count_failed()
    run = Run(time.monotonic() - start, failed)
    print(f"{run.seconds:7.1f} s  {run.failed:4} failed  {title}", flush=True)
    return run


def count_failed_cells(folders: list[Path], *options: str) -> int:
    """Run nbval; return how many cells failed. Raise RuntimeError if pytest itself fails."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = ("-q", "--nbval", "--junit-xml", str(report), *options)
        process = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *map(str, folders)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode not in (0, 1):
            raise RuntimeError(process.stdout + process.stderr)
        (suite,) = ElementTree.parse(report).iter("testsuite")
        return int(suite.attrib["failures"]) + int(suite.attrib["errors"])


def count_failed_programs(notebooks: list[Notebook], jobs: int) -> int:
    """Run the programs of notebooks without nbval; return how many failed."""
    with ThreadPoolExecutor(jobs) as pool, neutral_environment():
        return sum(pool.map(_program_fails, notebooks))


def _program_fails(notebook: Notebook) -> bool:
    command = [sys.executable, str(notebook.code)]
    if notebook.code.suffix == ".java":
        # Java's cells cannot run without Jupyter: execute the notebook.
        command = [str(Path(sys.prefix, "bin", "jupyter-execute")), str(notebook.path)]
    environment = os.environ | {"MPLBACKEND": "agg"}
    process = subprocess.run(command, capture_output=True, env=environment, check=False)
    return process.returncode != 0


def main(arguments: list[str] | None = None) -> int:
    """Measure all runs; return 1 if ours has failures or is slower than allowed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.regression", description=__doc__)
    parser.add_argument("framework", nargs="*", help="measure only these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="parallel jobs")
    options = parser.parse_args(arguments)
    jobs = ["-n", str(options.jobs)]
    notebooks = list(list_notebooks(frameworks=options.framework or None))
    folders = sorted({notebook.path.parent for notebook in notebooks})
    one_per_program = list({notebook.code: notebook for notebook in notebooks}.values())
    plain = ["--noconftest", "-c", os.devnull, "--rootdir", str(ROOT)]
    counts = f"{len(notebooks)} notebooks of {len(one_per_program)} programs"
    print(f"{counts}, {options.jobs} at a time")
    with neutral_environment():  # limits threads: more would only slow plain nbval down
        a = measure("(a) plain nbval", lambda: count_failed_cells(folders, *plain))
        b = measure(
            "(b) plain nbval, xdist",
            lambda: count_failed_cells(folders, *plain, *jobs, "--dist=loadscope"),
        )
    c = measure("(c) ours", lambda: count_failed_cells(folders, *jobs))
    d = measure(
        "(d) the programs alone", lambda: count_failed_programs(one_per_program, options.jobs)
    )
    print(f"\n(c) / (a) = {c.seconds / a.seconds:.2f} (allowed: up to 0.50)")
    print(f"(c) / (b) = {c.seconds / b.seconds:.2f}")
    print(f"(c) / (d) = {c.seconds / d.seconds:.2f} (allowed: up to 1.25)")
    is_too_slow = c.seconds > 0.5 * a.seconds or c.seconds > 1.25 * d.seconds
    return 1 if c.failed or d.failed or is_too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
