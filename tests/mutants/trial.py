"""A trial: a scratch copy of the project, a fault in it, and the checks that should notice."""

import json
import os
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

from d2l_compat.frameworks import FACES
from tests.mutants.fault import DoesNotFitError, Fault
from tools.run.java import KERNEL, SPEC, TARGET
from tools.weave.lessons import ROOT

LIMIT = 900  # seconds for one check
# Of what the faces share, these test what no face does for itself.
OF_ALL_FACES = (
    *("tests/shim/test_common.py", "tests/shim/test_download.py", "tests/shim/test_plot.py"),
    "tests/shim/test_reinforcement.py",
)
# Where a fault is likely noticed soonest, by the module that it is in.
TESTS_OF_A_ROOM = {
    **dict.fromkeys(("attention", "blockwise", "additive"), "tests/shim/each/test_attention.py"),
    **dict.fromkeys(("seq2seq", "training", "data", "dropout"), "tests/shim/each/test_training.py"),
    "encoding": "tests/shim/each/test_encoding.py",
    "transformer": "tests/shim/each/test_transformer.py",
    **dict.fromkeys(("text", "translation"), "tests/shim/test_common.py"),
    **dict.fromkeys(("archives", "fetching"), "tests/shim/test_download.py"),
    "plot": "tests/shim/test_plot.py",
    "reinforcement": "tests/shim/test_reinforcement.py",
}
JAVA = Path("d2l_compat", "java")
MAVEN = ("mvn", "--offline", "--quiet", "--batch-mode", "-f", str(JAVA / "pom.xml"))
REPORTS = "report*.xml", str(JAVA / "target" / "surefire-reports" / "*.xml")
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junit-xml", "report.xml")
NBVAL = (*PYTEST, "--nbval")
CLAIMS = (*PYTEST, "--nbval-lax", "--claims")  # in Java, which executes notebooks alone


class StoppedError(Exception):
    """The user asked for an end."""


@dataclass(frozen=True)
class Check:
    """Of a notebook, or tests: whole files, or some of them by name."""

    command: tuple[str, ...]
    tests: tuple[str, ...] = ()  # or the notebook
    sooner: tuple[str, ...] = field(default=(), compare=False)  # tests to begin with

    @property
    def executes(self) -> bool:
        """Whether it is a notebook, which is executed."""
        return self.command in (NBVAL, CLAIMS)


@dataclass
class Outcome:
    """Who noticed the fault (nobody, where the check passed), or why the check is void."""

    noticed: list[str] = field(default_factory=list)
    void: str = ""
    by: Check | None = None  # of those alone who noticed it
    seconds: float = 0  # that the check took


def checks(fault: Fault) -> list[tuple[str, Check]]:
    """Those that should notice: nbval, notebook by notebook, and tests where there are any. What a notebook
    stores is nbval's matter in the first place, what code computes that of the tests."""
    found = [("nbval", Check(NBVAL, (notebook,))) for notebook in fault.notebooks()]
    framework = fault.framework
    match fault.place, framework:
        case "stored", _:
            command = *PYTEST, "-k", f"{framework}/{fault.lesson}"
            found.append(("tests", Check(command, ("tests/lessons/test_notebooks.py",))))
        case "shim", "djl":
            found.insert(0, ("tests", Check((*MAVEN, "test"))))
        case "shim", _:
            files = "tests/shim/each", *(OF_ALL_FACES if "_shared" in fault.file else ())
            sooner = TESTS_OF_A_ROOM.get(Path(fault.file).stem.strip("_"), files[0])
            found.insert(0, ("tests", Check((*PYTEST, "--framework", framework), files, (sooner,))))
        case "lesson", name if name in FACES:
            command = *PYTEST, "--as-needed", "--framework", framework
            claims = f"lessons/{fault.lesson}/claims.py"
            found.insert(0, ("tests", Check(command, (claims,), ("--first", fault.cell))))
        case "lesson", "djl":
            found.insert(0, ("tests", Check(CLAIMS, (fault.notebooks()[0],))))
    return found


def to_pass_without(outcomes: Iterable[Outcome]) -> list[Check]:
    """All who noticed a fault, each once; the languages of a page share an execution."""
    tests: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, None]] = {}
    for check in (outcome.by for outcome in outcomes if outcome.by):
        page = Path(check.tests[0]).parts[-2:] if check.executes else ()
        tests.setdefault((check.command, page), {}).update(dict.fromkeys(check.tests))
    return [Check(command, (*names,)) for (command, _), names in tests.items()]


def shares_tests(one: Check, other: Check) -> bool:
    """Maven's are all its tests."""
    return one.command == other.command and (one == other or bool({*one.tests} & {*other.tests}))


