"""Tests of the modules that an import loads, and of its errors if a framework does not work."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement

from d2l_compat._shared import require
from d2l_compat.frameworks import PYTHON_FRAMEWORKS

PACKAGES = [package for framework in PYTHON_FRAMEWORKS.values() for package in framework.packages]
FRAMEWORK_MODULES = {package.module.partition(".")[0] for package in PACKAGES}
DISTRIBUTIONS = {package.distribution for package in PACKAGES}
PLOT_MODULES = {"IPython", "matplotlib", "matplotlib_inline"}
(TORCH,) = PYTHON_FRAMEWORKS["pytorch"].packages
INSTALL_COMMAND = f'pip install "torch>={TORCH.minimum}"'
REQUIREMENT = f"torch {TORCH.minimum} or newer is needed"


def test_package_imports_neither_framework_nor_numpy() -> None:
    program = "import d2l_compat, json, sys; print(json.dumps(list(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = set(json.loads(process.stdout))
    assert "d2l_compat" in loaded
    assert not loaded & (FRAMEWORK_MODULES | PLOT_MODULES | {"numpy"})


PROGRAM_WITHOUT_POSIX = """
import sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
from importlib import import_module
from pkgutil import walk_packages
from d2l_compat import _install, _shared
for module in walk_packages(_shared.__path__, "d2l_compat._shared."):
    import_module(module.name)
    print(module.name)
"""


def test_shared_code_needs_no_posix_modules() -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM_WITHOUT_POSIX], capture_output=True, check=True
    )
    assert b"d2l_compat._shared.data.files" in process.stdout.split()


# Missing, too old, broken


@pytest.fixture
def simulate_torch(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None, Any], None]:
    """Return a function that simulates a version of PyTorch, or none, and the outcome of importing it."""

    def simulate(version: str | None, outcome: Any) -> None:
        def find_version(distribution: str) -> str:
            if version is None:
                raise PackageNotFoundError(distribution)
            return version

        def import_module(name: str) -> ModuleType:
            assert name == "torch"
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(require.metadata, "version", find_version)
        monkeypatch.setattr(require, "import_module", import_module)

    return simulate


NO_TORCH_ERROR = ModuleNotFoundError("No module named 'torch'")


@pytest.mark.parametrize(
    ("version", "outcome", "words"),
    [
        pytest.param(None, NO_TORCH_ERROR, ["it is not installed"], id="missing"),
        pytest.param("2.3.1", ModuleType("torch"), ["2.3.1 is installed"], id="too old"),
        pytest.param("1.13.1+cpu", ModuleType("torch"), ["1.13.1+cpu is"], id="far too old"),
        pytest.param(
            "2.9.0",
            OSError("libcudart.so: cannot open shared object file"),
            ["2.9.0 is installed", "OSError: libcudart.so", "--force-reinstall"],
            id="broken",
        ),
        pytest.param(
            "2.9.0", NO_TORCH_ERROR, ["2.9.0 is installed", "No module named"], id="files are gone"
        ),
        pytest.param(
            None,
            OSError("libcudart.so"),
            ["a copy without a version is installed", "OSError: libcudart.so"],
            id="broken, version unknown",
        ),
    ],
)
def test_broken_framework_error_names_command(
    simulate_torch: Callable[..., None], version: str | None, outcome: Any, words: list[str]
) -> None:
    simulate_torch(version, outcome)
    with pytest.raises(ImportError) as caught:
        require.require("pytorch")
    for word in (REQUIREMENT, INSTALL_COMMAND, *words):
        assert word in str(caught.value)


def test_cause_of_broken_framework_is_kept(simulate_torch: Callable[..., None]) -> None:
    cause = OSError("libcudart.so")
    simulate_torch("2.9.0", cause)
    with pytest.raises(ImportError) as caught:
        require.require("pytorch")
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize(
    "version", [TORCH.minimum, "2.5.0a0+git1", "2.5.1+cpu", "2.10.0", "3", None], ids=str
)
def test_new_or_unknown_version_is_imported(
    simulate_torch: Callable[..., None], version: str | None
) -> None:
    simulate_torch(version, ModuleType("torch"))
    require.require("pytorch")


def test_renamed_distribution_reports_its_version(simulate_torch: Callable[..., None]) -> None:
    torch = ModuleType("torch")
    torch.__version__ = "2.3.0+git"
    simulate_torch(None, torch)
    with pytest.raises(ImportError, match=r"2\.3\.0\+git is installed\. Upgrade it"):
        require.require("pytorch")


@pytest.mark.parametrize("name", PYTHON_FRAMEWORKS)
def test_missing_package_error_names_install_command(name: str) -> None:
    first = PYTHON_FRAMEWORKS[name].packages[0]
    module = "torch" if name == "pytorch" else name
    program = f"""
import importlib.abc, importlib.metadata, sys

class NoFrameworks(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in {FRAMEWORK_MODULES!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

version = importlib.metadata.version
def hide_version(name):
    if name in {DISTRIBUTIONS!r}:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)

importlib.metadata.version = hide_version
sys.meta_path.insert(0, NoFrameworks())
from d2l_compat import {module}
"""
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    error = process.stderr.strip().splitlines()[-1]
    assert error.startswith(f"ImportError: {first.distribution} {first.minimum} or newer is needed")
    assert "it is not installed" in error
    assert error.endswith(f"Install it: {first.install}")
    assert "During handling" not in process.stderr


def test_messages_and_extras_name_same_versions() -> None:
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]
    assert set(extras) - {"djl"} == set(PYTHON_FRAMEWORKS)  # DJL is not a Python package
    for name, framework in PYTHON_FRAMEWORKS.items():
        bounds = {r.name: str(r.specifier) for r in map(Requirement, extras[name])}
        for package in framework.packages:
            assert bounds[package.distribution] == f">={package.minimum}"
