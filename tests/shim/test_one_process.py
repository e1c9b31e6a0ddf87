"""Which frameworks can share a process: all, as long as Paddle comes before TensorFlow."""

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
        reason="needs all of them",
    ),
]


def import_faces(*names: str) -> subprocess.CompletedProcess[str]:
    program = "\n".join(f"import d2l_compat.{name}" for name in names)
    return subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )


def test_all_import_in_one_process() -> None:
    others = (each.module for name, each in PYTHON_FRAMEWORKS.items() if name != "paddle")
    done = import_faces("paddle", *others)
    assert done.returncode == 0, done.stderr


def test_paddle_after_tensorflow_crashes_interpreter() -> None:
    """The day this fails, Paddle is mended: delete this test, and the sentence in README.md."""
    done = import_faces("tensorflow", "paddle")
    assert done.returncode < 0, f"no crash any more, but exit code {done.returncode}: {done.stderr}"
