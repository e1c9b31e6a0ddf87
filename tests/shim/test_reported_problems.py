"""Tests that problems reported in D2L's repository, under the numbers given here, do not occur."""

import subprocess
import sys
from importlib.metadata import distribution
from importlib.util import find_spec

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from d2l_compat import __version__
from d2l_compat.frameworks import PYTHON_FRAMEWORKS

needs_pytorch = pytest.mark.skipif(not find_spec("torch"), reason="PyTorch is not installed")


def run(program: str) -> str:
    """Return the output of a program that imports ``d2l_compat.alias`` first."""
    program = f"import d2l_compat.alias\n{program}"
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize(
    ("number", "python", "numpy"),
    [
        (2608, "3.12.4", "2.0.0"),
        (2625, "3.12", "1.26.4"),
        (2659, "3.13", "2.2.0"),
        (2678, "3.14", "2.3.0"),
    ],
)
def test_current_python_and_numpy_work(number: int, python: str, numpy: str) -> None:
    """Test that NumPy is not pinned: d2l 1.0.3 needs 1.23.5, which does not build since Python 3.12."""
    ours = distribution("d2l-compat")
    assert python in SpecifierSet(ours.metadata["Requires-Python"])
    requirements = [*map(Requirement, ours.requires or [])]
    (requirement,) = (each for each in requirements if each.name == "numpy")
    assert numpy in requirement.specifier
    # No dependency has an upper bound.
    assert {spec.operator for each in requirements for spec in each.specifier} == {">="}


@needs_pytorch
def test_names_of_both_versions_exist() -> None:
    """Test numbers 1910, 1911 and 2557."""
    names = ["load_data_time_machine", "HyperParameters", "predict_ch8", "train_ch8", "train_ch3"]
    lines = "".join(f"print(d2l.{name}.__name__)\n" for name in names)
    assert run(f"from d2l import torch as d2l\n{lines}").split() == names


def test_missing_attribute_error_names_right_import() -> None:
    """Test number 2648."""
    output = run("""
import d2l
print(d2l.__version__)
try:
    d2l.train_ch3
except AttributeError as error:
    print(error)
print(hasattr(d2l, "__wrapped__"))
""")
    _, *others = (framework.module for framework in PYTHON_FRAMEWORKS.values())
    need = f"need `from d2l import torch as d2l` (or {', '.join(others)})"
    assert output == (
        f"{__version__}\nd2l.train_ch3: a framework's names are in its own module; {need}\nFalse\n"
    )
