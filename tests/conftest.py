"""What all tests share; and which face the tests in tests/faces drive: ``--framework NAME``.

One framework a process: some cannot live in one (tests/test_one_process.py).
"""

import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

from d2l_compat._frameworks import FRAMEWORKS

# In the environment rather than by importing matplotlib, so that subprocesses have it as well.
os.environ["MPLBACKEND"] = "Agg"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--framework", choices=FRAMEWORKS, default="pytorch", help="whose face tests/faces drives"
    )
    parser.addoption(
        "--frameworks",
        default=" ".join([*FRAMEWORKS, "djl"]),
        help="those that are installed, with blanks between them",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Hypothesis draws the same examples each time. The other frameworks build each operation
    # anew for each shape, which takes them long.
    examples = 60 if config.getoption("framework") == "pytorch" else 15
    settings.register_profile(
        "reproducible", derandomize=True, deadline=None, max_examples=examples
    )
    settings.load_profile("reproducible")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is one framework's alone, in test_FRAMEWORK_*.py, runs with this framework alone."""
    owner = collection_path.name.split("_")[1:2]
    is_of_another = owner != [config.getoption("framework")] and {*owner} & FRAMEWORKS.keys()
    return True if collection_path.parent.name == "faces" and is_of_another else None


@pytest.fixture(scope="session")
def face(request: pytest.FixtureRequest) -> ModuleType:
    """The adapter of the framework asked for."""
    return import_module(f"tests.faces.adapters.{request.config.getoption('framework')}")


@pytest.fixture
def control_c_is_heard() -> Iterator[None]:
    """By the commands started within, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
