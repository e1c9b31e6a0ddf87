"""Tests that importing a package imports only its framework, and no package that few names need."""

import json
import subprocess
import sys

import pytest

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tests.shim.each.adapter import Adapter

OTHER_PACKAGES = {
    "IPython",
    "PIL",
    "matplotlib",
    "matplotlib_inline",
    "pandas",
    "requests",
    "torchvision",
}


def list_modules_after(*statements: str) -> list[set[str]]:
    """Return the modules that a fresh interpreter has loaded after each of the statements."""
    print_modules = "print(json.dumps(list(sys.modules)))"
    lines = [f"{statement}\n{print_modules}" for statement in statements]
    program = "\n".join(["import json, sys", *lines])
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return [set(json.loads(line)) for line in process.stdout.splitlines()]


def import_statements(package: str) -> str:
    """Return statements that import a package's framework, but not the package."""
    framework = package.rpartition(".")[2]
    names = "from d2l_compat._mxnet_numpy import add_removed_names"
    return f"{names}\nwith add_removed_names():\n    import {framework}"


@pytest.fixture(scope="module")
def loaded(adapter: Adapter) -> dict[str, set[str]]:
    """Return the modules loaded after each step of one process."""
    statements = {
        "framework": import_statements(adapter.d2l.__name__),
        "package": f"import {adapter.d2l.__name__} as d2l",
        "names": "names = dir(d2l), d2l.__all__",
        "linreg": "hasattr(d2l, 'linreg')",
        "plots": "d2l.plt",
    }
    return dict(zip(statements, list_modules_after(*statements.values()), strict=True))


def test_package_imports_only_its_framework(
    loaded: dict[str, set[str]], pytestconfig: pytest.Config
) -> None:
    modules = {
        name: {package.module for package in framework.packages}
        for name, framework in PYTHON_FRAMEWORKS.items()
    }
    needed = modules[pytestconfig.getoption("framework")]
    others = set().union(*modules.values()) - needed
    framework, imported = loaded["framework"], loaded["package"]
    assert needed <= imported
    # TensorFlow imports JAX if it is installed.
    assert imported & others == framework & others
    # Keras and PaddlePaddle import Pillow.
    assert imported & OTHER_PACKAGES == framework & OTHER_PACKAGES
    assert "matplotlib.pyplot" in loaded["plots"]


@pytest.mark.usefixtures("descent")
def test_modules_are_imported_on_first_use(adapter: Adapter, loaded: dict[str, set[str]]) -> None:
    modules = {f"{adapter.d2l.__name__}.{module}" for module in adapter.d2l.LAZY_MODULES}
    assert "linreg" in dir(adapter.d2l)
    assert "linreg" in adapter.exports
    assert not loaded["names"] & modules
    assert loaded["linreg"] & modules == {f"{adapter.d2l.__name__}.linear"}
    assert adapter.d2l.linreg is adapter.d2l.linreg
