"""The one draw behind the README's tables, answered by this face."""

from pathlib import Path

import pytest

from tests.shim.compare_frameworks.ask import load, save
from tests.shim.compare_frameworks.differences import differences, too_large
from tests.shim.compare_frameworks.expected import expected
from tests.shim.compare_frameworks.table import assert_as_shown
from tests.shim.each.answers import main
from tests.shim.each.cases import TOLERANCE


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        ("float32", TOLERANCE["float32"]),
        pytest.param("float64", TOLERANCE["float64"], marks=pytest.mark.release("jax")),
    ],
)
def test_the_face_agrees_with_the_reference_as_nearly_as_the_readme_says(
    pytestconfig: pytest.Config, tmp_path: Path, dtype: str, tolerance: float
) -> None:
    framework = pytestconfig.getoption("framework")
    given, answers = tmp_path / "given.npz", tmp_path / "answers.npz"
    save(given, dtype)
    main(framework, str(given), str(answers))
    found = differences(load(answers), dtype, expected())
    assert too_large(found, tolerance) == {}
    assert_as_shown(framework, dtype, found)
