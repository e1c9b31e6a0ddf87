"""The frameworks compute the same, and the README says how nearly.

Those with a Python face are asked in tests/faces/test_agreement.py, where the face is imported anyway.
"""

import pytest

from d2l_compat.frameworks import FACES, FRAMEWORKS
from tests.compare_frameworks import (
    QUANTITIES,
    ask,
    assert_as_shown,
    differences,
    expected,
    in_readme,
)
from tests.faces.cases import TOLERANCE

READS = "d2l_compat/**/*", "tests/faces/answers.py", "README.md"


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCE.items())
@pytest.mark.parametrize("framework", sorted(FRAMEWORKS.keys() - FACES.keys()))
def test_every_framework_without_a_python_face_agrees_with_the_reference(
    pytestconfig: pytest.Config, framework: str, dtype: str, tolerance: float
) -> None:
    if framework not in pytestconfig.getoption("frameworks").split():
        pytest.skip(f"{framework} is not installed")
    largest = differences(ask(framework, dtype), dtype, expected())
    assert max(largest.values()) <= tolerance, largest
    assert_as_shown(framework, dtype, largest)


def test_the_readme_shows_every_framework_within_the_tolerances() -> None:
    head, _, *rows = [line.strip("| ").split(" | ") for line in in_readme()[1].splitlines()]
    assert [row[0] for row in rows] == [framework.title for framework in FRAMEWORKS.values()]
    allowed = [tolerance for tolerance in TOLERANCE.values() for _ in QUANTITIES]
    assert len(head) == len(allowed)  # the first column's is empty
    for row in rows:
        assert all(float(x) <= limit for x, limit in zip(row[1:], allowed, strict=True)), row
