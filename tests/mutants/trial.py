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
OF_ALL_FACES = "tests/test_common.py", "tests/test_download.py", "tests/test_plot.py"
# Where a fault is likely noticed soonest, by the module that it is in.
TESTS_OF_A_ROOM = {
    **dict.fromkeys(("attention", "blockwise", "additive"), "tests/faces/test_attention.py"),
    **dict.fromkeys(("seq2seq", "training", "data", "dropout"), "tests/faces/test_training.py"),
    "encoding": "tests/faces/test_encoding.py",
    "transformer": "tests/faces/test_transformer.py",
    **dict.fromkeys(("text", "translation"), "tests/test_common.py"),
    **dict.fromkeys(("archives", "fetching"), "tests/test_download.py"),
    "plot": "tests/test_plot.py",
}
JAVA = Path("d2l_compat", "java")
MAVEN = ("mvn", "--offline", "--quiet", "--batch-mode", "-f", str(JAVA / "pom.xml"))
REPORTS = "report*.xml", str(JAVA / "target" / "surefire-reports" / "*.xml")
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junit-xml", "report.xml")


class StoppedError(Exception):
    """The user asked for an end."""


@dataclass(frozen=True)
class Check:
    command: tuple[str, ...]
    notebook: str = ""  # nbval's
    sooner: tuple[str, ...] = field(default=(), compare=False)  # tests to begin with


@dataclass
class Outcome:
    """Who noticed the fault (nobody, where the check passed), or why the check is void."""

    noticed: list[str] = field(default_factory=list)
    void: str = ""
    seconds: float = 0  # that the check took


def checks(fault: Fault) -> list[tuple[str, Check]]:
    """Those that should notice: nbval, notebook by notebook, and tests where there are any. What a notebook
    stores is nbval's matter in the first place, what code computes that of the tests."""
    found = [
        ("nbval", Check((*PYTEST, "-x", "--nbval", notebook), notebook))
        for notebook in fault.notebooks()
    ]
    framework = fault.framework
    match fault.place, framework:
        case "stored", _:
            which = f"{framework}/{fault.lesson}"
            found.append(("tests", Check((*PYTEST, "tests/test_notebooks.py", "-k", which))))
        case "shim", "djl":
            found.insert(0, ("tests", Check((*MAVEN, "test"))))
        case "shim", _:
            files = (*tests_of_a_face(fault), "--framework", framework)
            sooner = (TESTS_OF_A_ROOM[Path(fault.file).stem.strip("_")],)
            found.insert(0, ("tests", Check((*PYTEST, "-x", *files), sooner=sooner)))
        case "lesson", name if name in FACES:
            file = f"lessons/{fault.lesson}/claims.py"
            command = *PYTEST, "-x", "--as-needed", file, "--framework", framework
            found.insert(0, ("tests", Check(command, sooner=("--first", fault.cell))))
        case "lesson", "djl":
            of_it = ("tests/test_claims_in_java.py", "--frameworks", "djl", "-k", fault.lesson)
            found.insert(0, ("tests", Check((*PYTEST, "-x", *of_it))))
    return found


def at_once(found: Iterable[Check]) -> list[Check]:
    """Fewer checks, which pass where all of these do: a page's languages share an execution, and of two
    runs of tests the longer does for both."""
    pages: dict[tuple[str, ...], list[Check]] = {}
    others = []
    for check in dict.fromkeys(found):
        if check.notebook:
            pages.setdefault(Path(check.notebook).parts[-2:], []).append(check)
        else:
            others.append(check)
    merged = [
        replace(first, command=(*first.command, *(each.notebook for each in rest)))
        for first, *rest in pages.values()
    ]
    longest = [c for c in others if not any({*c.command} < {*more.command} for more in others)]
    return [*longest, *merged]


def tests_of_a_face(fault: Fault) -> list[str]:
    return ["tests/faces", *(OF_ALL_FACES if "_shared" in fault.file else ())]


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
                    said[column] = self._timed(check, project)
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

    def _timed(self, check: Check, project: Path) -> Outcome:
        start = time.monotonic()
        outcome = self._run(check, project)
        outcome.seconds = time.monotonic() - start
        return outcome

    def _run(self, check: Check, project: Path) -> Outcome:
        """A check that did not run its course has noticed nothing."""

        def written() -> list[Path]:
            return [path for pattern in REPORTS for path in project.glob(pattern)]

        for old in written():
            old.unlink()
        try:
            begin, *rest = check.command[: len(PYTEST)], *check.command[len(PYTEST) :]
            status, said = self._call((*begin, *check.sooner, *rest), project)
        except subprocess.TimeoutExpired:
            return Outcome(void=f"over the limit of {LIMIT} s")
        reports = sorted(written())
        cases = [case for path in reports for case in ElementTree.parse(path).iter("testcase")]
        # To pytest an error is what keeps a test from running; to Java any exception in it.
        kinds = {"failure"} if check.command[0] == sys.executable else {"failure", "error"}
        failed = [c.get("name", "") for c in cases if kinds & {part.tag for part in c}]
        if not cases or status not in (0, 1) or bool(status) != bool(failed):
            return Outcome(void=f"ended with {status}: " + " ".join(said.splitlines()[-3:]))
        if not check.notebook:
            return Outcome(failed)
        if "Cell 0" in failed:  # it imports: no fault is there, and something else is amiss
            return Outcome(void="the first cell fails")
        return Outcome(cell_names(failed, project / check.notebook))

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


def cell_names(numbers: list[str], path: Path) -> list[str]:
    """nbval counts the code cells; here they are by name."""
    cells = nbformat.read(path, as_version=4).cells
    names = [cell.id for cell in cells if cell.cell_type == "code"]
    return [names[int(number.removeprefix("Cell "))] for number in numbers]
