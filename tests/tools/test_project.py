"""Test that the project's files agree: requirements and locks, make's targets and help."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from d2l_compat.frameworks import FRAMEWORKS
from tests.shim.each.oracle import OLDER_FOLDER
from tools.weave.lessons import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
OLDER_D2L = ROOT / "requirements" / "d2l-0.17.txt"


def parse_pins(lock: str) -> list[Requirement]:
    """Return a lock's requirements; a package may occur once for each version of Python."""
    lines = re.findall(r"^[a-z0-9][^\\\n]*==[^\\\n]*", lock, re.MULTILINE)
    return [Requirement(line.strip()) for line in lines]


@pytest.mark.parametrize("file", [*LOCKS, OLDER_D2L], ids=lambda file: file.stem)
def test_a_lock_has_pins_with_hashes_and_no_addresses(file):
    text = file.read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text
    pins = parse_pins(text)
    assert text.count("--hash=sha256:") >= len(pins) > 0


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_has_all_required_packages(lock):
    assert {lock.stem for lock in LOCKS} == EXTRAS.keys()
    pins = parse_pins(lock.read_text(encoding="utf-8"))
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


# Packages that tests/shim/each/jax/oracle.py replaces by a few lines.
REPLACED_PACKAGES = {"jax": {"tensorflow", "tensorflow_datasets"}}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_has_what_upstreams_d2l_imports(lock):
    """Without these packages, nothing is compared with upstream's d2l if only this framework is installed."""
    name = f"d2l/{FRAMEWORKS[lock.stem].module}.py"
    versions = [Path(distribution("d2l").locate_file(name)), OLDER_FOLDER / name]
    upstream = [file.read_text(encoding="utf-8") for file in versions if file.exists()]
    assert bool(upstream) == (ROOT / "tests" / "shim" / "each" / lock.stem / "oracle.py").exists()
    imports = re.findall(r"^(?:import|from) (\w+)", "\n".join(upstream), re.MULTILINE)
    # The framework itself may not be installed.
    packages = {each.module: [each.distribution] for each in FRAMEWORKS[lock.stem].packages}
    packages |= packages_distributions()
    names = {pin.name for pin in parse_pins(lock.read_text(encoding="utf-8"))}
    modules = {*imports} - {"d2l", *sys.stdlib_module_names}
    for module in modules - REPLACED_PACKAGES.get(lock.stem, set()):
        needed = {package.lower() for package in packages.get(module, [module])}
        assert needed & names, f"add {module} to upstream-{lock.stem}, and run `make lock`"


def test_dependencies_of_the_shim_have_lower_bounds_only():
    for requirement in [*PYPROJECT["project"]["dependencies"], *chain(*EXTRAS.values())]:
        assert {specifier.operator for specifier in Requirement(requirement).specifier} == {">="}


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    command = ["make", "help"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^make (\S+)", output, re.MULTILINE) == phony
