"""Put a fault into a scratch copy of the project, and run the checks that should notice it."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

import nbformat
import psutil

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tests.mutants.fault import Fault, OutdatedFaultError
from tools.run.java import KERNEL, SPEC, TARGET
from tools.weave.lessons import ROOT

TIMEOUT = 900  # seconds per check
# Tests of shared modules that do not depend on a framework.
SHARED_MODULES = "common", "download", "plot", "reinforcement", "texts"
SHARED_TESTS = [f"tests/shim/test_{name}.py" for name in SHARED_MODULES]
# Tests of modules whose names do not lead to them: tests/shim/**/test_NAME.py is run first for a fault in a module.
NAMES_OF_TESTS = {
    "additive": "attention",
    "adversarial": "models",
    "archives": "download",
    "bert": "language",
    "block_layers": "blocks",
    "blockwise": "attention",
    "boxes": "vision",
    "cache": "generation",
    "dropout": "own",
    "fetching": "download",
    "linear": "optimization",
    "movielens": "recommender",
    "pictures": "vision",
    "ranking": "recommender",
    "seq2seq": "training",
    "text": "common",
    "time_machine": "recurrent",
    "translation": "common",
    "wiki": "language",
}
JAVA = Path("d2l_compat", "java")
MAVEN = ("mvn", "--offline", "--quiet", "--batch-mode", "-f", str(JAVA / "pom.xml"))
REPORTS = "report*.xml", str(JAVA / "target" / "surefire-reports" / "*.xml")
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junit-xml", "report.xml")
NBVAL = (*PYTEST, "--nbval")
# For Java, whose claims need the executed notebook.
CLAIMS = (*PYTEST, "--nbval-lax", "--claims")


class StoppedError(Exception):
    """The user stopped the program."""


@dataclass(frozen=True)
class Check:
    """A run of a notebook, or of tests: whole files, or some tests by name."""

    command: tuple[str, ...]
    tests: tuple[str, ...] = ()  # or notebooks
    first: tuple[str, ...] = field(default=(), compare=False)  # options to run some tests first

    @property
    def is_notebook(self) -> bool:
        return self.command in (NBVAL, CLAIMS)


@dataclass
class Outcome:
    """The result of a check."""

    failures: list[str] = field(default_factory=list)  # tests or cells
    void_reason: str = ""  # why the result does not count
    failing_check: Check | None = None  # with only the tests that failed
    seconds: float = 0


def list_checks(fault: Fault) -> list[tuple[str, Check]]:
    """Return the checks that should notice a fault: nbval for each notebook, and tests if there are any.

    For a fault in a stored notebook, nbval comes first; for a fault in code, the tests do.
    """
    checks = [("nbval", Check(NBVAL, (file,))) for file in fault.list_notebook_files()]
    framework = fault.framework
    match fault.kind, framework:
        case "stored", _:
            command = *PYTEST, "-k", f"{framework}/{fault.lesson}"
            checks.append(("tests", Check(command, ("tests/lessons/test_notebooks.py",))))
        case "shim", "djl":
            checks.insert(0, ("tests", Check((*MAVEN, "test"))))
        case "shim", _:
            command = *PYTEST, "--framework", framework
            files = "tests/shim/each", *(SHARED_TESTS if "_shared" in fault.file else ())
            checks.insert(0, ("tests", Check(command, files)))
            if first := list_first_tests(fault):
                checks.insert(0, ("tests", Check(command, first)))
        case "lesson", name if name in PYTHON_FRAMEWORKS:
            command = *PYTEST, "--as-needed", "--framework", framework
            claims = f"lessons/{fault.lesson}/claims.py"
            checks.insert(0, ("tests", Check(command, (claims,), ("--first", fault.cell))))
        case "lesson", "djl":
            checks.insert(0, ("tests", Check(CLAIMS, (fault.list_notebook_files()[0],))))
    return checks


def list_first_tests(fault: Fault) -> tuple[str, ...]:
    """Return the tests that probably notice a fault in one of the shim's modules, if there are any."""
    stem = Path(fault.file).stem.strip("_")
    name = f"test_{NAMES_OF_TESTS.get(stem, stem)}.py"
    folders = [
        Path("tests/shim"),
        Path("tests/shim/each"),
        Path("tests/shim/each", fault.framework),
    ]
    return tuple(str(folder / name) for folder in folders if (ROOT / folder / name).exists())


