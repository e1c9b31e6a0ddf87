"""Test that this framework passes the conformance suite, as closely as the published tables say."""

import pytest

from d2l_compat.conformance.adapters import DTYPES
from tests.shim.agreement import assert_agreement


def test_framework_passes_all_cases_as_published(pytestconfig: pytest.Config) -> None:
    framework = pytestconfig.getoption("framework")
    # JAX compiles every case: only `make test-all`, which passes -m "", asks it in both dtypes.
    is_slow = framework == "jax" and pytestconfig.getoption("markexpr")
    assert_agreement(framework, ("float64",) if is_slow else DTYPES)
