"""Compare this framework with the reference, on the inputs of the published tables of agreement."""

from pathlib import Path

import pytest

from tests.shim.compare_frameworks.ask import load, save
from tests.shim.compare_frameworks.differences import differences, find_exceeding
from tests.shim.compare_frameworks.expected import expected_answers
from tests.shim.compare_frameworks.table import assert_as_published
from tests.shim.each.answers import main
from tests.shim.each.cases import TOLERANCE


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        ("float32", TOLERANCE["float32"]),
        pytest.param("float64", TOLERANCE["float64"], marks=pytest.mark.release("jax")),
    ],
)
def test_differences_are_within_tolerance_and_as_published(
    pytestconfig: pytest.Config, tmp_path: Path, dtype: str, tolerance: float
) -> None:
    framework = pytestconfig.getoption("framework")
    inputs, outputs = tmp_path / "inputs.npz", tmp_path / "outputs.npz"
    save(inputs, dtype)
    main(framework, str(inputs), str(outputs))
    measured = differences(load(outputs), dtype, expected_answers())
    assert find_exceeding(measured, tolerance) == {}
    assert_as_published(framework, dtype, measured)
