"""Test notebooks on Colab and Kaggle, in the environment of the service and without the project's other files.

tests/tools/test_launch.py tests that all notebooks of a framework have the same first cell.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tests.elsewhere.services import (
    COLAB,
    Copy,
    Execution,
    copy_service,
    execute,
    find_notebooks,
    list_changed,
    list_differences,
    read_first_cell,
    read_notebook,
    read_until_first_figure,
    redirect_git,
)
from tools.run.java import KERNEL, SPEC
from tools.weave.launch import D2L_FIRST_CELL, REPOSITORY

INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
SHIM = "d2l-compat"


@pytest.mark.usefixtures("services", "skip_unless_requested")
@pytest.mark.parametrize("framework", PYTHON_FRAMEWORKS)
def test_notebooks_run_on_colab_and_install_only_what_is_missing(
    framework: str, repository: Path
) -> None:
    with open_colab(repository) as session:
        stored = {path: read_notebook(path) for path in find_notebooks(framework)}
        check_notebooks(session, stored, framework)


@pytest.mark.usefixtures("services", "skip_unless_requested")
@pytest.mark.parametrize("framework", ["mxnet"])
def test_a_notebook_starts_on_kaggle(framework: str, repository: Path) -> None:
    with open_kaggle(repository) as session:
        first = find_notebooks(framework)[0]
        check_notebooks(session, {first: read_until_first_figure(first)}, framework)


# A cell of a D2L page, for a notebook that begins with our cell instead of D2L's.
D2L_CELL = """\
import torch
from d2l import torch as d2l

attention = d2l.MultiHeadAttention(100, 5, 0.5)
X = torch.ones((2, 4, 100))
d2l.check_shape(attention(X, X, X, torch.tensor([3, 2])), (2, 4, 100))
print(*d2l.Vocab([["you", "are", "here"]]).to_tokens([1, 2, 3]))"""


@pytest.mark.usefixtures("services", "skip_unless_requested")
@pytest.mark.parametrize("framework", ["pytorch"])
def test_a_notebook_of_d2l_runs_on_colab_with_our_first_cell(
    framework: str, repository: Path
) -> None:
    cells = [new_code_cell(source) for source in (D2L_FIRST_CELL, D2L_CELL)]
    with open_colab(repository) as session:
        before = session.copy.list_distributions()
        first, second = session.execute(new_notebook(cells=cells)).notebook.cells
        after = session.copy.list_distributions()
    assert [output.output_type for output in first.outputs] in ([], ["stream"])
    assert "".join(output.text for output in second.outputs) == "are here you\n"
    assert after.keys() - before.keys() == {SHIM}
    assert list_changed(before, after) == []


@pytest.mark.usefixtures("services", "skip_unless_requested")
@pytest.mark.parametrize("framework", ["djl"])
def test_the_java_notebook_says_on_colab_where_it_runs(framework: str, tmp_path: Path) -> None:
    first = read_first_cell(find_notebooks(framework)[0])
    with open_colab(tmp_path / "no-repository") as session:
        execution = session.execute(first, may_fail=True)
    (error,) = execution.first_outputs
    assert error.ename == "SyntaxError"
    traceback = "\n".join(error.traceback)
    assert "This notebook is in Java, for which Colab has no kernel." in traceback
    assert "Open it on Binder: https://" in traceback
    # The cell has these lines below the one that the traceback quotes.
    (cell,) = first.cells
    assert f"git clone {REPOSITORY}" in cell.source
    assert "make -C" in cell.source


@pytest.mark.usefixtures("skip_unless_requested")
@pytest.mark.parametrize("framework", ["djl"])
@pytest.mark.parametrize(
    ("classes", "message"),
    [
        pytest.param("", "The lesson's own classes are missing: run `make`", id="without"),
        pytest.param(SPEC["env"]["JJAVA_CLASSPATH"], "", id="with"),
    ],
)
def test_the_java_notebook_says_if_its_classes_are_missing(
    framework: str, classes: str, message: str, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernels" / "java"
    kernel.mkdir(parents=True)
    (kernel / "jjava.jar").symlink_to(KERNEL / "jjava.jar")
    spec = {**SPEC, "env": {**SPEC["env"], "JJAVA_CLASSPATH": classes}}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    first = read_first_cell(find_notebooks(framework)[0])
    outputs = execute(first, kernel, dict(os.environ), tmp_path).first_outputs
    assert {output.output_type for output in outputs} <= {"stream"}
    printed = "".join(output.text for output in outputs)
    assert printed.startswith(message)
    assert bool(printed) == bool(message)


class Session:
    """A copy of a service's environment, with a folder for a reader's notebook."""

    def __init__(self, copy: Copy, variables: dict[str, str]) -> None:
        self.copy = copy
        self.environment = {**copy.environment, **variables}
        self.folder = copy.folder / "content"
        self.folder.mkdir()

    def execute(self, notebook: NotebookNode, may_fail: bool = False) -> Execution:
        return execute(notebook, self.copy.kernel, self.environment, self.folder, may_fail)


@contextmanager
def open_kaggle(repository: Path) -> Iterator[Session]:
    """Open a session on Kaggle, imitated as Colab without the package google.colab."""
    with copy_service(COLAB) as copy:
        yield Session(copy, {**redirect_git(repository), **INLINE})


@contextmanager
def open_colab(repository: Path) -> Iterator[Session]:
    with open_kaggle(repository) as session:
        (packages,) = (session.copy.prefix / "lib").glob("python3*/site-packages")
        module = packages / "google" / "colab"
        module.mkdir(parents=True)
        (module / "__init__.py").write_text('"""A package that only Colab has."""\n')
        yield session


def check_notebooks(session: Session, notebooks: dict[Path, NotebookNode], framework: str) -> None:
    """Check that a notebook reproduces its stored outputs, and that its first cell changes no installed package.

    Run a second time, the first cell must not install or print anything. Then the other notebooks are run.
    """
    (path, stored), *others = notebooks.items()
    shutil.copy(path, session.folder)
    before = session.copy.list_distributions()
    assert SHIM not in before

    execution = session.execute(stored)
    assert list_differences(stored, execution.notebook) == []
    printed = "".join(output.get("text", "") for output in execution.first_outputs)
    assert {output.output_type for output in execution.first_outputs} <= {"stream"}, printed
    assert "error" not in printed.lower()

    after = session.copy.list_distributions()
    assert list_changed(before, after) == []
    new = after.keys() - before.keys()
    missing = {
        package
        for package in PYTHON_FRAMEWORKS[framework].packages
        if package.distribution not in before
    }
    assert new >= {SHIM, *(package.distribution for package in missing)}
    assert new <= list_allowed(session.copy, framework)

    again = session.execute(read_first_cell(path))
    assert again.first_outputs == []
    for other, stored in others:
        execution = session.execute(stored)
        assert list_differences(stored, execution.notebook) == [], other
        assert execution.first_outputs == []
    assert session.copy.list_distributions() == after


def list_allowed(copy: Copy, framework: str) -> set[str]:
    """Return the packages that may be installed: the shim, the framework, and their requirements."""
    allowed = copy.list_requirements(SHIM) | {"setuptools"}
    for package in PYTHON_FRAMEWORKS[framework].packages:
        allowed |= copy.list_requirements(package.distribution + package.extra)
    return allowed
