"""Tests of ``d2l_compat.install`` and its calls of pip; tests/elsewhere runs it on imitations of Colab and others."""

import subprocess
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

import d2l_compat
from d2l_compat import _install
from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS, SETUPTOOLS
from tests.tools.test_project import EXTRAS, PYPROJECT

CONFLICT = "ERROR: ResolutionImpossible: for help visit ..."


@dataclass
class Service:
    """A service that has some modules, and a pip that records its calls and does nothing."""

    modules: set[str]
    installed: list[tuple[str | None, str]] = field(default_factory=list)  # names and versions
    requires: list[str] = field(default_factory=list)  # a framework's requirements
    errors: list[str] = field(default_factory=list)  # of each call of pip; empty means success
    calls: list[list[str]] = field(default_factory=list)  # pip's arguments without constraints
    constraints: list[str] = field(default_factory=list)

    def find_spec(self, name: str) -> object:
        return object() if name in self.modules else None

    def distributions(self, name: str | None = None) -> list[Any]:
        return [
            SimpleNamespace(name=n, version=v, metadata={"Name": n, "Version": v} if n else {})
            for n, v in self.installed
            if name is None or (n or "").lower() == name
        ]

    def run(self, command: list[str], **options: Any) -> Any:
        assert command[:4] == [sys.executable, "-m", "pip", "install"]
        assert options["encoding"] == options["env"]["PYTHONIOENCODING"] == "utf-8"
        i = command.index("--constraint")
        self.constraints = Path(command[i + 1]).read_text(encoding="utf-8").splitlines()
        self.calls.append(command[4:i] + command[i + 2 :])
        error = self.errors.pop(0) if self.errors else ""
        return SimpleNamespace(returncode=bool(error), stderr=error)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    """Return a service with everything that any framework needs."""
    packages = [
        package for framework in PYTHON_FRAMEWORKS.values() for package in framework.packages
    ]
    modules = {package.module for package in (*packages, *_install.OWN_DEPENDENCIES, SETUPTOOLS)}
    service = Service(modules)
    monkeypatch.delenv("D2L_COMPAT_INSTALL", raising=False)
    monkeypatch.setattr(_install, "find_spec", service.find_spec)
    monkeypatch.setattr(_install, "import_module", lambda name: None)
    monkeypatch.setattr(metadata, "distributions", service.distributions)
    monkeypatch.setattr(metadata, "requires", lambda name: service.requires)
    monkeypatch.setattr(subprocess, "run", service.run)
    return service


@pytest.mark.parametrize("framework", PYTHON_FRAMEWORKS)
def test_nothing_happens_if_nothing_is_missing(
    framework: str, service: Service, capfd: pytest.CaptureFixture[str]
) -> None:
    d2l_compat.install(framework)
    assert service.calls == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("framework", PYTHON_FRAMEWORKS)
def test_only_missing_packages_are_installed(framework: str, service: Service) -> None:
    first = PYTHON_FRAMEWORKS[framework].packages[0]
    service.modules.remove(first.module)
    d2l_compat.install(framework)
    wanted = [*first.options.split(), first.requirement]
    assert service.calls == [["--quiet", *wanted]]


def test_own_dependencies_come_before_framework(service: Service) -> None:
    service.modules -= {"numpy", "matplotlib", "filelock", "paddle", "setuptools"}
    d2l_compat.install("paddle")
    names = [Requirement(call[-1]).name for call in service.calls]
    assert names == ["numpy", "matplotlib", "filelock", "setuptools", "paddlepaddle"]


def test_installed_packages_keep_their_versions(service: Service) -> None:
    service.modules.remove("jax")
    service.installed = [("numpy", "2.0.2"), ("torch", "2.9.0+cu126"), ("Foo.bar_baz", "1!2.0rc1")]
    d2l_compat.install("jax")
    assert service.constraints == ["numpy==2.0.2", "torch==2.9.0+cu126", "foo-bar-baz==1!2.0rc1"]


