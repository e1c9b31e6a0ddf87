"""Test the output of tools/checks.py while checks run, and that ``make test`` covers all test files."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

import pytest

from tools.weave.lessons import ROOT

MAKEFILE = """\
good:
	@echo "tests/a.py::test_one PASSED [ 50%]"
	@echo "tests/a.py::test_two[x y] SKIPPED (no GPU) [100%]"
bad:
	@PYTHON -m pytest -v -p tests.reasons -p xdist -n 1 --continue-on-collection-errors
java:
	@echo "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1, Time elapsed: 1 s <<< FAILURE! -- in d2l.MasksTest"
	@echo "[ERROR] d2l.MasksTest.zeros -- Time elapsed: 0.1 s <<< FAILURE!"
	@echo "org.opentest4j.AssertionFailedError: expected: <0> but was: <1>"
	@echo "	at d2l.MasksTest.zeros(MasksTest.java:12)"
	@echo "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1"
	@exit 1
cores:
	@echo "tests/a.py::test_with_$(JOBS)_cores PASSED [100%]"
style:
	@echo "a.py:1: a line is too long"
	@exit 1
endless:
	@touch started; sleep 300
"""


BROKEN = """\
import pytest

@pytest.fixture
def broken():
    raise OSError("no disk")

def test_sum():
    assert 1 + 1 == 3

def test_disk(broken):
    pass

def test_words():
    pytest.fail("two words", pytrace=False)

def test_that_passes():
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE.replace("PYTHON", sys.executable))
    (tmp_path / "test_broken.py").write_text(BROKEN)
    (tmp_path / "test_unreadable.py").write_text("import no_such_module\n")
    return tmp_path


def start_checks(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    # Leave out the variables of the make that runs the tests.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.Popen(
        [sys.executable, "-m", "tools.checks", *arguments],
        cwd=folder,
        env=environment
        | {"PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_checks(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Return the exit code and the printed lines, with 0 seconds everywhere."""
    process = start_checks(folder, *arguments)
    output, _ = process.communicate()
    return process.returncode, re.sub(r"in \d+ s", "in 0 s", output).splitlines()


def test_a_failed_test_is_shown_with_its_reason_before_its_check_ends(folder: Path) -> None:
    code, lines = run_checks(folder, "--jobs", "1", "bad", "java")
    assert code == 1
    bad = lines.index("bad failed in 0 s: 1 passed, 4 failed, 0 skipped")
    java = lines.index("java starts")
    assert lines[0] == "bad starts"
    assert bad < java
    for test, reason in {
        "test_broken.py::test_sum": "    assert (1 + 1) == 3",
        "test_broken.py::test_disk": "    OSError: no disk",
        "test_broken.py::test_words": "    Failed: two words",
        "test_unreadable.py": "    E   ModuleNotFoundError: No module named 'no_such_module'",
    }.items():
        failed = lines.index(f"bad: FAILED {test}")
        assert failed < bad
        assert reason in lines[failed : failed + 8]
    assert lines[java + 1 : java + 4] == [
        "java: FAILED d2l.MasksTest.zeros",
        "    org.opentest4j.AssertionFailedError: expected: <0> but was: <1>",
        "java failed in 0 s: 1 passed, 1 failed, 1 skipped",
    ]
    table = next(i for i, line in enumerate(lines) if ".log" in line)
    assert "bad: FAILED test_broken.py::test_sum" in lines[table:]  # a second time
    assert lines[-1] == "2 passed, 5 failed, 1 skipped"


def test_every_check_is_listed_and_counts_at_least_one_test(folder: Path) -> None:
    code, lines = run_checks(folder, "--jobs", "5", "good", "style", "cores")
    assert code == 1
    assert "good passed in 0 s: 1 passed, 0 failed, 1 skipped" in lines
    assert lines[lines.index("style: FAILED") + 1] == "    a.py:1: a line is too long"
    table = [line.split() for line in lines if ".log" in line]
    assert [row[:4] + row[5:] for row in table] == [
        ["good", "1", "0", "1", "build/logs/good.log"],
        ["style", "0", "1", "0", "build/logs/style.log"],
        ["cores", "1", "0", "0", "build/logs/cores.log"],
    ]
    assert "SKIPPED (no GPU)" in (folder / "build/logs/good.log").read_text()
    assert "test_with_2_cores" in (folder / "build/logs/cores.log").read_text()  # half of them
    assert lines[-1] == "2 passed, 1 failed, 1 skipped"


def test_ctrl_c_ends_running_checks(folder: Path, interrupt: Callable[..., str]) -> None:
    process = start_checks(folder, "--jobs", "2", "endless", "good")
    interrupt(process, [folder / "started"], process.terminate, min_children=2)
    assert process.returncode == 130


def test_every_test_file_belongs_to_a_check() -> None:
    checks = "code", "shim", "site", "elsewhere", "growth"
    targets = [f"test-{check}" for check in checks]
    make = ["make", "-n", "--no-print-directory", *targets, "FRAMEWORKS=pytorch"]
    process = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = process.stdout.replace("\\\n", " ").splitlines()
    commands = [line.split() for line in lines if "-m pytest" in line]
    arguments = {word for command in commands for word in command if "/" in word}
    for pattern in ("tests/**/test_*.py", "lessons/*/live/claims.py"):
        for path in ROOT.glob(pattern):
            file = PurePath(path.relative_to(ROOT))
            if fnmatchcase(str(file), "tests/growth/toy/*"):
                continue
            file_and_folders = [file, *file.parents[:-1]]
            assert any(each.match(word) for each in file_and_folders for word in arguments), file
