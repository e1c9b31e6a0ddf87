"""``python -m tools.changed``: what a change concerns is run again, and nothing else."""

import json
import os
import sys
from pathlib import Path

import pytest

from tools.changed import __main__ as changed
from tools.changed.views import markup

READS = ()

NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": "A sentence."},
        {
            "cell_type": "code",
            "source": ["from d2l_compat import jax as d2l\n", "1"],
            "outputs": [],
        },
    ]
}
SHARED = "from d2l_compat._shared import plot\n"
FILES = {
    "pyproject.toml": "",
    "conftest.py": "import tools.run.regression\n",
    "d2l_compat/__init__.py": "",
    "d2l_compat/_shared/__init__.py": "",
    "d2l_compat/_shared/plot.py": "",
    "d2l_compat/_shared/moved.py": "",
    "d2l_compat/torch/__init__.py": SHARED,
    "d2l_compat/jax/__init__.py": SHARED,
    "d2l_compat/java/src/main/Plots.java": "",
    "lessons/tiny/text.en.md": "A sentence.",
    "lessons/tiny/claims.java": "",
    "lessons/tiny/code.pytorch.py": "from d2l_compat import torch as d2l\n",
    "notebooks/en/jax/tiny.ipynb": json.dumps(NOTEBOOK),
    "requirements/djl.lock": "",
    "tests/claims.java": "",
    "tests/conftest.py": "",
    "tests/sanitize.cfg": "",
    "tests/test_all.py": "import tools.weave.notebooks\n",
    "tests/test_own.py": (
        "import tools.weave.notebooks\n"
        "READS = 'Makefile', 'tests/start.py', 'text of lessons/tiny/code.pytorch.py'\n"
    ),
    "tests/start.py": "import tools.started\n",
    "tests/faces/test_layers.py": "import_module(f'tests.faces.{framework}.adapter')\n",
    "tests/faces/pytorch/adapter.py": "import d2l_compat.torch\n",
    "tests/faces/jax/adapter.py": "import d2l_compat.jax\n",
    "tests/faces/jax/test_own.py": "",
    "tests/faces/jax/exports.txt": "",
    "tests/elsewhere/colab.txt": "",
    "tools/run/regression.py": "",
    "tools/started.py": "",
    "tools/weave/notebooks.py": "",
    "tools/site/words.mo": "",
    "Makefile": "",
    "README.md": "",
    "environment.yml": "",
    ".hidden/file.py": "",
    "d2l_compat/torch/__pycache__/attention.pyc": "",
    "d2l_compat/java/target/d2l.jar": "",
}
FRAMEWORKS = ["pytorch", "jax", "djl"]
TESTS = ["tests/test_all.py", "tests/test_own.py"]
PARTS = {"code": TESTS, "types": [], "pages": []}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(changed, "ROOT", tmp_path)
    monkeypatch.setattr(changed, "PASSED", tmp_path / ".passed")
    return tmp_path


def run(root: Path, check: str, *options: str, code: int = 0) -> str | None:
    """The parts that the command was given, or None where it did not run."""
    log = root / ".log"
    log.unlink(missing_ok=True)
    program = f"import sys; open({str(log)!r}, 'w').write(' '.join(sys.argv[1:])); sys.exit({code})"
    parts = PARTS.get(check, FRAMEWORKS)
    command = [sys.executable, "-ISc", program, *(["{}"] if parts else [])]
    assert changed.main([*options, check, *parts, "--", *command]) in (0, code)
    return log.read_text() if log.exists() else None


def test_what_has_passed_is_not_run_again_unless_it_is_asked_for(root, capsys):
    assert run(root, "notebooks", "--only") == "pytorch jax djl"
    assert run(root, "notebooks", "--only") is None
    assert "notebooks: unchanged since it passed: djl, jax, pytorch" in capsys.readouterr().out
    assert run(root, "notebooks") == "pytorch jax djl"


def test_what_has_failed_is_run_again(root):
    assert run(root, "notebooks", code=1) == "pytorch jax djl"
    assert run(root, "notebooks", "--only") == "pytorch jax djl"
    assert run(root, "notebooks", code=1) == "pytorch jax djl"
    assert run(root, "notebooks", "--only") == "pytorch jax djl"


def test_all_parts_may_be_given_in_one_argument(root):
    log = root / ".log"
    program = f"import sys; open({str(log)!r}, 'w').write(repr(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "-x", "{all}", "a/{}"]
    changed.main(["notebooks", "jax", "djl", "--", *command])
    assert log.read_text() == "['-x', 'jax djl', 'a/jax', 'a/djl']"


