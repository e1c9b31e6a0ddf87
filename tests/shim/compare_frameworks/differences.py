"""Differences between a framework's answers and the reference's."""

import numpy as np

from tests.shim.compare_frameworks.expected import Answers

Differences = dict[str, dict[str, float]]  # by case and array


def differences(answers: Answers, dtype: str, expected: Answers) -> Differences:
    """Return the largest difference in each array; check their names, shapes and dtypes, and that they are finite."""
    assert {case: {*got} for case, got in answers.items()} == {
        case: {*arrays} for case, arrays in expected.items()
    }
    largest: Differences = {}
    for case, arrays in expected.items():
        for name, want in arrays.items():
            got = answers[case][name]
            assert (got.shape, got.dtype) == (want.shape, dtype), f"{case}: {name}"
            assert np.isfinite(got).all(), f"{case}: {name}"
            largest.setdefault(case, {})[name] = float(np.abs(got - want).max())
    return largest


def find_exceeding(measured: Differences, tolerance: float) -> dict[str, float]:
    """Return the differences above the tolerance."""
    return {
        f"{case}: {name}": size
        for case, sizes in measured.items()
        for name, size in sizes.items()
        if size > tolerance
    }
