"""Tests of the published tables, docs/LANGUAGE/agreement.md, and of Java, which has no tests in tests/shim/each."""

import pytest

from d2l_compat.conformance.files import load_cases
from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS
from tests.shim.agreement import DTYPES, ROWS, TITLES, assert_agreement, read_tables


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS.keys() - PYTHON_FRAMEWORKS.keys()))
def test_frameworks_without_python_agree(pytestconfig: pytest.Config, framework: str) -> None:
    if framework not in pytestconfig.getoption("frameworks").split():
        pytest.skip(f"{framework} is not installed")
    assert_agreement(framework)


@pytest.mark.parametrize("language", TITLES)
def test_published_tables_are_within_tolerances(language: str) -> None:
    titles = [framework.title for framework in FRAMEWORKS.values()]
    tables = read_tables(language)
    assert [*tables] == [*DTYPES]
    for dtype, (head, *rows) in tables.items():
        assert head == ["", *titles]
        limits = dict.fromkeys(TITLES[language], 1.0)
        for case in load_cases():
            if (row := ROWS[case.name]) in limits:
                limits[row] = min(limits[row], case.tolerances[dtype])
        assert [row[0] for row in rows] == [*TITLES[language].values()]
        for limit, row in zip(limits.values(), rows, strict=True):
            assert all(float(number) <= limit for number in row[1:]), row
