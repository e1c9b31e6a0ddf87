"""Compute the cases in one framework, in its own process: some frameworks cannot be imported together."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from d2l_compat.frameworks import FRAMEWORKS
from tests.shim.compare_frameworks.cases import draw_cases
from tests.shim.compare_frameworks.expected import Answers
from tools.run.java import SPEC, TARGET
from tools.weave.lessons import ROOT


def ask_framework(framework: str, dtype: str) -> Answers:
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = Path(folder, "inputs.npz"), Path(folder, "outputs.npz")
        save(inputs, dtype)
        if not FRAMEWORKS[framework].is_python:
            classes = f"{TARGET}/test-classes:{TARGET}/classes:{TARGET}/lib/*"
            command = ["java", "-cp", classes, "d2l.Answers"]
        else:
            command = [sys.executable, "-m", "tests.shim.each.answers", framework]
        process = subprocess.run(
            [*command, inputs, outputs],
            cwd=ROOT,
            env=os.environ | SPEC["env"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, f"{framework}: {process.stderr}"
        return load(outputs)


def save(path: Path, dtype: str) -> None:
    """Save the cases for a program; an array's name is KIND.CASE.ARRAY."""
    arrays = {
        f"{case.kind}.{name}.{array}": x
        for name, case in draw_cases(dtype).items()
        for array, x in case.arrays.items()
    }
    np.savez(path, **arrays)


def load(path: Path) -> Answers:
    """Load a program's answers; an array's name is CASE.ANSWER."""
    answers: Answers = {}
    with np.load(path) as arrays:
        for key, array in arrays.items():
            case, _, name = key.partition(".")
            answers.setdefault(case, {})[name] = array
    return answers
