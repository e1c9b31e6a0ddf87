"""Tests of causal self-attention with a cache against the NumPy reference, and of choosing tokens."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.shim import reference
from tests.shim.each.adapter import Adapter

MASKS = [{}, {"window": 3}, {"window": 5, "num_sinks": 2}, {"window": 1, "num_sinks": 1}]
CHUNKS = [1] * 13, [3, 3, 3, 3, 1], [13], [2, 8, 3]
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}


def build(adapter: Adapter, dtype: str = "float64", **options: Any) -> Any:
    layer = adapter.build_causal(16, 4, dtype=dtype, **options)
    layer.randomize(draw(1, 1, 16, dtype=dtype))
    return layer


def draw(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype(dtype)


def attend(layer: Any, X: np.ndarray, **options: Any) -> np.ndarray:
    """Return what the layer should compute for texts, (batch, steps, 16), from its parameters."""
    projections = {
        f"w_{role}": reference.Linear(layer.parameters(f"W_{role}")["weight"]) for role in "qkvo"
    }
    return reference.causal_self_attention(X, num_heads=4, **projections, **options)[0]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("masks", MASKS, ids=str)
@pytest.mark.parametrize(("kv_heads", "rope"), [(4, True), (2, False), (1, True)])
def test_chunks_equal_whole_text_and_reference(
    adapter: Adapter, kv_heads: int, rope: bool, masks: dict[str, int], dtype: str
) -> None:
    layer = build(adapter, dtype, num_kv_heads=kv_heads, rope=rope, **masks)
    X = draw(2, 13, 16, dtype=dtype)
    want = attend(layer, X, rope=rope, **masks)
    atol = TOLERANCE[dtype] * np.abs(want).max()
    np.testing.assert_allclose(layer(X), want, atol=atol)
    for chunks in CHUNKS:
        cache = adapter.make_cache(layer, 2, 13)
        ends = np.cumsum(chunks)
        parts = [cache(X[:, end - n : end]) for end, n in zip(ends, chunks, strict=True)]
        np.testing.assert_allclose(np.concatenate(parts, 1), want, atol=atol)
        assert [*cache.lengths] == [13, 13]


@pytest.mark.parametrize("masks", MASKS, ids=str)
def test_prompts_of_different_lengths_equal_each_alone(
    adapter: Adapter, masks: dict[str, int]
) -> None:
    layer = build(adapter, num_kv_heads=2, rope=True, **masks)
    X, lens = draw(3, 13, 16), np.array([2, 7, 5])
    want = attend(layer, X, rope=True, **masks)
    cache = adapter.make_cache(layer, 3, 13)
    padded = X[:, :7].copy()
    padded[np.arange(7) >= lens[:, None]] = 100
    prompts = cache(padded, lens)
    for row, n in enumerate(lens):
        np.testing.assert_allclose(prompts[row, :n], want[row][:n], atol=1e-10)
    for step in range(5):
        got = cache(X[range(3), lens + step][:, None])
        expected = [rows[n + step] for rows, n in zip(want, lens, strict=True)]
        np.testing.assert_allclose(got[:, 0], expected, atol=1e-10)
    # A chunk of which one text gets nothing, and another only a part.
    got = cache(X[[0, 0, 0]][:, [7, 8, 9]], np.array([3, 0, 1]))
    np.testing.assert_allclose(got[0], want[0][7:10], atol=1e-10)
    assert np.isfinite(got).all()  # also where there is only padding
    assert [*cache.lengths] == [10, 12, 11]


def test_gradients_match_differences(adapter: Adapter) -> None:
    masks = {"rope": True, "window": 3, "num_sinks": 1}
    layer = build(adapter, num_kv_heads=2, **masks)
    X, direction = draw(1, 6, 16), draw(1, 6, 16) + 1
    (got,) = layer.gradients(direction, X)
    want = reference.gradient(lambda x: float((attend(layer, x, **masks) * direction).sum()), X)
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_cache_has_room_for_its_tokens_and_can_be_reset(adapter: Adapter) -> None:
    layer = build(adapter, num_kv_heads=2)
    cache, X = adapter.make_cache(layer, 2, 6), draw(2, 6, 16)
    assert (
        cache.nbytes == 2 * 2 * 2 * 6 * 4 * 8
    )  # keys and values, batch, heads, tokens, width, bytes
    first = cache(X)
    cache.reset()
    np.testing.assert_array_equal(cache(X), first)
    rolling = adapter.make_cache(build(adapter, window=3, num_sinks=1), 2, 6)
    assert rolling.nbytes == 2 * 2 * 4 * 4 * 4 * 8


def test_refused_call_leaves_the_cache_as_it_was(adapter: Adapter) -> None:
    layer, X = build(adapter, rope=True), draw(2, 6, 16)
    cache = adapter.make_cache(layer, 2, 4)
    cache(X[:, :3])
    for what, bad in {
        "cache: got 5 tokens; need at most 4; make it larger": X[:, 3:5],
        "cache: got a cache for a batch of 2; need one for the batch of 1": X[:1, 3:4],
    }.items():
        with pytest.raises(ValueError, match=what):
            cache(bad)
    np.testing.assert_allclose(cache(X[:, 3:4]), layer(X)[:, 3:4], atol=1e-10)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_kv_heads": 3}, "num_kv_heads: got 3 with num_heads 4; need a divisor of num_heads"),
        ({"num_sinks": 1}, "num_sinks: got 1 without a window; need a window"),
        ({"window": 0}, "window: got 0; need an integer of at least 1"),
        ({"num_kv_heads": 0}, "num_kv_heads: got 0; need an integer of at least 1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    adapter: Adapter, options: dict[str, int], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        build(adapter, **options)


# Choosing tokens: the same code in every framework, called with its arrays


LOGITS = np.log([0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, [0.4, 0.3, 0.2, 0.1]),
        ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
        ({"top_k": 1}, [1, 0, 0, 0]),
        ({"top_k": 4}, [0.4, 0.3, 0.2, 0.1]),
        ({"top_p": 0.69}, [4 / 7, 3 / 7, 0, 0]),
        ({"top_p": 0.71}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"top_p": 1e-9}, [1, 0, 0, 0]),
        ({"top_p": 1}, [0.4, 0.3, 0.2, 0.1]),
        ({"min_p": 0.49}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"min_p": 1}, [1, 0, 0, 0]),
        ({"top_k": 3, "top_p": 0.75}, [4 / 7, 3 / 7, 0, 0]),  # 4/9 + 3/9 is above 0.75
    ],
)
def test_next_token_probs(adapter: Adapter, options: dict[str, Any], want: list[float]) -> None:
    got = adapter.d2l.next_token_probs(adapter.tensor(LOGITS[None]), **options)
    np.testing.assert_allclose(got, [want], atol=1e-12)
    back = adapter.d2l.next_token_probs(adapter.tensor(LOGITS[::-1].copy()), **options)
    np.testing.assert_allclose(back, want[::-1], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *product(["temperature"], [0, -1]),
        *product(["top_k"], [0, 5]),
        *product(["top_p", "min_p"], [0, 1.1]),
    ],
)
def test_options_out_of_range_are_refused(adapter: Adapter, name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=f"{name}: got {bad}; need"):
        adapter.d2l.generate(lambda *_: adapter.tensor(LOGITS[None, None]), [[0]], 1, **{name: bad})


def test_generation_follows_the_distribution_and_the_seed(adapter: Adapter) -> None:
    calls = []

    def predict(tokens: Any, valid_lens: Any) -> Any:
        calls.append((adapter.to_numpy(tokens), adapter.to_numpy(valid_lens)))
        return adapter.tensor(np.tile(LOGITS, (*tokens.shape, 1)))

    generate = adapter.d2l.generate
    texts = generate(predict, [[1, 2, 3], [3]], 2000, seed=0)
    np.testing.assert_array_equal(calls[0][0], [[1, 2, 3], [3, 0, 0]])
    np.testing.assert_array_equal(calls[0][1], [3, 1])
    assert all(tokens.shape == (2, 1) and [*lens] == [1, 1] for tokens, lens in calls[1:])
    np.testing.assert_array_equal(calls[1][0][:, 0], [text[0] for text in texts])
    for text in texts:
        shares = np.bincount(text, minlength=4) / 2000
        np.testing.assert_allclose(shares, [0.4, 0.3, 0.2, 0.1], atol=0.05)
    assert texts[0] != texts[1]
    assert generate(predict, [[1], [3]], 20, seed=0) == [text[:20] for text in texts]
    assert generate(predict, [[1]], 9, seed=1) != [texts[0][:9]]
    stopped = generate(predict, [[1], [3]], 50, seed=0, stop=3)
    assert stopped == [text[: text.index(3) + 1] for text in texts]
    with pytest.raises(ValueError, match="num_tokens: got 0"):
        generate(predict, [[1]], 0)
    with pytest.raises(ValueError, match="prompts: got an empty prompt"):
        generate(predict, [[1], []], 1)


def test_logits_are_taken_at_the_last_token_of_each_prompt(adapter: Adapter) -> None:
    def predict(tokens: Any, valid_lens: Any) -> Any:  # the most probable token is the next number
        return adapter.tensor(10 * np.eye(9)[adapter.to_numpy(tokens) + 1])

    texts = adapter.d2l.generate(predict, [[5, 1], [0], [4, 3, 2]], 3, top_k=1)
    assert texts == [[2, 3, 4], [1, 2, 3], [3, 4, 5]]
