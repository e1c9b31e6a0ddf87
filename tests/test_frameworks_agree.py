"""The six frameworks compute the same, and the README says how nearly."""

import pytest

from d2l_compat.frameworks import FRAMEWORKS
from tests.compare_frameworks import QUANTITIES, Arrays, differences, expected, in_readme
from tests.faces.cases import TOLERANCE

READS = "d2l_compat/**/*", "tests/faces/answers.py", "README.md"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "framework" in metafunc.fixturenames:
        metafunc.parametrize("framework", metafunc.config.getoption("frameworks").split())


@pytest.fixture(scope="module")
def answers() -> Arrays:
    return expected()


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCE.items())
def test_every_framework_agrees_with_the_reference(
    framework: str, dtype: str, tolerance: float, answers: Arrays
) -> None:
    largest = differences(framework, dtype, answers)
    assert max(largest.values()) <= tolerance, largest


def test_the_readme_shows_every_framework_within_the_tolerances() -> None:
    head, _, *rows = [line.strip("| ").split(" | ") for line in in_readme()[1].splitlines()]
    assert [row[0] for row in rows] == [framework.title for framework in FRAMEWORKS.values()]
    allowed = [tolerance for tolerance in TOLERANCE.values() for _ in QUANTITIES]
    assert len(head) == len(allowed)  # the first column's is empty
    for row in rows:
        assert all(float(x) <= limit for x, limit in zip(row[1:], allowed, strict=True)), row
