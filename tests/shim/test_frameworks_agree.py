"""The frameworks compute the same, within the differences that docs/LANGUAGE/agreement.md publishes.

Those with a Python face are asked in tests/shim/each/test_agreement.py, where the face is imported anyway.
"""

import numpy as np
import pytest

from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS
from tests.shim import reference
from tests.shim.compare_frameworks.ask import ask
from tests.shim.compare_frameworks.cases import Case, draw
from tests.shim.compare_frameworks.differences import differences, too_large
from tests.shim.compare_frameworks.expected import answer, as_attention, expected
from tests.shim.compare_frameworks.table import TITLES, assert_as_published, published
from tests.shim.each.adapter import Arrays
from tests.shim.each.cases import TOLERANCE


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCE.items())
@pytest.mark.parametrize("framework", sorted(FRAMEWORKS.keys() - PYTHON_FRAMEWORKS.keys()))
def test_frameworks_without_python_agree_with_reference(
    pytestconfig: pytest.Config, framework: str, dtype: str, tolerance: float
) -> None:
    if framework not in pytestconfig.getoption("frameworks").split():
        pytest.skip(f"{framework} is not installed")
    measured = differences(ask(framework, dtype), dtype, expected())
    assert too_large(measured, tolerance) == {}
    assert_as_published(framework, dtype, measured)


@pytest.mark.parametrize("language", TITLES)
def test_published_tables_are_within_tolerances(language: str) -> None:
    titles = [framework.title for framework in FRAMEWORKS.values()]
    tables = published(language)
    assert [*tables] == [*TOLERANCE]
    for dtype, (head, *rows) in tables.items():
        assert head == ["", *titles]
        assert [row[0] for row in rows] == [*TITLES[language].values()]
        for row in rows:
            assert all(float(number) <= TOLERANCE[dtype] for number in row[1:]), row


# The reference's gradients are formulas: finite differences of its output hold them

CASES = draw("float64")


def gradients(case: Case) -> Arrays:
    """By what they are taken with respect to."""
    start = "gradient_"
    found = answer(case).items()
    return {name.removeprefix(start): x for name, x in found if name.startswith(start)}


def test_every_case_but_encoding_has_gradients() -> None:
    inputs = {"queries", "keys", "values"}
    assert {name: {*gradients(case)} for name, case in CASES.items()} == {
        **dict.fromkeys(CASES, inputs),
        **{each: {*inputs, "score_bias"} for each in ("score_bias", "all_masks", "alibi")},
        "relative": {*inputs, "table"},
        **{each: {"X"} for each in ("interleaved", "halves")},
        "P": set(),
    }


@pytest.mark.parametrize("name", [name for name in CASES if name != "P"])
def test_reference_gradients_match_finite_differences(name: str) -> None:
    """Along two ways, drawn: all numbers of an input change at once."""
    case = as_attention(CASES[name]) if CASES[name].kind == "alibi" else CASES[name]
    rng = np.random.default_rng(0)
    for given, gradient in gradients(case).items():
        for _ in range(2):
            way = rng.normal(size=gradient.shape)
            way /= np.linalg.norm(way)

            def loss(step: np.ndarray, given: str = given, way: np.ndarray = way) -> float:
                moved = {given: case.arrays[given] + step * way}
                output = answer(Case(case.kind, case.arrays | moved))["output"]
                return float((output * case.arrays["direction"]).sum())

            along = (gradient * way).sum()
            assert along == pytest.approx(float(reference.gradient(loss, 0.0)), abs=1e-10)
