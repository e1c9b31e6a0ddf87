"""Tests that frameworks agree within the differences published in docs/LANGUAGE/agreement.md.

Python frameworks are tested in tests/shim/each/test_agreement.py, where they are imported anyway.
"""

import numpy as np
import pytest

from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS
from tests.shim import reference
from tests.shim.compare_frameworks.ask import ask_framework
from tests.shim.compare_frameworks.cases import Case, draw_cases
from tests.shim.compare_frameworks.differences import differences, find_exceeding
from tests.shim.compare_frameworks.expected import answer, as_attention, expected_answers
from tests.shim.compare_frameworks.table import TITLES, assert_as_published, read_published_tables
from tests.shim.each.adapter import Arrays
from tests.shim.each.cases import TOLERANCE


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCE.items())
@pytest.mark.parametrize("framework", sorted(FRAMEWORKS.keys() - PYTHON_FRAMEWORKS.keys()))
def test_frameworks_without_python_agree_with_reference(
    pytestconfig: pytest.Config, framework: str, dtype: str, tolerance: float
) -> None:
    if framework not in pytestconfig.getoption("frameworks").split():
        pytest.skip(f"{framework} is not installed")
    measured = differences(ask_framework(framework, dtype), dtype, expected_answers())
    assert find_exceeding(measured, tolerance) == {}
    assert_as_published(framework, dtype, measured)


@pytest.mark.parametrize("language", TITLES)
def test_published_tables_are_within_tolerances(language: str) -> None:
    titles = [framework.title for framework in FRAMEWORKS.values()]
    tables = read_published_tables(language)
    assert [*tables] == [*TOLERANCE]
    for dtype, (head, *rows) in tables.items():
        assert head == ["", *titles]
        assert [row[0] for row in rows] == [*TITLES[language].values()]
        for row in rows:
            assert all(float(number) <= TOLERANCE[dtype] for number in row[1:]), row


# The reference's gradients are formulas, which are tested against finite differences of its output

CASES = draw_cases("float64")


def gradients(case: Case) -> Arrays:
    """Return a case's gradients by input name."""
    prefix = "gradient_"
    answers = answer(case).items()
    return {name.removeprefix(prefix): x for name, x in answers if name.startswith(prefix)}


def test_every_case_but_encoding_has_gradients() -> None:
    inputs = {"queries", "keys", "values"}
    assert {name: {*gradients(case)} for name, case in CASES.items()} == {
        **dict.fromkeys(CASES, inputs),
        **{
            name: {*inputs, "score_bias"}
            for name in ("score_bias", "all_masks", "in_window_masks", "alibi")
        },
        "relative": {*inputs, "table"},
        **{
            name: {"X"}
            for name, case in CASES.items()
            if case.kind in ("rotary", "cached", "linear")
        },
        "P": set(),
    }


@pytest.mark.parametrize("name", [name for name in CASES if name != "P"])
def test_reference_gradients_match_finite_differences(name: str) -> None:
    case = as_attention(CASES[name]) if CASES[name].kind == "alibi" else CASES[name]
    rng = np.random.default_rng(0)
    before = answer(case)["output"]
    for x, gradient in gradients(case).items():
        for _ in range(2):
            direction = rng.normal(size=gradient.shape)
            direction /= np.linalg.norm(direction)

            def loss(step: np.ndarray, x: str = x, direction: np.ndarray = direction) -> float:
                moved = {x: case.arrays[x] + step * direction}
                output = answer(Case(case.kind, case.arrays | moved))["output"]
                return float(((output - before) * case.arrays["direction"]).sum())

            derivative = (gradient * direction).sum()
            assert derivative == pytest.approx(float(reference.gradient(loss, 0.0)), abs=1e-10)
