"""The files around the code, held together: bounds and locks, targets and help."""

import re
import subprocess
import tomllib
from itertools import chain

import pytest
from packaging.requirements import Requirement

from tools.lessons import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


def locked(lock: str) -> list[Requirement]:
    """The requirements of a lock; a package may be there once for each version of Python."""
    lines = re.findall(r"^[a-z0-9][^\\\n]*==[^\\\n]*", lock, re.MULTILINE)
    return [Requirement(line.strip()) for line in lines]


def test_each_framework_has_a_lock_and_an_extra():
    assert {lock.stem for lock in LOCKS} == EXTRAS.keys()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_lock_holds_all_that_is_needed_with_hashes_and_without_addresses(lock):
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text
    pins = locked(text)
    assert text.count("--hash=sha256:") >= len(pins)
    groups = PYPROJECT["dependency-groups"]
    needed = [
        *PYPROJECT["project"]["dependencies"],
        *EXTRAS[lock.stem],
        *groups["dev"],
        *groups["site"],
        *groups[f"upstream-{lock.stem}"],
        *groups["bootstrap"],
    ]
    for requirement in map(Requirement, needed):
        versions = [
            next(iter(pin.specifier)).version for pin in pins if pin.name == requirement.name
        ]
        assert versions, f"{requirement.name} is not locked: run `make lock`"
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_dependencies_of_the_shim_have_lower_bounds_only():
    for requirement in [*PYPROJECT["project"]["dependencies"], *chain(*EXTRAS.values())]:
        assert {specifier.operator for specifier in Requirement(requirement).specifier} == {">="}


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^make (\S+)", shown.stdout, re.MULTILINE)
    assert listed == phony
