"""Colab and Kaggle: a notebook alone, in an environment that is not ours.

That all notebooks of a framework begin with one cell is in tests/tools/test_launch.py.
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

from d2l_compat.frameworks import FACES
from tests.elsewhere.places import (
    COLAB,
    Copy,
    Execution,
    changed,
    copy_of,
    differences,
    execute,
    first_cell_of,
    in_place_of_the_forge,
    notebooks_of,
    read,
    until_its_first_figure,
)
from tools.run.java import KERNEL, SPEC
from tools.weave.launch import FOR_D2L, REPOSITORY

INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
SHIM = "d2l-compat"


@pytest.mark.usefixtures("places", "only_if_asked_for")
@pytest.mark.parametrize("framework", FACES)
def test_a_notebook_runs_on_colab_and_its_first_cell_adds_what_is_missing_alone(
    framework: str, repository: Path
) -> None:
    with colab(repository) as service:
        stored = {path: read(path) for path in notebooks_of(framework)}
        check(service, stored, framework)


@pytest.mark.usefixtures("places", "only_if_asked_for")
@pytest.mark.parametrize("framework", ["mxnet"])
def test_a_notebook_begins_on_kaggle_too(framework: str, repository: Path) -> None:
    """Which is Colab without the package google.colab: what follows the first cell is the same."""
    with service_on_colab(repository) as service:
        first = notebooks_of(framework)[0]
        check(service, {first: until_its_first_figure(first)}, framework)


# Of a notebook of D2L's, what follows the cell that installs d2l.
D2LS_OWN = """\
import torch
from d2l import torch as d2l

attention = d2l.MultiHeadAttention(100, 5, 0.5)
X = torch.ones((2, 4, 100))
d2l.check_shape(attention(X, X, X, torch.tensor([3, 2])), (2, 4, 100))
print(*d2l.Vocab([["you", "are", "here"]]).to_tokens([1, 2, 3]))"""


@pytest.mark.usefixtures("places", "only_if_asked_for")
@pytest.mark.parametrize("framework", ["pytorch"])
def test_d2ls_own_notebook_runs_on_colab_after_the_lines_for_who_comes_from_d2l(
    framework: str, repository: Path
) -> None:
    cells = [new_code_cell(source) for source in (FOR_D2L, D2LS_OWN)]
    with colab(repository) as service:
        before = service.copy.distributions()
        first, second = service.execute(new_notebook(cells=cells)).notebook.cells
        after = service.copy.distributions()
    assert [output.output_type for output in first.outputs] in ([], ["stream"])
    assert "".join(output.text for output in second.outputs) == "are here you\n"
    assert after.keys() - before.keys() == {SHIM}
    assert changed(before, after) == []


@pytest.mark.usefixtures("places", "only_if_asked_for")
@pytest.mark.parametrize("framework", ["djl"])
def test_on_colab_the_java_notebook_says_where_it_runs(framework: str, tmp_path: Path) -> None:
    first = first_cell_of(notebooks_of(framework)[0])
    with colab(tmp_path / "no-repository") as service:
        done = service.execute(first, may_fail=True)
    (error,) = done.first_outputs
    assert error.ename == "SyntaxError"
    shown = "\n".join(error.traceback)
    assert "This notebook is in Java, for which Colab has no kernel." in shown
    assert "Open it on Binder: https://" in shown
    # Below the line that is shown, but in the cell.
    (cell,) = first.cells
    assert f"git clone {REPOSITORY}" in cell.source
    assert "make -C" in cell.source


@pytest.mark.usefixtures("only_if_asked_for")
@pytest.mark.parametrize("framework", ["djl"])
@pytest.mark.parametrize(
    ("classes", "words"),
    [
        pytest.param("", "The lesson's own classes are missing: run `make`", id="without"),
        pytest.param(SPEC["env"]["JJAVA_CLASSPATH"], "", id="with"),
    ],
)
def test_the_java_notebook_says_whether_the_classes_are_there(
    framework: str, classes: str, words: str, tmp_path: Path
) -> None:
    kernel = tmp_path / "kernels" / "java"
    kernel.mkdir(parents=True)
    (kernel / "jjava.jar").symlink_to(KERNEL / "jjava.jar")
    spec = {**SPEC, "env": {**SPEC["env"], "JJAVA_CLASSPATH": classes}}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    first = first_cell_of(notebooks_of(framework)[0])
    outputs = execute(first, kernel, dict(os.environ), tmp_path).first_outputs
    assert {output.output_type for output in outputs} <= {"stream"}
    said = "".join(output.text for output in outputs)
    assert said.startswith(words)
    assert bool(said) == bool(words)


class Service:
    """A copy of a place, with a folder in which a reader's notebook lies alone."""

    def __init__(self, copy: Copy, more: dict[str, str]) -> None:
        self.copy = copy
        self.environment = {**copy.environment, **more}
        self.folder = copy.folder / "content"
        self.folder.mkdir()

    def execute(self, notebook: NotebookNode, may_fail: bool = False) -> Execution:
        return execute(notebook, self.copy.kernel, self.environment, self.folder, may_fail)


@contextmanager
def service_on_colab(repository: Path) -> Iterator[Service]:
    with copy_of(COLAB) as copy:
        yield Service(copy, {**in_place_of_the_forge(repository), **INLINE})


@contextmanager
def colab(repository: Path) -> Iterator[Service]:
    with service_on_colab(repository) as service:
        (packages,) = (service.copy.prefix / "lib").glob("python3*/site-packages")
        module = packages / "google" / "colab"
        module.mkdir(parents=True)
        (module / "__init__.py").write_text('"""Colab has one."""\n')
        yield service


def check(service: Service, notebooks: dict[Path, NotebookNode], framework: str) -> None:
    """A notebook, as its reader has it: it runs, nothing that was there is another after it, and
    its first cell has nothing to do or to say the next time. So the other lessons' run beside it."""
    (path, stored), *others = notebooks.items()
    shutil.copy(path, service.folder)
    before = service.copy.distributions()
    assert SHIM not in before

    done = service.execute(stored)
    assert differences(stored, done.notebook) == []
    words = "".join(output.get("text", "") for output in done.first_outputs)
    assert {output.output_type for output in done.first_outputs} <= {"stream"}, words
    assert "error" not in words.lower()

    after = service.copy.distributions()
    assert changed(before, after) == []
    new = after.keys() - before.keys()
    missing = {
        package for package in FACES[framework].packages if package.distribution not in before
    }
    assert new >= {SHIM, *(package.distribution for package in missing)}
    assert new <= allowed(service.copy, framework)

    again = service.execute(first_cell_of(path))
    assert again.first_outputs == []
    for other, stored in others:
        done = service.execute(stored)
        assert differences(stored, done.notebook) == [], other
        assert done.first_outputs == []
    assert service.copy.distributions() == after


def allowed(copy: Copy, framework: str) -> set[str]:
    """What may be new: the shim and what it says it needs, the framework and what that needs."""
    found = copy.requirements_of(SHIM) | {"setuptools"}
    for package in FACES[framework].packages:
        found |= copy.requirements_of(package.distribution + package.extra)
    return found
