"""What several tests of the faces ask for: upstream's d2l, a reader's own code, no figures left behind."""

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
def seeded(adapter: Adapter) -> None:
    """Each test draws the same numbers in every run, whichever tests ran before it."""
    random.seed(0)
    np.random.seed(0)
    adapter.seed(0)


@pytest.fixture(scope="module")
def oracle(request: pytest.FixtureRequest) -> ModuleType:
    """What is to be known of upstream's face for the framework asked for."""
    framework = request.config.getoption("framework")
    if find_spec(f"tests.shim.each.{framework}.oracle") is None:
        pytest.skip("upstream's d2l has no face for this framework")
    return import_module(f"tests.shim.each.{framework}.oracle")


@pytest.fixture(scope="module")
def upstream_of(oracle: ModuleType, pytestconfig: pytest.Config) -> Callable[[str], Any]:
    """Upstream's d2l of a version. Where it is asked for and cannot be imported, the tests fail: else
    nothing would be compared."""
    if pytestconfig.getoption("without_upstream"):
        pytest.skip("upstream's d2l is left out, as was asked")

    def of(version: str) -> Any:
        if version not in oracle.UPSTREAM:
            pytest.skip(f"upstream's d2l {version} has no face for this framework")
        return oracle.UPSTREAM[version]()

    return of


@pytest.fixture(scope="module")
def upstream(upstream_of: Callable[[str], Any]) -> Any:
    return upstream_of("1.0.3")


@pytest.fixture
def short_is_long(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a face attends to long input block by block, 4 queries are long, and 3 a block.

    JAX takes some examples at a time: here one.
    """
    name = f"{adapter.d2l.__name__}._blockwise"
    if find_spec(name):
        monkeypatch.setattr(f"{name}.MIN_QUERIES", 4)
        monkeypatch.setattr(f"{name}.BLOCK", 3)
        if name == "d2l_compat.jax._blockwise":
            monkeypatch.setattr(f"{name}.EXAMPLES", 1)


@pytest.fixture
def own(adapter: Adapter) -> Any:
    """How the framework's readers descend by hand; where D2L has no such chapters, their names are refused."""
    if adapter.descent is None:
        for name in ("linreg", "train_ch3", "train_ch6", "train_ch11"):
            with pytest.raises(AttributeError, match=f"{name}: .* has no such name"):
                getattr(adapter.d2l, name)
        pytest.skip("D2L has no such chapters in this framework")
    return adapter.descent


@pytest.fixture
def no_figures_left() -> Iterator[None]:
    yield
    plt.close("all")
