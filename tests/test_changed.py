"""``python -m tools.changed``: what a change concerns is run again, and nothing else."""

import os
import sys
from pathlib import Path

import pytest

from tools import changed

FILES = {
    "d2l_compat/_shared/plot.py": "",
    "d2l_compat/torch/attention.py": "",
    "d2l_compat/jax/attention.py": "",
    "d2l_compat/java/src/main/Plots.java": "",
    "lessons/tiny/code.pytorch.py": "",
    "notebooks/en/jax/tiny.ipynb": "{}",
    "requirements/djl.lock": "",
    "tests/sanitize.cfg": "",
    "tools/weave.py": "",
    "README.md": "",
    "environment.yml": "",
    "tests/elsewhere/colab.txt": "",
    ".hidden/file.py": "",
    "d2l_compat/torch/__pycache__/attention.pyc": "",
    "d2l_compat/java/target/d2l.jar": "",
}
FRAMEWORKS = ["pytorch", "jax", "djl"]


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
    """The frameworks that the command was given, or None where it did not run."""
    log = root / ".log"
    log.unlink(missing_ok=True)
    program = f"import sys; open({str(log)!r}, 'w').write(' '.join(sys.argv[1:])); sys.exit({code})"
    frameworks = [] if check in ("code", "elsewhere") else FRAMEWORKS
    command = [sys.executable, "-c", program, *(["{}"] if frameworks else [])]
    assert changed.main([*options, check, *frameworks, "--", *command]) in (0, code)
    return log.read_text() if log.exists() else None


def test_what_has_passed_is_not_run_again_unless_it_is_asked_for(root, capsys):
    assert run(root, "notebooks", "--only") == "pytorch jax djl"
    assert run(root, "notebooks", "--only") is None
    assert "notebooks jax: unchanged since it passed" in capsys.readouterr().out
    assert run(root, "notebooks") == "pytorch jax djl"


def test_what_has_failed_is_run_again(root):
    assert run(root, "notebooks", code=1) == "pytorch jax djl"
    assert run(root, "notebooks", "--only") == "pytorch jax djl"
    assert run(root, "notebooks", code=1) == "pytorch jax djl"
    assert run(root, "notebooks", "--only") == "pytorch jax djl"


@pytest.mark.parametrize(
    ("file", "concerned"),
    [
        ("d2l_compat/_shared/plot.py", "pytorch jax djl"),
        ("tools/weave.py", "pytorch jax djl"),
        ("tests/sanitize.cfg", "pytorch jax djl"),
        ("d2l_compat/torch/attention.py", "pytorch"),
        ("lessons/tiny/code.pytorch.py", "pytorch"),
        ("d2l_compat/jax/attention.py", "jax"),
        ("notebooks/en/jax/tiny.ipynb", "jax"),
        ("d2l_compat/java/src/main/Plots.java", "djl"),
        ("requirements/djl.lock", "djl"),
        ("README.md", None),
        (".hidden/file.py", None),
        ("d2l_compat/torch/__pycache__/attention.pyc", None),
        ("d2l_compat/java/target/d2l.jar", None),
    ],
)
def test_a_change_concerns_those_that_depend_on_it(root, file, concerned):
    run(root, "notebooks")
    (root / file).write_text("changed")
    assert run(root, "notebooks", "--only") == concerned
    (root / file).write_text(FILES[file])
    assert run(root, "notebooks", "--only") == concerned  # what passed last was the other text


def test_all_that_is_committed_concerns_the_code_as_a_whole(root):
    run(root, "code")
    for file, concerned in (("README.md", True), ("notebooks/en/jax/tiny.ipynb", True)):
        (root / file).write_text("changed")
        assert (run(root, "code", "--only") is not None) == concerned


@pytest.mark.parametrize(
    ("file", "is_concerned"),
    [
        ("d2l_compat/_shared/plot.py", True),
        ("d2l_compat/java/src/main/Plots.java", True),
        ("notebooks/en/jax/tiny.ipynb", True),
        ("requirements/djl.lock", True),
        ("tools/weave.py", True),
        ("README.md", True),  # it goes into the wheel
        ("environment.yml", True),
        ("tests/elsewhere/colab.txt", True),
        ("lessons/tiny/code.pytorch.py", False),
        ("tests/sanitize.cfg", False),
        ("d2l_compat/java/target/d2l.jar", False),
    ],
)
def test_what_a_service_gets_concerns_the_tests_elsewhere(root, file, is_concerned):
    assert run(root, "elsewhere") is not None
    (root / file).write_text("changed")
    assert (run(root, "elsewhere", "--only") is not None) == is_concerned


def test_a_time_stamp_is_no_change(root):
    run(root, "notebooks")
    for name in FILES:
        os.utime(root / name, (0, 0))
    assert run(root, "notebooks", "--only") is None


def test_another_installed_version_concerns_everything(root, monkeypatch):
    run(root, "notebooks")
    monkeypatch.setattr(changed, "_installed", lambda: ["torch==0"])
    assert run(root, "notebooks", "--only") == "pytorch jax djl"


def test_a_change_while_it_runs_is_not_taken_for_passed(root):
    file = root / "d2l_compat" / "_shared" / "plot.py"
    program = f"open({str(file)!r}, 'w').write('changed')"
    changed.main(["notebooks", "jax", "--", sys.executable, "-c", program])
    assert run(root, "notebooks", "--only") == "pytorch jax djl"
