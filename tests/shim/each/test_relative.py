"""Tests of rotary position embedding and ALiBi's slopes against the NumPy reference."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import assert_close, shapes

LAYOUTS = "interleaved", "halves"
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


def draw_normal(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


@given(
    data=st.data(),
    offset=st.integers(0, 5),
    layout=st.sampled_from(LAYOUTS),
    base=st.sampled_from([2, 500.0, 10000]),
    position_scale=st.sampled_from([0.25, 1, 3.0]),
)
def test_rotary_encoding_matches_reference(
    adapter: Adapter, data: st.DataObject, offset: int, **options: Any
) -> None:
    batch, steps, pairs, *_ = data.draw(shapes())
    layer = adapter.build_rotary(2 * pairs, 9, **options)
    X = draw_normal(batch, steps, 2 * pairs)
    positions = range(offset, offset + steps)
    assert_close(layer(X, offset=offset), reference.rotary(X, positions, **options))


@every_layout
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_far_positions_are_exact(adapter: Adapter, layout: str, dtype: str) -> None:
    X = draw_normal(1, 3, 8, dtype=dtype)
    got = adapter.build_rotary(8, 100_000, dtype=dtype, layout=layout)(X, offset=99_990)
    assert got.dtype == dtype
    assert_close(got, reference.rotary(X, range(99_990, 99_993), layout=layout))


@every_layout
def test_rotary_scores_depend_only_on_distance(adapter: Adapter, layout: str) -> None:
    layer = adapter.build_rotary(8, 60, layout=layout)
    q, k = draw_normal(2, 8)
    Q, K = (layer(np.tile(x, (1, 60, 1)))[0] for x in (q, k))
    scores = Q @ K.T
    for distance in range(-59, 60):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], atol=1e-12)
    assert np.ptp(scores[0]) > 1


def test_layouts_differ_by_permutation(adapter: Adapter) -> None:
    X = draw_normal(1, 5, 8)
    order = [0, 2, 4, 6, 1, 3, 5, 7]  # the first of each pair, then the second
    halves = adapter.build_rotary(8, layout="halves")(X[..., order])
    interleaved = adapter.build_rotary(8, layout="interleaved")(X)
    assert_close(halves, interleaved[..., order])
    assert np.abs(halves - adapter.build_rotary(8, layout="interleaved")(X[..., order])).max() > 0.1


@every_layout
def test_rotary_gradients_match_reference(adapter: Adapter, layout: str) -> None:
    X, direction = draw_normal(2, 3, 4), draw_normal(2, 3, 4) + 1
    (got,) = adapter.build_rotary(4, layout=layout).gradients(direction, X)
    want = reference.gradient(
        lambda x: float((reference.rotary(x, range(3), layout=layout) * direction).sum()), X
    )
    np.testing.assert_allclose(got, want, atol=1e-8)


SLOPES = {  # from the code of Press et al. (2022) for 1, 2, 8 and 12 heads
    1: [2**-8],
    2: [2**-4, 2**-8],
    8: [2**-n for n in range(1, 9)],
    12: [*(2**-n for n in range(1, 9)), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
}


@pytest.mark.parametrize("num_heads", SLOPES)
def test_alibi_slopes_match_paper(adapter: Adapter, num_heads: int) -> None:
    got = adapter.call("alibi_slopes", num_heads)
    assert got.dtype == "float32"
    np.testing.assert_allclose(got, SLOPES[num_heads], rtol=1e-6)
