"""Tests of attention within a window on long input, which is computed in blocks, against the NumPy reference."""

from typing import Any

import numpy as np
import pytest

from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import Case, assert_close, make_case

# Queries, keys and window: the last block may be full, and the window longer or shorter than a block.
SIZES = [
    (150, 150, 5),
    (128, 192, 64),
    (10, 300, 5),
    (1, 300, 100),
    (129, 400, 70),
    (200, 200, 199),
]


def draw_masks(case: Case, kind: str) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Return ``valid_lens`` and a bias of this kind; some queries see no key."""
    rng = np.random.default_rng(1)
    batch, (num_queries, num_keys) = len(case.queries), case.scores_shape
    if kind == "per query":
        return rng.integers(0, num_keys + 1, size=(batch, num_queries)), {}
    if kind == "bias":
        bias = rng.normal(size=(batch, num_queries, num_keys))
        bias[rng.random(bias.shape) < 0.25] = -np.inf
        bias[:, -1] = -np.inf
        return np.array([num_keys, num_keys // 2]), {"score_bias": bias}
    return None, {}


@pytest.mark.parametrize("kind", ["alone", "per query", "bias"])
@pytest.mark.parametrize(("num_queries", "num_keys", "window"), SIZES)
def test_window_matches_reference(
    adapter: Adapter, num_queries: int, num_keys: int, window: int, kind: str
) -> None:
    case = make_case(steps=(num_queries, num_keys))
    valid_lens, masks = draw_masks(case, kind)
    inputs = case.queries, case.keys, case.values, valid_lens
    layer = adapter.build_dot_product()
    output, weights = reference.dot_product_attention(*inputs, window=window, **masks)
    assert_close(layer(*inputs, window=window, **masks), output)
    assert_close(layer.attention_weights, weights)


def test_window_has_gradients_of_masked_attention(adapter: Adapter) -> None:
    case = make_case(steps=(140, 150))
    valid_lens, masks = draw_masks(case, "bias")
    direction = np.random.default_rng(2).normal(size=(2, 140, case.values.shape[-1]))
    inputs = case.queries, case.keys, case.values, valid_lens
    query, key = np.ogrid[10:150, :150]
    is_outside = (key > query) | (key <= query - 20)
    layer = adapter.build_dot_product()
    got = layer.gradients(direction, *inputs, window=20, **masks)
    band = {"score_bias": np.where(is_outside, -np.inf, masks["score_bias"])}
    want = layer.gradients(direction, *inputs, **band)
    for x, y in zip(got, want, strict=True):
        assert np.isfinite(x).all()
        assert_close(x, y)


@pytest.mark.parametrize("masks", [{"window": 5}, {"window": 70, "num_sinks": 3}], ids=str)
def test_causal_self_attention_in_blocks(adapter: Adapter, masks: dict[str, Any]) -> None:
    layer = adapter.build_causal(16, 4, num_kv_heads=2, **masks)
    X = np.random.default_rng(1).normal(size=(2, 200, 16))
    layer.randomize(X)
    weights = {f"w_{x}": reference.Linear(layer.parameters(f"W_{x}")["weight"]) for x in "qkvo"}
    want, _ = reference.causal_self_attention(X, num_heads=4, **weights, **masks)
    assert_close(layer(X), want)


def test_more_sinks_than_tokens(adapter: Adapter) -> None:
    layer = adapter.build_causal(16, 4, window=2, num_sinks=10)
    X = np.random.default_rng(1).normal(size=(1, 5, 16))
    layer.randomize(X)
    cache = adapter.make_cache(layer, 1, 5)
    assert_close(layer(X), cache(X))


def test_window_of_all_keys_is_causal_mask(adapter: Adapter) -> None:
    case = make_case(steps=(3, 4))
    layer = adapter.build_dot_product()
    want = layer(*case.arrays, causal=True)
    for window in (4, 5, 100):
        np.testing.assert_array_equal(layer(*case.arrays, window=window), want)


def test_more_queries_than_keys(adapter: Adapter) -> None:
    case = make_case(steps=(5, 3))
    need = "got 5 queries and 3 keys; need at least one key for each query"
    with pytest.raises(ValueError, match=f"causal attention: {need}"):
        adapter.build_dot_product()(*case.arrays, window=2)
