"""The six frameworks compute the same, and the README says how nearly."""

import pytest

from tests.compare_frameworks import QUANTITIES, TITLES, differences, expected, in_readme
from tests.faces.cases import TOLERANCE


def test_all_frameworks_agree_with_the_reference(pytestconfig: pytest.Config) -> None:
    answers = expected()
    for framework in pytestconfig.getoption("frameworks").split():
        for dtype, tolerance in TOLERANCE.items():
            largest = differences(framework, dtype, answers)
            print(f"{TITLES[framework]}, {dtype}: {largest}")
            assert max(largest.values()) <= tolerance, (framework, dtype, largest)


def test_the_readme_shows_every_framework_within_the_tolerances() -> None:
    head, _, *rows = [line.strip("| ").split(" | ") for line in in_readme()[1].splitlines()]
    assert [row[0] for row in rows] == list(TITLES.values())
    allowed = [tolerance for tolerance in TOLERANCE.values() for _ in QUANTITIES]
    assert len(head) == len(allowed)  # the first column's is empty
    for row in rows:
        assert all(float(x) <= limit for x, limit in zip(row[1:], allowed, strict=True)), row
