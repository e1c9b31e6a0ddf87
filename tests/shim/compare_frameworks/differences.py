"""How far what a framework answered is from what the reference did."""

import numpy as np

from tests.shim.compare_frameworks.expected import Answers

Differences = dict[str, dict[str, float]]  # by case; of each of its answers


def differences(answers: Answers, dtype: str, wanted: Answers) -> Differences:
    """The largest of each array; all are there, in the right shape and dtype, and finite."""
    assert {case: {*found} for case, found in answers.items()} == {
        case: {*wants} for case, wants in wanted.items()
    }
    largest: Differences = {}
    for case, wants in wanted.items():
        for name, want in wants.items():
            got = answers[case][name]
            assert (got.shape, got.dtype) == (want.shape, dtype), f"{case}: {name}"
            assert np.isfinite(got).all(), f"{case}: {name}"
            largest.setdefault(case, {})[name] = float(np.abs(got - want).max())
    return largest


def too_large(found: Differences, tolerance: float) -> dict[str, float]:
    """Of which answers."""
    return {
        f"{case}: {name}": size
        for case, sizes in found.items()
        for name, size in sizes.items()
        if size > tolerance
    }
