"""What importing one face costs: its framework, and nothing to plot with."""

import json
import subprocess
import sys

import pytest

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tests.shim.each.adapter import Adapter

PLOT_MODULES = {"IPython", "PIL", "matplotlib", "matplotlib_inline"}


def modules_after(*statements: str) -> list[set[str]]:
    """The modules that a fresh interpreter has loaded after each of the statements."""
    look = "print(json.dumps(list(sys.modules)))"
    program = "\n".join(["import json, sys", *(f"{this}\n{look}" for this in statements)])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


def bare(adapter: str) -> str:
    """Imports what the face is for, without the adapter."""
    module = adapter.rpartition(".")[2]
    lent = "from d2l_compat._mxnet_numpy import removed_names"
    return f"{lent}\nwith removed_names():\n    import {module}"


@pytest.fixture(scope="module")
def loaded(adapter: Adapter) -> dict[str, set[str]]:
    """Asked of one process, one thing after another."""
    statements = {
        "framework": bare(adapter.d2l.__name__),
        "adapter": f"import {adapter.d2l.__name__} as d2l",
        "its names": "names = dir(d2l), d2l.__all__",
        "linreg": "hasattr(d2l, 'linreg')",
        "plots": "d2l.plt",
    }
    return dict(zip(statements, modules_after(*statements.values()), strict=True))


def test_a_face_imports_its_framework_alone_and_matplotlib_when_first_used(
    loaded: dict[str, set[str]], pytestconfig: pytest.Config
) -> None:
    own = {
        package.module
        for package in PYTHON_FRAMEWORKS[pytestconfig.getoption("framework")].packages
    }
    others = {
        package.module for each in PYTHON_FRAMEWORKS.values() for package in each.packages
    } - own
    framework, imported = loaded["framework"], loaded["adapter"]
    assert own <= imported
    # TensorFlow imports JAX where it is installed.
    assert imported & others == framework & others
    # Keras and Paddle bring Pillow.
    assert imported & PLOT_MODULES == framework & PLOT_MODULES
    assert "matplotlib.pyplot" in loaded["plots"]


@pytest.mark.usefixtures("own")
def test_areas_are_loaded_when_they_are_used(adapter: Adapter, loaded: dict[str, set[str]]) -> None:
    areas = {f"{adapter.d2l.__name__}.{area}" for area in adapter.d2l.LAZY_MODULES}
    assert "linreg" in dir(adapter.d2l)
    assert "linreg" in adapter.d2l.__all__
    assert not loaded["its names"] & areas
    assert loaded["linreg"] & areas == {f"{adapter.d2l.__name__}.linear"}
    assert adapter.d2l.linreg is adapter.d2l.linreg
