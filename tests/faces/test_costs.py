"""What importing one face costs: its framework, and nothing to plot with."""

import json
import subprocess
import sys
from types import ModuleType

import pytest

from d2l_compat._frameworks import FRAMEWORKS

PLOT_MODULES = {"IPython", "matplotlib", "matplotlib_inline"}


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded once it has run ``statement``."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return set(json.loads(done.stdout))


def bare(face: str) -> str:
    """Imports what the face is for, without the face."""
    module = face.rpartition(".")[2]
    lent = "from d2l_compat._mxnet_numpy import removed_names"
    return f"{lent}\nwith removed_names():\n    import {module}"


def test_a_face_imports_its_framework_alone(face: ModuleType, pytestconfig: pytest.Config) -> None:
    name = face.d2l.__name__
    own = {package.module for package in FRAMEWORKS[pytestconfig.getoption("framework")]}
    others = {package.module for packages in FRAMEWORKS.values() for package in packages} - own
    loaded = modules_after(f"import {name}")
    assert own <= loaded
    # TensorFlow imports JAX where it is installed.
    assert loaded & others == modules_after(bare(name)) & others


def test_nothing_to_plot_with_is_imported_unless_the_framework_does(face: ModuleType) -> None:
    name = face.d2l.__name__
    loaded = modules_after(f"import {name}")
    assert loaded & PLOT_MODULES == modules_after(bare(name)) & PLOT_MODULES


def test_matplotlib_comes_when_first_used(face: ModuleType) -> None:
    loaded = modules_after(f"import {face.d2l.__name__} as d2l; d2l.plt")
    assert "matplotlib.pyplot" in loaded