def concerned(root: Path, check: str, file: str, text: str = "changed = 1") -> str | None:
    """The parts that are run after a change of a file; and again after the change back."""
    before = (root / file).read_text()
    run(root, check)
    (root / file).write_text(text)
    parts = run(root, check, "--only")
    (root / file).write_text(before)
    assert run(root, check, "--only") == parts  # what passed last was the other text
    return parts


@pytest.mark.parametrize(
    ("file", "frameworks"),
    [
        ("pyproject.toml", "pytorch jax djl"),
        ("conftest.py", "pytorch jax djl"),
        ("tools/run/regression.py", "pytorch jax djl"),
        ("tests/sanitize.cfg", "pytorch jax djl"),
        ("tools/weave/notebooks.py", None),
        ("d2l_compat/_shared/plot.py", "pytorch jax"),
        ("d2l_compat/jax/__init__.py", "jax"),
        ("lessons/tiny/code.pytorch.py", "pytorch"),  # of which the claims ask
        ("lessons/tiny/claims.java", "djl"),
        ("tests/claims.java", "djl"),
        ("tests/faces/jax/adapter.py", "jax"),
        ("tests/faces/jax/test_own.py", None),
        ("notebooks/en/jax/tiny.ipynb", "jax"),
        ("d2l_compat/java/src/main/Plots.java", "djl"),
        ("lessons/tiny/text.en.md", None),
        ("README.md", None),
        (".hidden/file.py", None),
        ("d2l_compat/torch/__pycache__/attention.pyc", None),
        ("d2l_compat/java/target/d2l.jar", None),
    ],
)
def test_a_change_concerns_those_notebooks_that_depend_on_it(root, file, frameworks):
    assert concerned(root, "notebooks", file) == frameworks


@pytest.mark.parametrize(
    ("file", "frameworks"),
    [
        ("d2l_compat/_shared/plot.py", "pytorch jax"),
        ("d2l_compat/torch/__init__.py", "pytorch"),
        ("d2l_compat/jax/__init__.py", "jax"),
        ("lessons/tiny/code.pytorch.py", None),
        ("d2l_compat/java/src/main/Plots.java", "djl"),
        ("tests/faces/jax/test_own.py", "jax"),
        ("tests/faces/jax/exports.txt", "jax"),
        ("tests/faces/test_layers.py", "pytorch jax djl"),
        ("lessons/tiny/text.en.md", None),
        ("tools/weave/notebooks.py", None),
    ],
)
def test_a_change_concerns_those_faces_that_depend_on_it(root, file, frameworks):
    assert concerned(root, "faces", file) == frameworks


def test_of_the_readme_its_tables_concern_the_faces(root):
    assert concerned(root, "faces", "README.md", "A sentence.\n") is None
    assert concerned(root, "faces", "README.md", "| PyTorch | 2e-06 |\n") == "pytorch jax djl"


def test_shared_code_that_moves_concerns_those_that_use_it_wherever_it_is(root):
    assert concerned(root, "faces", "d2l_compat/_shared/moved.py") is None
    (root / "d2l_compat/_shared/plot.py").write_text("from d2l_compat._shared import moved\n")
    assert concerned(root, "faces", "d2l_compat/_shared/moved.py") == "pytorch jax"
    (root / "somewhere.py").touch()
    (root / "d2l_compat/_shared/moved.py").write_text("import somewhere\n")
    assert concerned(root, "faces", "somewhere.py") == "pytorch jax"


@pytest.mark.parametrize(
    ("cell", "new", "frameworks"),
    [
        (0, "Another sentence.", None),
        (1, "from d2l_compat import jax as d2l\n2", "jax"),
    ],
)
def test_the_prose_of_a_notebook_concerns_no_execution(root, cell, new, frameworks):
    notebook = json.loads(json.dumps(NOTEBOOK))
    notebook["cells"][cell]["source"] = new
    text = json.dumps(notebook)
    assert concerned(root, "notebooks", "notebooks/en/jax/tiny.ipynb", text) == frameworks


