"""The environment in .venv: it is what the locks say, or says that it is not.

`make` runs in a project of three frameworks, in which a program that installs nothing stands in for Python, pip and uv.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.weave.lessons import ROOT

# As `python -m venv` it makes an environment, as `uv pip sync` it puts into that what the locks name,
# as `jupyter` it tells what it found around it. It fails, or is interrupted, where it is told to.
STAND_IN = """\
import os, shutil, signal, sys
from pathlib import Path

name, given, here = Path(sys.argv[0]).name, sys.argv[1:], Path.cwd()
said = " ".join([name, *given])
if name == "javac":
    sys.exit()
with open(here / "log", "a") as log:
    print(said, file=log)
harm, _, where = os.environ.get("HARM", "").partition(" at ")
if harm and where in said:
    if harm == "interrupted":
        os.killpg(0, signal.SIGINT)  # as a terminal does
    sys.exit(1)
packages = here / ".venv/lib/python3.11/site-packages"
if "venv" in given:
    packages.mkdir(parents=True)
    (here / ".venv/bin").mkdir()
    for other in ("python", "pip", "uv", "jupyter"):
        shutil.copy2(sys.argv[0], here / ".venv/bin" / other)
if "sync" in given:
    for old in packages.iterdir():
        old.rmdir()
    for lock in given[given.index("--require-hashes") + 1 :]:
        for package in (here / lock).read_text().split():
            (packages / f"{package}.dist-info").mkdir(exist_ok=True)
if "--target" in given:
    older = here / given[given.index("--target") + 1]
    shutil.copytree(here / "requirements", older)
if name == "jupyter":
    print(os.environ.get("D2L_COMPAT_INSTALL"))
"""
NOTHING = "make: Nothing to be done for 'env'.\n"


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.packages = root / ".venv/lib/python3.11/site-packages"
        (root / "requirements").mkdir(parents=True)
        (root / "d2l_compat/java/src").mkdir(parents=True)
        (root / "pyproject.toml").touch()
        shutil.copy(ROOT / "Makefile", root)
        for framework in "abc":
            self.lock(framework, 1)
        self.older = root / "requirements/d2l-0.17.txt"
        self.older.write_text("d2l-1\n")
        self.programs = root / "programs"
        self.programs.mkdir()
        for name in ("python3", "javac"):
            (self.programs / name).write_text(f"#!{sys.executable} -IS\n{STAND_IN}")
            (self.programs / name).chmod(0o755)

    def lock(self, framework: str, version: int) -> None:
        """Newer than all that there is."""
        for file in self.root.rglob("*"):
            os.utime(file, (1, 1))
        lock = self.root / "requirements" / f"{framework}.lock"
        lock.write_text(f"shared-1\n{framework}-{version}\n")

    def make(self, frameworks: str, target: str = "env", harm: str = "") -> tuple[int, str]:
        """The exit code, and what was said."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        # Not as a part of the make that runs the tests.
        own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(
            ["make", target, f"FRAMEWORKS={frameworks}"],
            cwd=self.root,
            env={**own, "PATH": path, "HARM": harm, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            start_new_session=True,
        )
        return done.returncode, done.stdout

    def holds(self) -> set[str]:
        return {path.stem for path in self.packages.iterdir()}

    def stamps(self) -> list[str]:
        return [path.name for path in self.root.glob(".venv/.ready-*")]


ALL = {"shared-1", "a-1", "b-1", "c-1"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """With nothing installed."""
    return Project(tmp_path / "project")


@pytest.fixture
def full(project: Project) -> Project:
    """With all that there is."""
    assert project.make("a b c") == (
        0,
        "Installing a b c into .venv (once; some gigabytes) ...\n",
    )
    assert project.holds() == ALL
    return project


@pytest.mark.parametrize("harm", ["failed at -m venv", "interrupted at pip sync"])
def test_an_installation_that_was_not_finished_leaves_no_stamp(project, harm):
    assert project.make("a", harm=harm)[0] != 0
    assert project.stamps() == []
    assert project.make("a")[0] == 0
    assert project.holds() == {"shared-1", "a-1"}
    assert project.stamps() == [".ready-a"]


@pytest.mark.parametrize("step", ["--require-hashes -r", "pip sync", "pip install --quiet"])
def test_a_change_that_was_not_finished_leaves_no_stamp_and_loses_nothing(project, step):
    project.make("a b")
    project.lock("b", 2)
    assert project.make("c", harm=f"failed at {step}")[0] != 0
    assert project.stamps() == []
    said = "Bringing .venv to what the locks of a b say ...\n"
    assert project.make("a") == (0, said)
    assert project.holds() == {"shared-1", "a-1", "b-2"}
    assert project.make("a b") == (0, NOTHING)


def test_what_is_there_stays_without_a_word_and_what_was_removed_by_hand_comes_back(full):
    (full.packages / "own-1.dist-info").mkdir()
    log = (full.root / "log").read_text()
    for asked in ("a", "c  b a"):
        assert full.make(asked) == (0, NOTHING)
    assert (full.root / "log").read_text() == log
    assert full.holds() == ALL | {"own-1"}
    (full.packages / "b-1.dist-info").rmdir()
    assert full.make("a") == (0, "Bringing .venv to what the locks of a b c say ...\n")
    assert full.holds() == ALL
    (stamp,) = full.stamps()
    (full.root / ".venv" / stamp).write_text("")  # lists nothing
    assert "Bringing .venv" in full.make("a")[1]


def test_what_is_new_comes_beside_what_is_there_and_is_said_in_one_line(project):
    project.make("b")
    said = "Installing a c into .venv beside b (once; some gigabytes) ...\n"
    assert project.make("c a") == (0, said)
    assert project.holds() == ALL
    assert len(project.stamps()) == 1


def test_under_make_a_notebooks_first_cell_installs_nothing(full):
    assert full.make("a", "lab")[1].splitlines()[-1] == "never"


def test_an_older_d2l_stands_apart_and_is_what_its_file_says(full):
    (full.root / ".venv/d2l-0.17").rename(full.root / "moved")
    assert full.make("a")[0] == 0
    full.lock("b", 1)
    full.older.write_text("d2l-2\n")
    assert full.make("a", harm="failed at --target")[0] != 0
    assert full.make("a")[0] == 0
    assert (full.root / ".venv/d2l-0.17/d2l-0.17.txt").read_text() == "d2l-2\n"
    assert full.holds() == ALL
    assert full.make("a") == (0, NOTHING)