def test_imported_version_of_duplicates_is_kept(service: Service) -> None:
    """Test two versions, as on Colab, where the system's Python packages come after Colab's."""
    service.modules.remove("jax")
    service.installed = [("PyParsing", "3.2.3"), ("pyparsing", "2.4.7")]
    d2l_compat.install("jax")
    assert service.constraints == ["pyparsing==3.2.3"]


def test_unreadable_versions_are_not_passed_to_pip(service: Service) -> None:
    service.modules.remove("jax")
    service.installed = [("gpg", "1.16.0-unknown"), (None, ""), ("six", "1.17.0")]
    d2l_compat.install("jax")
    assert service.constraints == ["six==1.17.0"]


def test_conflicting_framework_is_installed_without_pins(
    service: Service,
) -> None:
    """Test Paddle on Colab: it requires opt_einsum 3.3.0, and 3.4.0 is installed for TensorFlow."""
    service.modules.remove("paddle")
    service.installed = [("opt_einsum", "3.4.0"), ("numpy", "2.0.2")]
    service.requires = ["numpy>=1.21", "opt_einsum==3.3.0", "httpx", "tomli; python_version<'3'"]
    service.errors = [CONFLICT]
    d2l_compat.install("paddle")
    assert service.calls == [
        ["--quiet", "paddlepaddle>=3.3"],
        ["--quiet", "--no-deps", "paddlepaddle>=3.3"],
        ["--quiet", "httpx"],
    ]


def test_mxnet_is_installed_without_its_numpy(
    service: Service,
) -> None:
    service.modules.remove("mxnet")
    service.installed = [("numpy", "2.0.2")]
    service.requires = ["numpy (<2.0.0,>1.16.0)", "requests (<3,>=2.20.0)"]
    d2l_compat.install("mxnet")
    assert service.calls == [
        ["--quiet", "--no-deps", "mxnet>=1.9.1"],
        ["--quiet", "requests<3,>=2.20.0"],
    ]


@pytest.mark.parametrize("errors", [["No route"], [CONFLICT, "No route"]])
def test_pip_error_is_shown_with_command(service: Service, errors: list[str]) -> None:
    service.modules.remove("paddle")
    service.errors = errors
    with pytest.raises(RuntimeError) as raised:
        d2l_compat.install("paddle")
    message = str(raised.value)
    assert message.startswith("paddlepaddle could not be installed")
    assert PYTHON_FRAMEWORKS["paddle"].packages[0].install in message
    assert message.endswith("No route")


def test_missing_packages_are_reported_if_installing_is_forbidden(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("D2L_COMPAT_INSTALL", "never")
    service.modules.remove("paddle")
    with pytest.raises(RuntimeError) as raised:
        d2l_compat.install("paddle")
    assert str(raised.value) == (
        "paddlepaddle is not installed, and D2L_COMPAT_INSTALL=never: "
        "run `make env FRAMEWORKS=paddle` in the project's folder"
    )
    d2l_compat.install("jax")  # no package of JAX is missing
    assert service.calls == []


def test_unknown_framework_is_rejected(service: Service) -> None:
    with pytest.raises(ValueError, match="framework 'torch': need one of pytorch, tensorflow"):
        d2l_compat.install("torch")
    assert service.calls == []


def test_bounds_match_pyproject() -> None:
    declared = {str(Requirement(line)) for line in PYPROJECT["project"]["dependencies"]}
    assert {str(package.requirement) for package in _install.OWN_DEPENDENCIES} == declared
    for framework, lines in EXTRAS.items():
        setuptools = [line for line in map(Requirement, lines) if line.name == "setuptools"]
        assert bool(setuptools) == (framework in ("mxnet", "paddle"))
        for line in setuptools:
            assert f"{line.name}{line.specifier}" == SETUPTOOLS.requirement
            applies = line.marker is None or line.marker.evaluate()
            assert bool(FRAMEWORKS[framework].undeclared_dependencies) == applies
