"""Binder: what it makes of environment.yml, apt.txt and postBuild, and the notebooks in it.

Without an engine nothing is built: repo2docker says what it would do, and the imitation does the part
that is ours. Conda's packages have stand-ins (places.py), and what runs Java is this machine's.
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
from tests.elsewhere.places import (
    BINDER,
    BINDERS_PYTHON,
    CONDA_PART,
    Copy,
    changed,
    copy_of,
    copy_project,
    differences,
    execute,
    notebooks_of,
    package_name,
    read,
    requirements,
)
from tools.weave.lessons import ROOT

MEMORY = 2_000_000_000  # bytes that Binder gives to a reader
FOR_A_KERNEL = 1_500_000_000  # the server needs the rest
CUDA = re.compile(r"^nvidia\b|cuda|cudnn|-cu\d+$|\bgpu\b|^triton$")
# Of the C and C++ runtimes, by the names of Debian's packages.
IN_ANY_IMAGE = {"libc6", "libdl2", "libm6", "libpthread0", "librt1", "libgcc_s1", "libstdc++6"}


def test_binder_is_told_to_install_all_that_stands_in_the_files(tmp_path: Path) -> None:
    project = tmp_path / "project"
    copy_project(project)
    done = subprocess.run(
        [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(project)],
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout + done.stderr
    lines = [line.strip(" \\&") for line in said.splitlines()]
    assert f"Building conda environment for python={BINDERS_PYTHON}" in said
    libraries = (ROOT / "apt.txt").read_text(encoding="utf-8").split()
    assert libraries
    assert f"apt-get install --yes --no-install-recommends {' '.join(libraries)}" in lines
    update = 'env update -p ${NB_PYTHON_PREFIX} --file "environment.yml"'
    assert any(line.endswith(update) for line in lines)
    assert "RUN chmod +x postBuild" in lines
    assert "RUN ./postBuild" in lines
    order = [said.index(step) for step in (libraries[0], update, "COPY --chown", "RUN ./postBuild")]
    assert order[:2] == sorted(order[:2])
    assert order[3] == max(order)


@pytest.mark.usefixtures("places")
def test_nothing_for_gpus_is_installed() -> None:
    resolved = [package_name(pin) for pin in requirements(BINDER.after_first_part)]
    assert {"tensorflow-cpu", "jax", "paddlepaddle", "keras", "flax"} <= {*resolved}
    assert [name for name in resolved if CUDA.search(name)] == []
    assert "tensorflow" not in resolved  # the build for GPUs
    assert [name for name in CONDA_PART if CUDA.search(name)] == []
    assert "pytorch-cpu" in CONDA_PART


@dataclass(frozen=True)
class Built:
    """Binder's environment after postBuild, with the project's folder in it."""

    copy: Copy
    project: Path
    before: dict[str, str]


@pytest.fixture(scope="module")
def built(places: None, pytestconfig: pytest.Config) -> Iterator[Built]:
    with copy_of(BINDER) as copy:
        project = copy.folder / "project"
        copy_project(project)
        before = copy.distributions()
        # Java has its own word for the user's folder: Maven's repository stays where it is.
        maven = f"-Dmaven.repo.local={Path.home() / '.m2' / 'repository'}"
        environment = {**copy.environment, "MAVEN_OPTS": maven}
        if "djl" not in pytestconfig.getoption("frameworks").split():
            stub = copy.prefix / "bin" / "mvn"
            stub.write_text("#!/bin/sh\n")
            stub.chmod(0o755)
        done = subprocess.run(
            ["./postBuild"],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        yield Built(copy, project, before)


def test_postbuild_adds_mxnet_and_the_shim_and_changes_nothing(built: Built) -> None:
    after = built.copy.distributions()
    assert changed(built.before, after) == []
    assert after.keys() - built.before.keys() == {"mxnet", "d2l-compat"}
    where = built.copy.run(built.copy.python, "-c", "import d2l_compat; print(d2l_compat.__file__)")
    assert Path(where).is_relative_to(built.project)


def test_apt_brings_the_libraries_that_mxnet_does_not(built: Built) -> None:
    (library,) = built.copy.prefix.glob("lib/python3*/site-packages/mxnet/libmxnet.so")
    found = re.findall(
        r"^\s*(\S+)\.so\.(\d+) => (\S+)", built.copy.run("ldd", library), re.MULTILINE
    )
    assert found
    needed = {
        name + version for name, version, path in found if library.parent != Path(path).parent
    }
    libraries = (ROOT / "apt.txt").read_text(encoding="utf-8").split()
    assert needed - IN_ANY_IMAGE == {*libraries}


@pytest.mark.usefixtures("only_if_asked_for")
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_notebook_runs_on_binder_in_its_memory(framework: str, built: Built) -> None:
    kernel = built.copy.kernel
    if not FRAMEWORKS[framework].is_python:
        kernel = built.copy.prefix / "share" / "jupyter" / "kernels" / "java"
        spec = json.loads((kernel / "kernel.json").read_text())
        assert spec["env"]["JJAVA_CLASSPATH"].startswith(str(built.project))
    before = built.copy.distributions()
    for path in notebooks_of(framework):
        stored = read(path)
        folder = built.project / path.parent.relative_to(ROOT)
        done = execute(stored, kernel, built.copy.environment, folder)
        assert done.peak < FOR_A_KERNEL < MEMORY
        assert differences(stored, done.notebook) == [], path
        assert done.first_outputs == []
    assert built.copy.distributions() == before
