"""The one draw behind the README's table, answered by this face."""

from pathlib import Path

import numpy as np
import pytest

from tests.compare_frameworks import assert_as_shown, differences, draw, expected
from tests.faces.answers import main
from tests.faces.cases import TOLERANCE


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCE.items())
def test_the_face_agrees_with_the_reference_as_nearly_as_the_readme_says(
    pytestconfig: pytest.Config, tmp_path: Path, dtype: str, tolerance: float
) -> None:
    framework = pytestconfig.getoption("framework")
    given, answers = str(tmp_path / "given.npz"), str(tmp_path / "answers.npz")
    np.savez(given, **draw(dtype))
    main(framework, given, answers)
    largest = differences(dict(np.load(answers)), dtype, expected())
    assert max(largest.values()) <= tolerance, largest
    assert_as_shown(framework, dtype, largest)
