"""The imitations themselves: they are made whole or not at all, and a copy is nothing but a copy."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from nbformat import v4

from d2l_compat.frameworks import FACES
from tests.elsewhere import __main__ as preparation
from tests.elsewhere import places
from tests.elsewhere.places import (
    COLAB,
    LACKING,
    LIST,
    PLAIN,
    Place,
    changed,
    copy_of,
    execute,
    find_python,
    locked,
    package_name,
)

ANY = Place("any", ("0.0",), (("one",), ("two==2",)))


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the place of uv, a program that writes down what it is asked."""
    monkeypatch.setattr(places, "VENV", tmp_path)
    monkeypatch.setattr(places, "find_python", lambda version: None)
    program = tmp_path / "uv"
    python = f"mkdir -p {ANY.folder}/bin\nln -sf {shutil.which('true')} {ANY.python}\n"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{python}')
    program.chmod(0o755)
    monkeypatch.setattr(preparation, "UV", str(program))
    return program


def test_what_is_made_is_ready_until_it_is_to_be_made_of_something_else(uv: Path) -> None:
    assert not ANY.is_ready
    preparation.make(ANY)
    assert ANY.is_ready
    assert not replace(ANY, parts=(("one",), ("two==3",))).is_ready
    assert not replace(ANY, constraints=("three==3",)).is_ready
    asked = (uv.parent / "asked").read_text().splitlines()
    assert [line.split()[:2] for line in asked] == [
        ["venv", "--quiet"],
        ["pip", "install"],
        ["pip", "freeze"],  # of the first part
        ["pip", "install"],
    ]


def test_what_could_not_be_finished_is_not_ready_and_the_network_is_named(uv: Path) -> None:
    preparation.make(ANY)
    only_venv = '#!/bin/sh\ntest "$1" = venv || { echo "no route" >&2; exit 2; }\n'
    uv.write_text(only_venv)
    with pytest.raises(preparation.NotMadeError, match=r"(?s)no route.*with the network, once"):
        preparation.make(ANY)
    assert not ANY.is_ready


def test_without_a_python_that_is_wanted_it_is_our_own() -> None:
    assert find_python("0.0") is None
    assert ANY.interpreter == Path(sys.executable)


def test_colab_has_other_versions_than_ours_and_lacks_three_frameworks() -> None:
    compared = {package.distribution for each in FACES.values() for package in each.packages}
    compared |= {"numpy", "matplotlib", "ipython", "ipykernel"}
    lacked = {package.distribution for package in LACKING}
    assert sorted(lacked) == ["mlx", "mxnet", "paddlepaddle"]
    there = {pin for pin in COLAB.parts[0] if package_name(pin) in compared}
    assert {package_name(pin) for pin in there} == compared - lacked
    ours = {pin.partition(" ")[0] for pin in locked()}
    assert not {pin.partition(" ")[0] for pin in there} & ours


@pytest.mark.usefixtures("places")
def test_what_is_done_in_a_copy_is_not_done_in_the_place() -> None:
    def there() -> dict[str, str]:
        command = [PLAIN.python, "-c", LIST]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    before = there()
    with copy_of(PLAIN) as copy:
        pip = copy.prefix / "bin" / "pip"  # not the original's Python
        copy.run(pip, "install", "--no-deps", "mxnet")
        copy.run(pip, "uninstall", "--yes", "ipykernel")
        after = copy.distributions()
        assert "mxnet" in after
        assert [line.split(":")[0] for line in changed(before, after)] == ["ipykernel"]
    assert there() == before
    assert not copy.folder.exists()


@pytest.mark.usefixtures("places")
def test_pages_that_a_fork_shares_are_counted_once() -> None:
    half = 200_000_000
    code = f"""\
import os, time
held = b"x" * {half}
if child := os.fork():
    os.waitpid(child, 0)
else:
    time.sleep(2)
    os._exit(0)"""
    with copy_of(PLAIN) as copy:
        notebook = v4.new_notebook(cells=[v4.new_code_cell(code)])
        done = execute(notebook, copy.kernel, copy.environment, copy.home)
    assert half < done.peak < 2 * half
