"""``d2l_compat.install``: what it asks pip for, and when it asks for nothing.

That it does so on Colab and its like is tried out in tests/elsewhere.
"""

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
    """One that has the modules named, and a pip that is asked and does nothing."""

    modules: set[str]
    there_is: list[tuple[str | None, str]] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)  # of what is installed
    answers: list[str] = field(default_factory=list)  # pip's faults; none where there is none
    asked: list[list[str]] = field(default_factory=list)  # of pip, without the constraints
    held: list[str] = field(default_factory=list)  # the constraints

    def find_spec(self, name: str) -> object:
        return object() if name in self.modules else None

    def distributions(self, name: str | None = None) -> list[Any]:
        found = [(n, v) for n, v in self.there_is if name is None or (n or "").lower() == name]
        return [
            SimpleNamespace(name=n, version=v, metadata={"Name": n, "Version": v} if n else {})
            for n, v in found
        ]

    def run(self, command: list[str], **_: object) -> Any:
        assert command[:4] == [sys.executable, "-m", "pip", "install"]
        place = command.index("--constraint")
        self.held = Path(command[place + 1]).read_text().splitlines()
        self.asked.append(command[4:place] + command[place + 2 :])
        fault = self.answers.pop(0) if self.answers else ""
        return SimpleNamespace(returncode=bool(fault), stderr=fault)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    """With all that any framework needs."""
    packages = [
        package for framework in PYTHON_FRAMEWORKS.values() for package in framework.packages
    ]
    modules = {package.module for package in (*packages, *_install.OWN_DEPENDENCIES, SETUPTOOLS)}
    service = Service(modules)
    monkeypatch.delenv("D2L_COMPAT_INSTALL", raising=False)
    monkeypatch.setattr(_install, "find_spec", service.find_spec)
    monkeypatch.setattr(_install, "import_module", lambda name: None)
    monkeypatch.setattr(metadata, "distributions", service.distributions)
    monkeypatch.setattr(metadata, "requires", lambda name: service.needs)
    monkeypatch.setattr(subprocess, "run", service.run)
    return service


@pytest.mark.parametrize("framework", PYTHON_FRAMEWORKS)
def test_where_nothing_is_missing_pip_is_not_asked_and_nothing_is_said(
    framework: str, service: Service, capfd: pytest.CaptureFixture[str]
) -> None:
    d2l_compat.install(framework)
    assert service.asked == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("framework", PYTHON_FRAMEWORKS)
def test_what_is_missing_is_asked_for_and_nothing_else(framework: str, service: Service) -> None:
    first = PYTHON_FRAMEWORKS[framework].packages[0]
    service.modules.remove(first.module)
    d2l_compat.install(framework)
    wanted = [*first.options.split(), first.requirement]
    assert service.asked == [["--quiet", *wanted]]


def test_the_shims_own_needs_are_among_it_before_the_framework(service: Service) -> None:
    service.modules -= {"numpy", "matplotlib", "filelock", "paddle", "setuptools"}
    d2l_compat.install("paddle")
    names = [Requirement(asked[-1]).name for asked in service.asked]
    assert names == ["numpy", "matplotlib", "filelock", "setuptools", "paddlepaddle"]


def test_what_is_there_is_held_at_its_version(service: Service) -> None:
    service.modules.remove("jax")
    service.there_is = [("numpy", "2.0.2"), ("torch", "2.9.0+cu126"), ("Foo.bar_baz", "1!2.0rc1")]
    d2l_compat.install("jax")
    assert service.held == ["numpy==2.0.2", "torch==2.9.0+cu126", "foo-bar-baz==1!2.0rc1"]


def test_of_two_with_one_name_the_one_that_is_imported_is_held(service: Service) -> None:
    """As on Colab, where the system's Python packages lie behind Colab's own."""
    service.modules.remove("jax")
    service.there_is = [("PyParsing", "3.2.3"), ("pyparsing", "2.4.7")]
    d2l_compat.install("jax")
    assert service.held == ["pyparsing==3.2.3"]


def test_what_pip_could_not_read_is_not_put_before_it(service: Service) -> None:
    service.modules.remove("jax")
    service.there_is = [("gpg", "1.16.0-unknown"), (None, ""), ("six", "1.17.0")]
    d2l_compat.install("jax")
    assert service.held == ["six==1.17.0"]


def test_where_a_framework_wants_another_version_it_comes_alone_with_what_is_missing(
    service: Service,
) -> None:
    """As Paddle does on Colab: it asks for opt_einsum 3.3.0, and TensorFlow has brought 3.4.0."""
    service.modules.remove("paddle")
    service.there_is = [("opt_einsum", "3.4.0"), ("numpy", "2.0.2")]
    service.needs = ["numpy>=1.21", "opt_einsum==3.3.0", "httpx", "tomli; python_version<'3'"]
    service.answers = [CONFLICT]
    d2l_compat.install("paddle")
    assert service.asked == [
        ["--quiet", "paddlepaddle>=3.3"],
        ["--quiet", "--no-deps", "paddlepaddle>=3.3"],
        ["--quiet", "httpx"],
    ]


def test_mxnet_comes_without_a_numpy_of_its_own_and_with_what_else_it_needs(
    service: Service,
) -> None:
    service.modules.remove("mxnet")
    service.there_is = [("numpy", "2.0.2")]
    service.needs = ["numpy (<2.0.0,>1.16.0)", "requests (<3,>=2.20.0)"]
    d2l_compat.install("mxnet")
    assert service.asked == [
        ["--quiet", "--no-deps", "mxnet>=1.9.1"],
        ["--quiet", "requests<3,>=2.20.0"],
    ]


@pytest.mark.parametrize("answers", [["No route"], [CONFLICT, "No route"]])
def test_pips_own_words_are_told_with_the_command_to_try(
    service: Service, answers: list[str]
) -> None:
    service.modules.remove("paddle")
    service.answers = answers
    with pytest.raises(RuntimeError) as raised:
        d2l_compat.install("paddle")
    said = str(raised.value)
    assert said.startswith("paddlepaddle could not be installed")
    assert PYTHON_FRAMEWORKS["paddle"].packages[0].install in said
    assert said.endswith("No route")


def test_where_nothing_may_be_installed_what_is_missing_is_told_with_the_command(
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
    d2l_compat.install("jax")  # of which nothing is missing
    assert service.asked == []


def test_a_framework_that_there_is_no_face_for_is_refused(service: Service) -> None:
    with pytest.raises(ValueError, match="framework 'torch': need one of pytorch, tensorflow"):
        d2l_compat.install("torch")
    assert service.asked == []


def test_bounds_are_those_of_the_project() -> None:
    declared = {str(Requirement(line)) for line in PYPROJECT["project"]["dependencies"]}
    assert {
        f"{each.distribution}>={each.minimum}" for each in _install.OWN_DEPENDENCIES
    } == declared
    needed = f"{SETUPTOOLS.distribution}>={SETUPTOOLS.minimum}"
    for framework, lines in EXTRAS.items():
        dependencies = FRAMEWORKS[framework].undeclared_dependencies
        there = [line for line in map(Requirement, lines) if line.name == "setuptools"]
        assert bool(there) == (framework in ("mxnet", "paddle"))
        for line in there:
            assert f"{line.name}{line.specifier}" == needed
            for_us = line.marker is None or line.marker.evaluate()
            assert bool(dependencies) == for_us