def test_an_output_of_a_notebook_concerns_its_execution(root):
    text = json.dumps(NOTEBOOK).replace('"outputs": []', '"outputs": [1]')
    assert concerned(root, "notebooks", "notebooks/en/jax/tiny.ipynb", text) == "jax"


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("README.md", "tests/test_all.py"),
        ("notebooks/en/jax/tiny.ipynb", "tests/test_all.py"),
        ("d2l_compat/jax/__init__.py", "tests/test_all.py"),
        ("tools/weave/notebooks.py", "tests/test_all.py tests/test_own.py"),
        ("conftest.py", "tests/test_all.py tests/test_own.py"),
        ("tests/conftest.py", "tests/test_all.py tests/test_own.py"),
        ("tests/test_own.py", "tests/test_all.py tests/test_own.py"),
        ("Makefile", "tests/test_all.py tests/test_own.py"),
        ("lessons/tiny/code.pytorch.py", "tests/test_all.py tests/test_own.py"),
        ("d2l_compat/torch/__init__.py", "tests/test_all.py"),
        ("tools/started.py", "tests/test_all.py tests/test_own.py"),
        (".hidden/file.py", None),
    ],
)
def test_a_file_of_tests_depends_on_everything_unless_it_says_on_what(root, file, tests):
    assert concerned(root, "code", file) == tests


@pytest.mark.parametrize("reads", ["READS = SOMETHING", "READS = (", "del READS"])
def test_what_a_file_of_tests_says_and_cannot_be_read_is_everything(root, reads):
    (root / "tests/test_own.py").write_text(reads)
    assert concerned(root, "code", "README.md") == "tests/test_all.py tests/test_own.py"


@pytest.mark.parametrize(
    ("file", "frameworks"),
    [
        ("d2l_compat/_shared/plot.py", "pytorch jax djl"),
        ("d2l_compat/jax/__init__.py", "jax"),
        ("d2l_compat/java/src/main/Plots.java", "djl"),
        ("notebooks/en/jax/tiny.ipynb", "jax"),
        ("requirements/djl.lock", "djl"),
        ("tools/run/regression.py", "pytorch jax djl"),
        ("README.md", "pytorch jax djl"),  # it goes into the wheel
        ("environment.yml", "pytorch jax djl"),
        ("tests/elsewhere/colab.txt", "pytorch jax djl"),
        ("lessons/tiny/code.pytorch.py", None),
        ("tests/sanitize.cfg", None),
        ("d2l_compat/java/target/d2l.jar", None),
    ],
)
def test_what_a_service_gets_concerns_the_tests_elsewhere(root, file, frameworks):
    assert concerned(root, "elsewhere", file) == frameworks


@pytest.mark.parametrize(
    ("file", "is_concerned"),
    [
        ("lessons/tiny/text.en.md", True),
        ("notebooks/en/jax/tiny.ipynb", True),
        ("d2l_compat/torch/__init__.py", True),
        ("README.md", True),
        ("tools/site/words.mo", False),
        ("tests/conftest.py", False),
        ("tools/run/regression.py", False),
    ],
)
def test_what_is_shown_concerns_the_site(root, file, is_concerned):
    assert (concerned(root, "pages", file) is not None) == is_concerned


def test_a_time_stamp_is_no_change(root):
    run(root, "notebooks")
    for name in FILES:
        os.utime(root / name, (0, 0))
    assert run(root, "notebooks", "--only") is None


def test_another_installed_version_concerns_everything(root, monkeypatch):
    run(root, "notebooks")
    monkeypatch.setattr(changed, "installed", lambda: ["torch==0"])
    assert run(root, "notebooks", "--only") == "pytorch jax djl"


def test_a_change_while_it_runs_is_not_taken_for_passed(root):
    file = root / "d2l_compat" / "_shared" / "plot.py"
    program = f"open({str(file)!r}, 'w').write('changed')"
    changed.main(["notebooks", "jax", "--", sys.executable, "-c", program])
    assert run(root, "notebooks", "--only") == "pytorch jax djl"


# What of a page of the site is looked at

PAGE = '<p class="a">Some <em>words</em> and <code>x</code>.<br></p><h2>Title</h2><pre>1</pre>'


@pytest.mark.parametrize(
    ("old", "new", "is_seen"),
    [
        ("Some", "Other", False),
        ("words", "a word", False),
        ("Title", "Another", True),
        ("<pre>1", "<pre>2", True),
        ("<code>x", "<code>y", True),
        ('class="a"', 'class="b"', True),
        ("<br>", "", True),
    ],
)
def test_markup_is_all_but_the_words_of_paragraphs(tmp_path, old, new, is_seen):
    (tmp_path / "a.html").write_text(PAGE)
    (tmp_path / "b.html").write_text(PAGE.replace(old, new))
    assert (markup(tmp_path / "a.html") != markup(tmp_path / "b.html")) == is_seen
