"""Tests of a causal mask, a score bias and lengths, in any combination, against the NumPy reference."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import (
    LENGTHS,
    Case,
    assert_close,
    assert_dot_product,
    assert_gradients,
    cases,
    every_kind_of_lengths,
    heads,
    make_case,
    make_weights,
    parametrize_lengths,
    reference_multi_head,
)

Masks = dict[str, Any]


def draw_bias(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    """Draw normal numbers, but minus infinity for about one key in four."""
    rng = np.random.default_rng(seed)
    bias = rng.normal(size=shape)
    bias[rng.random(shape) < 0.25] = -np.inf
    return bias.astype(dtype)


@st.composite
def masks(draw: st.DrawFn, case: Case, *shapes: tuple[int, ...]) -> Masks:
    """Draw a causal mask, a window, a bias, or several; a bias has one of the ``shapes`` and (queries, keys)."""
    num_queries, num_keys = case.scores_shape
    drawn: Masks = {"causal": False}
    if num_queries <= num_keys:
        drawn = {
            "causal": draw(st.booleans()),
            "window": draw(st.none() | st.integers(1, num_keys + 1)),
        }
    shape = draw(st.none() | st.sampled_from(shapes))
    if shape is None:
        return drawn
    seed = draw(st.integers(0, 1000))
    return drawn | {
        "score_bias": draw_bias((*shape, num_queries, num_keys), case.queries.dtype, seed),
    }


@given(data=st.data(), case=cases())
def test_dot_product_attention_with_masks_matches_reference(
    adapter: Adapter, data: st.DataObject, case: Case
) -> None:
    mask_args = data.draw(masks(case, (), (len(case.queries),)))
    layer = adapter.build_dot_product(dropout=0.5)
    output, weights = reference.dot_product_attention(*case.arrays, **mask_args)
    assert_close(layer(*case.arrays, **mask_args), output)
    assert_close(layer.attention_weights, weights)
    assert (layer.attention_weights[weights == 0] == 0).all()


@given(data=st.data(), case=cases(equal_sizes=False))
def test_multi_head_attention_with_masks_matches_reference(
    adapter: Adapter, data: st.DataObject, case: Case
) -> None:
    num_heads, size = data.draw(heads(case))
    dtype = str(case.queries.dtype)
    batch = len(case.queries)
    num_hiddens = num_heads * size
    weights = make_weights(case.sizes, num_hiddens, dtype=dtype)
    mask_args = data.draw(masks(case, (), (num_heads,), (batch, num_heads)))
    sizes = (*case.sizes, num_hiddens, num_heads, 0.5)
    layer = adapter.build_multi_head(*sizes, weights=weights, dtype=dtype)
    output, expected_weights = reference_multi_head(weights, num_heads, *case.arrays, **mask_args)
    assert_close(layer(*case.arrays, **mask_args), output)
    assert_close(layer.attention_weights, expected_weights)


def test_last_query_sees_last_key(adapter: Adapter) -> None:
    case = make_case(steps=(2, 4))
    layer = adapter.build_dot_product()
    layer(*case.arrays, causal=True)
    seen = layer.attention_weights[0] > 0
    np.testing.assert_array_equal(seen, [[True, True, True, False], [True] * 4])


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
@pytest.mark.parametrize("valid_lens", [None, np.array([4, 4])], ids=["no lengths", "lengths"])
@pytest.mark.parametrize("causal", [False, True])
def test_infinite_bias_hides_keys(
    adapter: Adapter, causal: bool, valid_lens: np.ndarray | None, shape: tuple[int, ...]
) -> None:
    case = make_case(valid_lens)
    bias = np.zeros(shape)
    # The last query sees no key; no other mask hides any from it.
    bias[..., 2, :] = -np.inf
    bias[..., 1, 2] = -np.inf
    layer = adapter.build_dot_product()
    mask_args: Masks = {"causal": True} if causal else {}
    assert not layer(*case.arrays, score_bias=bias, **mask_args)[:, 2].any()
    weights = layer.attention_weights
    assert (weights[:, 2] == 0).all()
    assert (weights[:, 1, 2] == 0).all()
    assert_close(weights[:, :2].sum(axis=-1), np.ones((2, 2)))


@pytest.mark.parametrize("valid_lens", [None, np.array([4, 3])], ids=["no lengths", "lengths"])
def test_nan_in_bias_reaches_output(adapter: Adapter, valid_lens: np.ndarray | None) -> None:
    case = make_case(valid_lens)
    bias = np.zeros((3, 4))
    bias[1, 2] = np.nan
    layer = adapter.build_dot_product()
    output = layer(*case.arrays, score_bias=bias)
    assert np.isnan(output[0, 1]).all()
    assert np.isnan(layer.attention_weights[0, 1]).any()
    assert np.isfinite(output[:, [0, 2]]).all()


@pytest.mark.parametrize("has_bias", [False, True])
def test_dropout_applies_with_masks(adapter: Adapter, has_bias: bool) -> None:
    case = make_case(batch=4, steps=(50, 50), sizes=(8, 8, 8), dtype="float32")
    mask_args: Masks = {"causal": True}
    if has_bias:
        mask_args["score_bias"] = np.zeros((50, 50), "float32")
    layer = adapter.build_dot_product(dropout=0.25)
    identity = np.tile(np.eye(50, dtype="float32"), (4, 1, 1))
    used = layer(case.queries, case.keys, identity, training=True, **mask_args)
    seen = layer.attention_weights > 0
    assert (used[~seen] == 0).all()
    assert (used[seen] == 0).mean() == pytest.approx(0.25, abs=0.03)


MASK_ARGS: dict[str, Masks] = {
    "none": {},
    "causal": {"causal": True},
    "bias": {"score_bias": draw_bias((3, 4), float, 1)},
    "bias per example": {"score_bias": draw_bias((2, 3, 4), float, 2)},
    "both": {"causal": True, "score_bias": draw_bias((3, 4), float, 3)},
}
every_kind_of_mask = pytest.mark.parametrize("mask_args", MASK_ARGS.values(), ids=MASK_ARGS)


@every_kind_of_lengths
@every_kind_of_mask
def test_dot_product_gradients_match_reference(
    adapter: Adapter, valid_lens: np.ndarray | None, mask_args: Masks
) -> None:
    case = make_case(valid_lens, sizes=(3, 3, 5))
    direction = np.random.default_rng(1).normal(size=(2, 3, 5))
    layer = adapter.build_dot_product()
    assert_gradients(layer, reference.dot_product_attention, case, direction, **mask_args)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (2, 2, 3, 4)])
def test_multi_head_gradients_with_masks_match_reference(
    adapter: Adapter, shape: tuple[int, ...]
) -> None:
    case = make_case(LENGTHS["per example"], sizes=(3, 3, 5))
    weights = make_weights(case.sizes, 4)
    layer = adapter.build_multi_head(*case.sizes, 4, 2, 0.0, weights=weights)
    mask_args: Masks = {"causal": True, "score_bias": draw_bias(shape, float, 4)}
    direction = np.random.default_rng(1).normal(size=(2, 3, 4))
    assert_gradients(layer, partial(reference_multi_head, weights, 2), case, direction, **mask_args)


LONG_LENGTHS = {
    **LENGTHS,
    "per query": np.array([[4, 1, 0, 2, 3, 4, 1], [2, 0, 3, 1, 4, 7, 2]]),
}


@pytest.mark.usefixtures("force_blockwise")
@parametrize_lengths(LONG_LENGTHS, "every key", "per example", slow=("jax", "paddle"))
@pytest.mark.parametrize("has_bias", [False, True])
def test_long_input_with_masks_matches_reference(
    adapter: Adapter, valid_lens: np.ndarray | None, has_bias: bool
) -> None:
    case = make_case(valid_lens, steps=(7, 8))
    mask_args: Masks = {"causal": True}
    if has_bias:
        mask_args["score_bias"] = draw_bias((7, 8), float, 5)
    assert_dot_product(adapter.build_dot_product(), case, **mask_args)


@pytest.mark.parametrize("is_blockwise", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("lens", [[7, 99], [[2, 9, 0, 6, 7], [7, 8, 9, 7, 8]]], ids=np.ndim)
def test_lengths_may_be_whole_floats_and_exceed_keys(
    adapter: Adapter,
    request: pytest.FixtureRequest,
    lens: list[Any],
    dtype: str,
    is_blockwise: bool,
) -> None:
    if is_blockwise:
        request.getfixturevalue("force_blockwise")
    case = make_case(np.minimum(lens, 7), steps=(5, 7), sizes=(8, 8, 8))
    other_lens = np.array(lens, dtype)
    layer = adapter.build_dot_product()
    for masks in {}, {"causal": True}:
        output, weights = reference.dot_product_attention(*case.arrays, **masks)
        assert_close(layer(*case.arrays[:3], other_lens, **masks), output)
        assert_close(layer.attention_weights, weights)
    heads = adapter.build_multi_head(8, 2, 0.0, weights=make_weights(case.sizes, 8))
    assert_close(heads(*case.arrays[:3], other_lens), heads(*case.arrays))
    weights = reference.softmax(case.scores, case.valid_lens)
    assert_close(adapter.masked_softmax(case.scores, other_lens), weights)
