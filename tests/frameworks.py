"""Which frameworks are tested: a pytest plugin (conftest.py).

One framework a process: some cannot live in one (tests/shim/test_one_process.py).
"""

from importlib import import_module
from typing import Any

import pytest

from d2l_compat.frameworks import FRAMEWORKS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--framework", choices=FRAMEWORKS, default="pytorch", help="whose face is driven"
    )
    parser.addoption(
        "--frameworks",
        default=" ".join(FRAMEWORKS),
        help="those that are installed, with blanks between them",
    )
    parser.addoption(
        "--without-upstream", action="store_true", help="compare nothing with upstream's d2l"
    )


@pytest.fixture(scope="session")
def face(request: pytest.FixtureRequest) -> Any:
    """The adapter of the framework asked for."""
    name = f"tests.shim.each.{request.config.getoption('framework')}.adapter"
    return import_module(name).Adapter()
