"""What importing costs, and what it says where a framework does not work."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement

from d2l_compat import _frameworks

FRAMEWORK_MODULES = {"flax", "jax", "mxnet", "paddle", "tensorflow", "torch"}
PLOT_MODULES = {"IPython", "matplotlib", "matplotlib_inline"}
TORCH = _frameworks.FRAMEWORKS["pytorch"]
INSTALL = f'pip install "torch>={TORCH.minimum}"'
NEEDED = f"torch {TORCH.minimum} or newer is needed"


@cache
def modules_after(statement: str) -> frozenset[str]:
    """The modules that a fresh interpreter has loaded once it has run ``statement``."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return frozenset(json.loads(done.stdout))


# Costs


def test_the_package_imports_neither_a_framework_nor_numpy() -> None:
    loaded = modules_after("import d2l_compat")
    assert "d2l_compat" in loaded
    assert not loaded & (FRAMEWORK_MODULES | PLOT_MODULES | {"numpy"})


def test_a_face_imports_its_framework_alone_and_nothing_to_plot_with() -> None:
    loaded = modules_after("from d2l_compat import torch as d2l")
    assert loaded & FRAMEWORK_MODULES == {"torch"}
    assert not loaded & PLOT_MODULES


def test_matplotlib_comes_when_first_used() -> None:
    loaded = modules_after("from d2l_compat import torch as d2l; d2l.plt")
    assert "matplotlib.pyplot" in loaded
    assert "IPython" not in loaded


# Missing, too old, broken


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None, Any], None]:
    """Simulates a version of PyTorch, or none, and what importing it gives or raises."""

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

        monkeypatch.setattr(_frameworks.metadata, "version", find_version)
        monkeypatch.setattr(_frameworks, "import_module", import_module)

    return simulate


MISSING = ModuleNotFoundError("No module named 'torch'")


@pytest.mark.parametrize(
    ("version", "outcome", "words"),
    [
        pytest.param(None, MISSING, ["it is not installed"], id="missing"),
        pytest.param("2.3.1", ModuleType("torch"), ["2.3.1 is installed"], id="too old"),
        pytest.param("1.13.1+cpu", ModuleType("torch"), ["1.13.1+cpu is"], id="far too old"),
        pytest.param(
            "2.9.0",
            OSError("libcudart.so: cannot open shared object file"),
            ["2.9.0 is installed", "OSError: libcudart.so", "--force-reinstall"],
            id="broken",
        ),
        pytest.param(
            "2.9.0", MISSING, ["2.9.0 is installed", "No module named"], id="files are gone"
        ),
        pytest.param(
            None,
            OSError("libcudart.so"),
            ["a copy without a version is installed", "OSError: libcudart.so"],
            id="broken, version unknown",
        ),
    ],
)
def test_a_framework_that_does_not_work_is_named_with_the_command_that_helps(
    install: Callable[..., None], version: str | None, outcome: Any, words: list[str]
) -> None:
    install(version, outcome)
    with pytest.raises(ImportError) as caught:
        _frameworks.require("pytorch")
    for word in (NEEDED, INSTALL, *words):
        assert word in str(caught.value)


def test_the_cause_of_a_broken_framework_is_kept(install: Callable[..., None]) -> None:
    cause = OSError("libcudart.so")
    install("2.9.0", cause)
    with pytest.raises(ImportError) as caught:
        _frameworks.require("pytorch")
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize(
    "version", [TORCH.minimum, "2.4.0a0+git1", "2.4.1+cpu", "2.10.0", "3", None], ids=str
)
def test_a_framework_new_enough_or_of_unknown_version_is_imported(
    install: Callable[..., None], version: str | None
) -> None:
    torch = ModuleType("torch")
    install(version, torch)
    assert _frameworks.require("pytorch") is torch


def test_messages_and_extras_name_the_same_versions() -> None:
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    extras = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]
    assert set(extras) == set(_frameworks.FRAMEWORKS)
    for extra, framework in _frameworks.FRAMEWORKS.items():
        bounds = {r.name: str(r.specifier) for r in map(Requirement, extras[extra])}
        assert bounds[framework.distribution] == f">={framework.minimum}"
