"""Test that `make` keeps .venv in agreement with the locks, even after failures and interruptions.

`make` runs in a project with three frameworks. A fake program replaces Python, pip and uv.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.weave.lessons import ROOT

# The fake program: as `python -m venv` it makes a folder, as `uv pip sync` a folder for each package in the locks, and
# as `jupyter` it prints a variable. It fails, or is interrupted, at the command that HARM names.
PROGRAM = """\
import os, shutil, signal, sys
from pathlib import Path

name, arguments, here = Path(sys.argv[0]).name, sys.argv[1:], Path.cwd()
command = " ".join([name, *arguments])
if name == "javac":
    sys.exit()
with open(here / "log", "a") as log:
    print(command, file=log)
harm, _, part_of_command = os.environ.get("HARM", "").partition(" at ")
if harm and part_of_command in command:
    if harm == "interrupted":
        os.killpg(0, signal.SIGINT)  # as a terminal does
    sys.exit(1)
packages = here / ".venv/lib/python3.11/site-packages"
if "venv" in arguments:
    packages.mkdir(parents=True)
    (here / ".venv/bin").mkdir()
    for other in ("python", "pip", "uv", "jupyter"):
        shutil.copy2(sys.argv[0], here / ".venv/bin" / other)
if "sync" in arguments:
    for old in packages.iterdir():
        old.rmdir()
    for lock in arguments[arguments.index("--require-hashes") + 1 :]:
        for package in (here / lock).read_text().split():
            (packages / f"{package}.dist-info").mkdir(exist_ok=True)
if "--target" in arguments:
    target = here / arguments[arguments.index("--target") + 1]
    shutil.copytree(here / "requirements", target)
if name == "jupyter":
    print(os.environ.get("D2L_COMPAT_INSTALL"))
"""
UP_TO_DATE = "make: Nothing to be done for 'env'.\n"


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.packages = root / ".venv/lib/python3.11/site-packages"
        (root / "requirements").mkdir(parents=True)
        (root / "d2l_compat/java/src").mkdir(parents=True)
        (root / "pyproject.toml").touch()
        shutil.copy(ROOT / "Makefile", root)
        for framework in "abc":
            self.write_lock(framework, 1)
        self.older_d2l = root / "requirements/d2l-0.17.txt"
        self.older_d2l.write_text("d2l-1\n")
        self.programs = root / "programs"
        self.programs.mkdir()
        for name in ("python3", "javac"):
            (self.programs / name).write_text(f"#!{sys.executable} -IS\n{PROGRAM}")
            (self.programs / name).chmod(0o755)

    def write_lock(self, framework: str, version: int) -> None:
        """Write a lock that is newer than all other files."""
        for file in self.root.rglob("*"):
            os.utime(file, (1, 1))
        lock = self.root / "requirements" / f"{framework}.lock"
        lock.write_text(f"shared-1\n{framework}-{version}\n")

    def make(self, frameworks: str, target: str = "env", harm: str = "") -> tuple[int, str]:
        """Run make; return its exit code and output."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        # Leave out the variables of the make that runs the tests.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("MAKE")
        }
        process = subprocess.run(
            ["make", target, f"FRAMEWORKS={frameworks}"],
            cwd=self.root,
            env={**environment, "PATH": path, "HARM": harm, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            start_new_session=True,
        )
        return process.returncode, process.stdout

    def list_packages(self) -> set[str]:
        return {path.stem for path in self.packages.iterdir()}

    def list_stamps(self) -> list[str]:
        return [path.name for path in self.root.glob(".venv/.ready-*")]


ALL = {"shared-1", "a-1", "b-1", "c-1"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with nothing installed."""
    return Project(tmp_path / "project")


@pytest.fixture
def full_project(project: Project) -> Project:
    """Return a project with all frameworks installed."""
    assert project.make("a b c") == (
        0,
        "Installing a b c into .venv (once; some gigabytes) ...\n",
    )
    assert project.list_packages() == ALL
    return project


@pytest.mark.parametrize("harm", ["failed at -m venv", "interrupted at pip sync"])
def test_an_unfinished_installation_leaves_no_stamp(project, harm):
    assert project.make("a", harm=harm)[0] != 0
    assert project.list_stamps() == []
    assert project.make("a")[0] == 0
    assert project.list_packages() == {"shared-1", "a-1"}
    assert project.list_stamps() == [".ready-a"]


@pytest.mark.parametrize("step", ["--require-hashes -r", "pip sync", "pip install --quiet"])
def test_an_unfinished_change_leaves_no_stamp_and_keeps_all_packages(project, step):
    project.make("a b")
    project.write_lock("b", 2)
    assert project.make("c", harm=f"failed at {step}")[0] != 0
    assert project.list_stamps() == []
    message = "Updating .venv to the locks of a b ...\n"
    assert project.make("a") == (0, message)
    assert project.list_packages() == {"shared-1", "a-1", "b-2"}
    assert project.make("a b") == (0, UP_TO_DATE)


def test_installed_packages_stay_and_missing_ones_are_restored(full_project):
    (full_project.packages / "own-1.dist-info").mkdir()
    log = (full_project.root / "log").read_text()
    for frameworks in ("a", "c  b a"):
        assert full_project.make(frameworks) == (0, UP_TO_DATE)
    assert (full_project.root / "log").read_text() == log  # no command was run
    assert full_project.list_packages() == ALL | {"own-1"}
    (full_project.packages / "b-1.dist-info").rmdir()
    assert full_project.make("a") == (0, "Updating .venv to the locks of a b c ...\n")
    assert full_project.list_packages() == ALL
    (stamp,) = full_project.list_stamps()
    (full_project.root / ".venv" / stamp).write_text("")  # lists no package
    assert "Updating .venv" in full_project.make("a")[1]


def test_new_frameworks_are_added_to_the_installed_ones(project):
    project.make("b")
    message = "Installing a c into .venv beside b (once; some gigabytes) ...\n"
    assert project.make("c a") == (0, message)
    assert project.list_packages() == ALL
    assert len(project.list_stamps()) == 1


def test_the_install_cell_installs_nothing_under_make(full_project):
    assert full_project.make("a", "lab")[1].splitlines()[-1] == "never"


def test_an_older_d2l_is_installed_into_its_own_folder(full_project):
    (full_project.root / ".venv/d2l-0.17").rename(full_project.root / "moved")
    assert full_project.make("a")[0] == 0
    full_project.write_lock("b", 1)
    full_project.older_d2l.write_text("d2l-2\n")
    assert full_project.make("a", harm="failed at --target")[0] != 0
    assert full_project.make("a")[0] == 0
    assert (full_project.root / ".venv/d2l-0.17/d2l-0.17.txt").read_text() == "d2l-2\n"
    assert full_project.list_packages() == ALL
    assert full_project.make("a") == (0, UP_TO_DATE)