class Workshop:
    """Makes scratch copies in a folder and runs checks in them; left, it ends what runs there."""

    def __init__(self, folder: Path, with_java: bool) -> None:
        """What changes in the project from now on is not tried.

        Raises SystemExit where DJL's classes are needed and cannot be built.
        """
        self._folder, self._original = folder, folder / "original"
        self._numbers = count()
        self._starting = threading.Lock()
        self._is_stopped = False
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for file in filter(None, files.split("\0")):
            if (ROOT / file).exists():
                (self._original / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, self._original / file)
        if with_java:
            target = self._original / JAVA / "target"
            target.mkdir()
            (TARGET / "djl").mkdir(exist_ok=True)  # empty until DJL has run here
            for big in ("lib", "djl"):
                (target / big).symlink_to(TARGET / big)
            is_ready = (TARGET / "lib").is_dir()
            if fault := self._build(self._original) if is_ready else "run `make` first":
                raise SystemExit(f"DJL's classes cannot be built: {fault}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._starting:
            self._is_stopped = True
        for child in psutil.Process().children():
            end(child)

    def try_fault(self, fault: Fault, by_all: bool = False) -> dict[str, Outcome]:
        """What the checks say of the fault, up to the first that notices it, or all. Raises StoppedError."""
        with self._copy() as project:
            try:
                fault.put_into(project)
            except DoesNotFitError as error:
                return {"nbval": Outcome(void=str(error))}
            is_java = fault.framework == "djl" and fault.place == "shim"
            if is_java and (words := self._build(project)):
                return {"nbval": Outcome(void=f"it does not compile: {words}")}
            said: dict[str, Outcome] = {}
            for column, check in checks(fault):
                noticed = [name for name, outcome in said.items() if outcome.noticed]
                if not noticed or (by_all and column not in noticed):
                    if check.executes:  # the tests do without
                        fault.weave_into(project)
                    said[column] = self._timed(check, project, "-x")
            return said

    def try_unchanged(self, check: Check) -> Outcome:
        with self._copy() as project:
            return self._timed(check, project)

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        if self._is_stopped:
            raise StoppedError
        # A short name: kernels put sockets into it, whose paths have a limit.
        folder = self._folder / str(next(self._numbers))
        project = folder / "project"
        shutil.copytree(self._original, project, symlinks=True)
        # Among the places for kernels, this folder comes first.
        kernel = folder / "jupyter" / "kernels" / "java"
        kernel.mkdir(parents=True)
        (kernel / "jjava.jar").symlink_to(KERNEL / "jjava.jar")
        spec = json.dumps(SPEC).replace(str(ROOT), str(project))
        (kernel / "kernel.json").write_text(spec, encoding="utf-8")
        try:
            yield project
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _timed(self, check: Check, project: Path, *options: str) -> Outcome:
        start = time.monotonic()
        outcome = self._run(check, project, options)
        outcome.seconds = time.monotonic() - start
        return outcome

    def _run(self, check: Check, project: Path, options: tuple[str, ...]) -> Outcome:
        """A check that did not run its course has noticed nothing."""

        def written() -> list[Path]:
            return [path for pattern in REPORTS for path in project.glob(pattern)]

        for old in written():
            old.unlink()
        is_maven = check.command[: len(MAVEN)] == MAVEN
        command = check.command if is_maven else (*check.command, *options, *check.sooner)
        try:
            status, said = self._call((*command, *check.tests), project)
        except subprocess.TimeoutExpired:
            return Outcome(void=f"over the limit of {LIMIT} s")
        reports = sorted(written())
        cases = [case for path in reports for case in ElementTree.parse(path).iter("testcase")]
        # To pytest an error is what keeps a test from running; to Java any exception in it.
        kinds = {"failure", "error"} if is_maven else {"failure"}
        failed = [case for case in cases if kinds & {part.tag for part in case}]
        if not cases or status not in (0, 1) or bool(status) != bool(failed):
            return Outcome(void=f"ended with {status}: " + " ".join(said.splitlines()[-3:]))
        names = [case.get("name", "") for case in failed]
        if not failed:
            return Outcome()
        if is_maven:
            return Outcome(names, by=check)
        if not check.executes:
            return Outcome(names, by=replace(check, tests=(*map(test_name, failed),)))
        if "Cell 0" in names:  # it imports: no fault is there, and something else is amiss
            return Outcome(void="the first cell fails")
        return Outcome(cell_names(names, project / check.tests[0]), by=check)

    def _build(self, project: Path) -> str:
        """Make DJL's classes; return what is wrong, or nothing."""
        status, said = self._call((*MAVEN, "-DskipTests", "package"), project)
        return (said or f"mvn ended with {status}") if status else ""

    def _call(self, command: tuple[str, ...], project: Path) -> tuple[int, str]:
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
                start_new_session=True,  # Ctrl-C is ours to pass on
            )
        try:
            said, _ = process.communicate(timeout=LIMIT)
        except BaseException:
            end(psutil.Process(process.pid))
            raise
        if self._is_stopped:
            raise StoppedError
        return process.returncode, said


def end(process: psutil.Process) -> None:
    """With its kernels, which run in sessions of their own and are found as children alone."""
    with suppress(psutil.NoSuchProcess):
        family = [process, *process.children(recursive=True)]
        for member in family:
            with suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family, timeout=10)


def test_name(case: ElementTree.Element) -> str:
    """As pytest finds it."""
    return f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"


def cell_names(items: list[str], path: Path) -> list[str]:
    """nbval counts the code cells; here they are by name, as claims are."""
    cells = nbformat.read(path, as_version=4).cells
    names = [cell.id for cell in cells if cell.cell_type == "code"]
    return [
        names[int(item.removeprefix("Cell "))] if item.startswith("Cell ") else item
        for item in items
    ]
