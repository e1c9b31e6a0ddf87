"""Fixtures for the tests of each framework."""

import random
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.shim.each.adapter import Adapter


@pytest.fixture(autouse=True)
def seed_generators(adapter: Adapter) -> Iterator[None]:
    """Seed all generators; after the test, wait for background operations, so that their errors are raised in it."""
    random.seed(0)
    np.random.seed(0)
    adapter.seed(0)
    yield
    adapter.wait()


@pytest.fixture(scope="module")
def oracle(request: pytest.FixtureRequest) -> ModuleType:
    """Return the module that describes upstream's d2l for the framework."""
    framework = request.config.getoption("framework")
    if find_spec(f"tests.shim.each.{framework}.oracle") is None:
        pytest.skip("upstream's d2l does not have this framework")
    return import_module(f"tests.shim.each.{framework}.oracle")


@pytest.fixture(scope="module")
def load_upstream(oracle: ModuleType, pytestconfig: pytest.Config) -> Callable[[str], Any]:
    """Return a function that imports a version of upstream's d2l.

    If the import fails, the tests fail: otherwise nothing would be compared.
    """
    if pytestconfig.getoption("without_upstream"):
        pytest.skip("--without-upstream")

    def load(version: str) -> Any:
        if version not in oracle.UPSTREAM:
            pytest.skip(f"upstream's d2l {version} does not have this framework")
        return oracle.UPSTREAM[version]()

    return load


@pytest.fixture(scope="module")
def upstream(load_upstream: Callable[[str], Any]) -> Any:
    return load_upstream("1.0.3")


@pytest.fixture
def force_blockwise(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let blockwise attention, if the framework has it, start at 4 queries, in blocks of 3 (in JAX of 1 example)."""
    name = f"{adapter.d2l.__name__}._blockwise"
    if find_spec(name):
        monkeypatch.setattr(f"{name}.MIN_QUERIES", 4)
        monkeypatch.setattr(f"{name}.BLOCK", 3)
        if name == "d2l_compat.jax._blockwise":
            monkeypatch.setattr(f"{name}.EXAMPLES", 1)
    yield
    adapter.wait()  # or a pending gradient would find other blocks


@pytest.fixture
def descent(adapter: Adapter) -> Any:
    """Return the framework's gradient descent; if D2L has no such chapters, check that their names are missing."""
    if adapter.descent is None:
        adapter.assert_missing("linreg", "train_ch3", "train_ch6", "train_ch11")
        pytest.skip("D2L has no such chapters in this framework")
    return adapter.descent


@pytest.fixture
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")
