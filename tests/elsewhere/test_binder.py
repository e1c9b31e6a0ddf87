"""Test Binder's environment, which environment.yml, apt.txt and postBuild define, and the notebooks in it.

Without a container engine, repo2docker only prints its steps; the tests perform the steps that our files define, in an
imitation of Binder. Packages from PyPI replace conda's (services.py), and this machine's Java is used.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from d2l_compat.frameworks import FRAMEWORKS
from tests.elsewhere.services import (
    BINDER,
    BINDER_PYTHON,
    CONDA_PART,
    Copy,
    copy_project,
    copy_service,
    execute,
    find_notebooks,
    list_changed,
    list_differences,
    parse_package_name,
    read_notebook,
    read_pins,
)
from tools.weave.lessons import ROOT

MEMORY = 2_000_000_000  # bytes that Binder allows a reader
KERNEL_MEMORY = 1_500_000_000  # bytes for the kernel; the server needs the rest
CUDA = re.compile(r"^nvidia\b|cuda|cudnn|-cu\d+$|\bgpu\b|^triton$")
# Debian's packages of the C and C++ runtimes, which every image has.
BASE_LIBRARIES = {"libc6", "libdl2", "libm6", "libpthread0", "librt1", "libgcc_s1", "libstdc++6"}


def test_repo2docker_installs_what_the_files_list(tmp_path: Path) -> None:
    project = tmp_path / "project"
    copy_project(project)
    process = subprocess.run(
        [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(project)],
        capture_output=True,
        text=True,
        check=True,
    )
    output = process.stdout + process.stderr
    lines = [line.strip(" \\&") for line in output.splitlines()]
    assert f"Building conda environment for python={BINDER_PYTHON}" in output
    libraries = (ROOT / "apt.txt").read_text(encoding="utf-8").split()
    assert libraries
    assert f"apt-get install --yes --no-install-recommends {' '.join(libraries)}" in lines
    update = 'env update -p ${NB_PYTHON_PREFIX} --file "environment.yml"'
    assert any(line.endswith(update) for line in lines)
    assert "RUN chmod +x postBuild" in lines
    assert "RUN ./postBuild" in lines
    steps = (libraries[0], update, "COPY --chown", "RUN ./postBuild")
    order = [output.index(step) for step in steps]
    assert order[:2] == sorted(order[:2])
    assert order[3] == max(order)


@pytest.mark.usefixtures("services")
def test_no_packages_for_gpus_are_installed() -> None:
    installed = [parse_package_name(pin) for pin in read_pins(BINDER.first_part_file)]
    assert {"tensorflow-cpu", "jax", "paddlepaddle", "keras", "flax"} <= {*installed}
    assert [name for name in installed if CUDA.search(name)] == []
    assert "tensorflow" not in installed  # the build for GPUs
    assert [name for name in CONDA_PART if CUDA.search(name)] == []
    assert "pytorch-cpu" in CONDA_PART


@dataclass(frozen=True)
class Build:
    """Binder's environment after postBuild, with the project's folder in it."""

    copy: Copy
    project: Path
    distributions_before: dict[str, str]


@pytest.fixture(scope="module")
def build(services: None, pytestconfig: pytest.Config) -> Iterator[Build]:
    with copy_service(BINDER) as copy:
        project = copy.folder / "project"
        copy_project(project)
        before = copy.list_distributions()
        # Use the Maven repository of this machine.
        maven = f"-Dmaven.repo.local={Path.home() / '.m2' / 'repository'}"
        environment = {**copy.environment, "MAVEN_OPTS": maven}
        if "djl" not in pytestconfig.getoption("frameworks").split():
            stub = copy.prefix / "bin" / "mvn"
            stub.write_text("#!/bin/sh\n")
            stub.chmod(0o755)
        process = subprocess.run(
            ["./postBuild"],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, f"{process.stdout}\n{process.stderr}"
        yield Build(copy, project, before)


def test_postbuild_adds_only_mxnet_and_the_shim(build: Build) -> None:
    after = build.copy.list_distributions()
    assert list_changed(build.distributions_before, after) == []
    assert after.keys() - build.distributions_before.keys() == {"mxnet", "d2l-compat"}
    program = "import d2l_compat; print(d2l_compat.__file__)"
    file = build.copy.run(build.copy.python, "-c", program)
    assert Path(file).is_relative_to(build.project)


def test_apt_installs_the_libraries_that_mxnet_lacks(build: Build) -> None:
    (library,) = build.copy.prefix.glob("lib/python3*/site-packages/mxnet/libmxnet.so")
    listing = build.copy.run("ldd", library)
    dependencies = re.findall(r"^\s*(\S+)\.so\.(\d+) => (\S+)", listing, re.MULTILINE)
    assert dependencies
    needed = {
        name + version
        for name, version, path in dependencies
        if library.parent != Path(path).parent
    }
    libraries = (ROOT / "apt.txt").read_text(encoding="utf-8").split()
    assert needed - BASE_LIBRARIES == {*libraries}


@pytest.mark.usefixtures("skip_unless_requested")
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_notebooks_run_on_binder_within_its_memory(framework: str, build: Build) -> None:
    kernel = build.copy.kernel
    if not FRAMEWORKS[framework].is_python:
        kernel = build.copy.prefix / "share" / "jupyter" / "kernels" / "java"
        spec = json.loads((kernel / "kernel.json").read_text())
        assert spec["env"]["JJAVA_CLASSPATH"].startswith(str(build.project))
    before = build.copy.list_distributions()
    for path in find_notebooks(framework):
        stored = read_notebook(path)
        folder = build.project / path.parent.relative_to(ROOT)
        execution = execute(stored, kernel, build.copy.environment, folder)
        assert execution.peak < KERNEL_MEMORY < MEMORY
        assert list_differences(stored, execution.notebook) == [], path
        assert execution.first_outputs == []
    assert build.copy.list_distributions() == before