def merge_failing_checks(outcomes: Iterable[Outcome]) -> list[Check]:
    """Merge the checks that failed, so that each test runs once and a page's languages run together.

    Each lesson's claims stay by themselves, because a lesson may change its framework's defaults.
    """
    tests: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, None]] = {}
    for check in [outcome.failing_check for outcome in outcomes if outcome.failing_check]:
        parts = Path(*check.tests[:1]).parts
        together = parts[-2:] if check.is_notebook else ()
        if parts[:1] == ("lessons",):
            together = parts[:2]
        tests.setdefault((check.command, together), {}).update(dict.fromkeys(check.tests))
    return [Check(command, (*names,)) for (command, _), names in tests.items()]


def shares_tests(one: Check, other: Check) -> bool:
    """Check whether two checks have a test in common; Maven always runs all tests."""
    return one.command == other.command and (one == other or bool({*one.tests} & {*other.tests}))


def is_failure(part: ElementTree.Element, is_maven: bool) -> bool:
    """Check whether a part of a test's report says that the test failed.

    An error in Maven's report is any exception; in pytest's, a test that could not run, unless its fixture asserts.
    """
    is_assertion = is_maven or re.search('"(AssertionError|assert )', part.get("message", ""))
    return part.tag == "failure" or (part.tag == "error" and bool(is_assertion))


