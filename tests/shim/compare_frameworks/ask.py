"""Asks a framework, in a process of its own: some cannot live in one."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from d2l_compat.frameworks import FRAMEWORKS
from tests.shim.compare_frameworks.cases import draw
from tests.shim.compare_frameworks.expected import Answers
from tools.run.java import SPEC, TARGET
from tools.weave.lessons import ROOT


def ask(framework: str, dtype: str) -> Answers:
    with tempfile.TemporaryDirectory() as folder:
        given, answers = Path(folder, "given.npz"), Path(folder, "answers.npz")
        save(given, dtype)
        if not FRAMEWORKS[framework].is_python:
            classes = f"{TARGET}/test-classes:{TARGET}/classes:{TARGET}/lib/*"
            command = ["java", "-cp", classes, "d2l.Answers"]
        else:
            command = [sys.executable, "-m", "tests.shim.each.answers", framework]
        done = subprocess.run(
            [*command, given, answers],
            cwd=ROOT,
            env=os.environ | SPEC["env"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{framework}: {done.stderr}"
        return load(answers)


def save(given: Path, dtype: str) -> None:
    """The cases, for a program: KIND.CASE.ARRAY is each array's name."""
    arrays = {
        f"{case.kind}.{name}.{array}": x
        for name, case in draw(dtype).items()
        for array, x in case.arrays.items()
    }
    np.savez(given, **arrays)


def load(answers: Path) -> Answers:
    """What a program answered: CASE.ANSWER is each array's name."""
    found: Answers = {}
    with np.load(answers) as arrays:
        for name, array in arrays.items():
            case, _, what = name.partition(".")
            found.setdefault(case, {})[what] = array
    return found
