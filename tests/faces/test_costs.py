"""What importing one face costs: its framework, and nothing to plot with."""

import json
import subprocess
import sys
from types import ModuleType

import pytest

from d2l_compat.frameworks import FACES

PLOT_MODULES = {"IPython", "matplotlib", "matplotlib_inline"}


def modules_after(*statements: str) -> list[set[str]]:
    """The modules that a fresh interpreter has loaded after each of the statements."""
    look = "print(json.dumps(list(sys.modules)))"
    program = "\n".join(["import json, sys", *(f"{this}\n{look}" for this in statements)])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


def bare(face: str) -> str:
    """Imports what the face is for, without the face."""
    module = face.rpartition(".")[2]
    lent = "from d2l_compat._mxnet_numpy import removed_names"
    return f"{lent}\nwith removed_names():\n    import {module}"


def test_a_face_imports_its_framework_alone_and_matplotlib_when_first_used(
    face: ModuleType, pytestconfig: pytest.Config
) -> None:
    name = face.d2l.__name__
    own = {package.module for package in FACES[pytestconfig.getoption("framework")].packages}
    others = {package.module for each in FACES.values() for package in each.packages} - own
    framework, imported, used = modules_after(bare(name), f"import {name} as d2l", "d2l.plt")
    assert own <= imported
    # TensorFlow imports JAX where it is installed.
    assert imported & others == framework & others
    assert imported & PLOT_MODULES == framework & PLOT_MODULES
    assert "matplotlib.pyplot" in used
