"""A pytest plugin (conftest.py) that chooses the framework under test.

There is one framework per process, since some cannot share one (tests/shim/test_one_process.py).
"""

from importlib import import_module
from typing import Any

import pytest

from d2l_compat.frameworks import FRAMEWORKS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--framework", choices=FRAMEWORKS, default="pytorch", help="the framework to test"
    )
    parser.addoption(
        "--frameworks",
        default=" ".join(FRAMEWORKS),
        help="the installed frameworks, separated by spaces",
    )
    parser.addoption(
        "--without-upstream", action="store_true", help="compare nothing with upstream's d2l"
    )


@pytest.fixture(scope="session")
def adapter(request: pytest.FixtureRequest) -> Any:
    """Return the adapter of the framework under test."""
    name = f"tests.shim.each.{request.config.getoption('framework')}.adapter"
    return import_module(name).Adapter()
