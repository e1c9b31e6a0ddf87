"""Upstream's d2l, the oracle: for those tests of the faces that ask for it."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def oracle(request: pytest.FixtureRequest) -> ModuleType:
    """What is to be known of upstream's face for the framework asked for."""
    framework = request.config.getoption("framework")
    if find_spec(f"tests.faces.{framework}.oracle") is None:
        pytest.skip("upstream's d2l has no face for this framework")
    return import_module(f"tests.faces.{framework}.oracle")


@pytest.fixture(scope="module")
def upstream(oracle: ModuleType, pytestconfig: pytest.Config) -> Any:
    """Where it is asked for and cannot be imported, the tests fail: else nothing would be compared."""
    if pytestconfig.getoption("without_upstream"):
        pytest.skip("upstream's d2l is left out, as was asked")
    return oracle.upstream()


@pytest.fixture
def short_is_long(face: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a face attends to long input block by block, 4 queries are long, and 3 a block.

    JAX takes some examples at a time: here one.
    """
    name = f"{face.d2l.__name__}._blockwise"
    if find_spec(name):
        monkeypatch.setattr(f"{name}.MIN_QUERIES", 4)
        monkeypatch.setattr(f"{name}.BLOCK", 3)
        if name == "d2l_compat.jax._blockwise":
            monkeypatch.setattr(f"{name}.EXAMPLES", 1)