class Workshop:
    """Make scratch copies of the project and run checks in them; on exit, kill the checks."""

    def __init__(self, folder: Path, needs_java: bool) -> None:
        """Copy the project's current files. Raise SystemExit if DJL's classes are needed and cannot be built."""
        self._folder = folder
        self._original = folder / "original"
        self._numbers = count()
        self._starting = threading.Lock()
        self._is_stopped = False
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        for file in filter(None, listing.stdout.split("\0")):
            if (ROOT / file).exists():
                (self._original / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, self._original / file)
        if needs_java:
            target = self._original / JAVA / "target"
            target.mkdir()
            (TARGET / "djl").mkdir(exist_ok=True)  # does not exist until DJL has run
            for name in ("lib", "djl"):  # large folders
                (target / name).symlink_to(TARGET / name)
            is_ready = (TARGET / "lib").is_dir()
            if error := self._build(self._original) if is_ready else "run `make` first":
                raise SystemExit(f"DJL's classes cannot be built: {error}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._starting:
            self._is_stopped = True
        for child in psutil.Process().children():
            kill(child)

    def try_fault(self, fault: Fault, all_checks: bool = False) -> dict[str, Outcome]:
        """Run the checks until one notices the fault, or all; return their outcomes. Raise StoppedError if stopped."""
        with self._copy() as project:
            try:
                fault.put_into(project)
            except OutdatedFaultError as error:
                return {"nbval": Outcome(void_reason=str(error))}
            is_java = fault.framework == "djl" and fault.kind == "shim"
            if is_java and (error := self._build(project)):
                return {"nbval": Outcome(void_reason=f"the fault does not compile: {error}")}
            outcomes: dict[str, Outcome] = {}
            for kind, check in list_checks(fault):
                noticed = [name for name, outcome in outcomes.items() if outcome.failures]
                if not noticed or (all_checks and kind not in noticed):
                    if check.is_notebook:
                        fault.weave_into(project)
                    outcomes[kind] = self._run_timed(check, project, "-x")
            return outcomes

    def try_without_fault(self, check: Check) -> Outcome:
        with self._copy() as project:
            return self._run_timed(check, project)

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        if self._is_stopped:
            raise StoppedError
        # A short name, because kernels create sockets in this folder, whose paths are limited.
        folder = self._folder / str(next(self._numbers))
        project = folder / "project"
        shutil.copytree(self._original, project, symlinks=True)
        # Jupyter searches this folder for kernels before others (JUPYTER_PATH below).
        kernel = folder / "jupyter" / "kernels" / "java"
        kernel.mkdir(parents=True)
        (kernel / "jjava.jar").symlink_to(KERNEL / "jjava.jar")
        spec = json.dumps(SPEC).replace(str(ROOT), str(project))
        (kernel / "kernel.json").write_text(spec, encoding="utf-8")
        try:
            yield project
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run_timed(self, check: Check, project: Path, *options: str) -> Outcome:
        start = time.monotonic()
        outcome = self._run(check, project, options)
        outcome.seconds = time.monotonic() - start
        return outcome

    def _run(self, check: Check, project: Path, options: tuple[str, ...]) -> Outcome:
        """Run a check; its outcome is void if it did not run to its end."""

        def find_reports() -> list[Path]:
            return [path for pattern in REPORTS for path in project.glob(pattern)]

        for report in find_reports():
            report.unlink()
        is_maven = check.command[: len(MAVEN)] == MAVEN
        command = check.command if is_maven else (*check.command, *options, *check.first)
        try:
            status, output = self._call((*command, *check.tests), project)
        except subprocess.TimeoutExpired:
            return Outcome(void_reason=f"over the limit of {TIMEOUT} s")
        reports = sorted(find_reports())
        cases = [case for path in reports for case in ElementTree.parse(path).iter("testcase")]
        failed = [case for case in cases if any(is_failure(part, is_maven) for part in case)]
        if not cases or status not in (0, 1) or bool(status) != bool(failed):
            return Outcome(
                void_reason=f"ended with {status}: " + " ".join(output.splitlines()[-3:])
            )
        names = [case.get("name", "") for case in failed]
        if not failed:
            return Outcome()
        if is_maven:
            return Outcome(names, failing_check=check)
        if not check.is_notebook:
            return Outcome(names, failing_check=replace(check, tests=(*map(make_test_id, failed),)))
        if "Cell 0" in names:  # the install cell, which has no fault
            return Outcome(void_reason="the first cell fails")
        return Outcome(name_cells(names, project / check.tests[0]), failing_check=check)

    def _build(self, project: Path) -> str:
        """Build DJL's classes; return the error, or ""."""
        status, output = self._call((*MAVEN, "-DskipTests", "package"), project)
        return (output or f"mvn ended with {status}") if status else ""

    def _call(self, command: tuple[str, ...], project: Path) -> tuple[int, str]:
        """Run a command in a copy; return its exit code and output. Raise TimeoutExpired or StoppedError."""
        folder = project.parent
        (folder / "tmp").mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(project),  # before the installed d2l_compat, in the kernels too
            "JUPYTER_PATH": str(folder / "jupyter"),
            "JUPYTER_RUNTIME_DIR": str(folder / "tmp"),
            "TMPDIR": str(folder / "tmp"),
            "OMP_NUM_THREADS": "1",
        }
        with self._starting:
            if self._is_stopped:
                raise StoppedError
            process = subprocess.Popen(
                command,
                cwd=project,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,  # Ctrl-C does not reach it; __exit__ kills it
            )
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
        except BaseException:
            kill(psutil.Process(process.pid))
            raise
        if self._is_stopped:
            raise StoppedError
        return process.returncode, output


def kill(process: psutil.Process) -> None:
    """Kill a process and its children; kernels run in other sessions and can only be found as children."""
    with suppress(psutil.NoSuchProcess):
        processes = [process, *process.children(recursive=True)]
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(processes, timeout=10)


def make_test_id(case: ElementTree.Element) -> str:
    """Return pytest's id of a test."""
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def name_cells(items: list[str], path: Path) -> list[str]:
    """Replace nbval's numbers of code cells by their names; claims already have names."""
    cells = nbformat.read(path, as_version=4).cells
    names = [cell.id for cell in cells if cell.cell_type == "code"]
    return [
        names[int(item.removeprefix("Cell "))] if item.startswith("Cell ") else item
        for item in items
    ]
