"""Test which frameworks can share a process: all, if Paddle comes before TensorFlow."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from d2l_compat.frameworks import PYTHON_FRAMEWORKS

PACKAGES = [package for framework in PYTHON_FRAMEWORKS.values() for package in framework.packages]
pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(
        not all(find_spec(each.module.partition(".")[0]) for each in PACKAGES),
        reason="some frameworks are not installed",
    ),
]


def import_packages(*names: str) -> subprocess.CompletedProcess[str]:
    program = "\n".join(f"import d2l_compat.{name}" for name in names)
    return subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )


def test_all_import_in_one_process() -> None:
    others = (x.module for name, x in PYTHON_FRAMEWORKS.items() if name != "paddle")
    process = import_packages("paddle", *others)
    assert process.returncode == 0, process.stderr


def test_paddle_after_tensorflow_crashes_interpreter() -> None:
    """Test a bug of Paddle. Once it is fixed, delete this test and the sentence in README.md."""
    process = import_packages("tensorflow", "paddle")
    assert process.returncode < 0, f"no crash, but exit code {process.returncode}: {process.stderr}"
