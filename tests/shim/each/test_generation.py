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


def build(adapter: Adapter, dtype: str = "float64", num_hiddens: int = 16, **options: Any) -> Any:
    layer = adapter.build_causal(num_hiddens, 4, dtype=dtype, **options)
    layer.randomize(draw(1, 1, num_hiddens, dtype=dtype))
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


def test_chunks_equal_own_attention_of_framework(adapter: Adapter) -> None:
    layer, X = build(adapter, "float32", num_kv_heads=2), draw(2, 9, 16, dtype="float32")

    def split(name: str) -> np.ndarray:
        heads = (X @ layer.parameters(name)["weight"]).reshape(2, 9, -1, 4).swapaxes(1, 2)
        return heads.repeat(4 // heads.shape[1], axis=1).astype("float32")

    pooled = adapter.native_causal_attention(split("W_q"), split("W_k"), split("W_v"))
    if pooled is None:
        pytest.skip("the tests know no attention of this framework's own")
    want = pooled.swapaxes(1, 2).reshape(2, 9, 16) @ layer.parameters("W_o")["weight"]
    cache = adapter.make_cache(layer, 2, 9)
    got = np.concatenate([cache(X[:, :4]), cache(X[:, 4:])], axis=1)
    np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max())


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


@pytest.mark.parametrize(
    ("batch", "steps", "lens", "error"),
    [
        (2, 2, None, "cache: got 5 tokens; need at most 4; make it larger"),
        (2, 2, [1, 2], "cache: got 5 tokens; need at most 4; make it larger"),
        (2, 0, None, r"X: got shape \(2, 0, 16\); need at least one step"),
        (1, 1, None, "cache: got a cache for a batch of 2; need one for the batch of 1"),
        (
            2,
            1,
            [1, 2],
            "valid_lens: got a length of 2; need lengths from 0 to 1, the number of steps",
        ),
        (2, 1, [1, -1], "valid_lens: got a length of -1; need lengths from 0 to 1"),
    ],
)
def test_refused_call_leaves_the_cache_as_it_was(
    adapter: Adapter, batch: int, steps: int, lens: list[int] | None, error: str
) -> None:
    layer, X = build(adapter, rope=True), draw(2, 6, 16)
    cache = adapter.make_cache(layer, 2, 4)
    cache(X[:, :3])
    before = cache.arrays
    with pytest.raises(ValueError, match=f"^{error}"):
        cache(X[:batch, 3 : 3 + steps], None if lens is None else np.array(lens))
    assert all(map(np.array_equal, cache.arrays, before))
    np.testing.assert_allclose(cache(X[:, 3:4]), layer(X)[:, 3:4], atol=1e-10)


@pytest.mark.parametrize(
    ("made", "used", "error"),
    [
        (
            {"num_kv_heads": 2},
            {},
            "a cache for 2 heads of width 4; need one for 4 heads of width 4",
        ),
        (
            {"num_hiddens": 32},
            {},
            "a cache for 4 heads of width 8; need one for 4 heads of width 4",
        ),
        (
            {"window": 3},
            {},
            "a cache with window 3 and num_sinks 0; need one with window None and num_sinks 0",
        ),
        (
            {"window": 3, "num_sinks": 1},
            {"window": 4},
            "a cache with window 3 and num_sinks 1; need one with window 4 and num_sinks 0",
        ),
    ],
    ids=str,
)
def test_cache_of_another_layer_is_refused(
    adapter: Adapter, made: dict[str, int], used: dict[str, int], error: str
) -> None:
    other, layer = build(adapter, **made), build(adapter, **used)
    assert_refused(adapter, other, layer, ValueError, f"^cache: got {error}")


def test_cache_of_another_dtype_is_refused(adapter: Adapter) -> None:
    error = "^cache, keys and values: got dtype float32, float64; need one floating-point dtype"
    assert_refused(adapter, build(adapter, "float32"), build(adapter), TypeError, error)


def assert_refused(
    adapter: Adapter, other: Any, layer: Any, kind: type[Exception], error: str
) -> None:
    """Check that the cache of another layer cannot be used, and does not change."""
    cache = adapter.make_cache(other, 2, 6)
    cache(draw(2, 2, len(other.parameters("W_q")["weight"]), dtype=str(cache.arrays[0].dtype)))
    before, cache.layer = cache.arrays, layer
    with pytest.raises(kind, match=error):
        cache(draw(2, 1, 16))
    assert all(map(np.array_equal, cache.arrays, before))


def test_layer_with_window_may_use_a_cache_without(adapter: Adapter) -> None:
    layer, X = build(adapter, window=3, num_sinks=1), draw(2, 9, 16)
    cache = adapter.make_cache(build(adapter), 2, 9)
    cache.layer = layer
    chunks = [cache(X[:, :5]), cache(X[:, 5:6]), cache(X[:, 6:])]
    np.testing.assert_allclose(np.concatenate(chunks, 1), layer(X), atol=1e-10)


def test_keys_and_values_must_fit_the_cache(adapter: Adapter) -> None:
    cache = adapter.make_cache(build(adapter), 2, 4).cache
    keys, short = adapter.tensor(draw(2, 4, 3, 4)), adapter.tensor(draw(2, 4, 2, 4))
    with pytest.raises(
        ValueError, match=r"^values: got shape \(2, 4, 2, 4\); need shape \(2, 4, 3, 4\)"
    ):
        cache.append(keys, short)
    with pytest.raises(ValueError, match=r"^keys: got shape \(2, 4, 2\); need 4 dimensions"):
        cache.append(adapter.tensor(draw(2, 4, 2)), short)
    assert [*cache.lengths] == [0, 0]


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
        *product(["temperature"], [0, -1, np.nan, np.inf]),
        *product(["top_k"], [0, 5]),
        *product(["top_p", "min_p"], [0, -0.5, 1.1, np.nan]),
    ],
)
def test_options_out_of_range_are_refused(adapter: Adapter, name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=f"^{name}: got {bad}; need"):
        adapter.d2l.generate(lambda *_: adapter.tensor(LOGITS[None, None]), [[0]], 1, **{name: bad})


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_refused(adapter: Adapter, bad: float) -> None:
    logits = np.stack([LOGITS, [0, bad, -np.inf, 0]])
    with pytest.raises(
        ValueError, match=f"^logits: got a row whose largest number is {bad}; need a finite number"
    ):
        adapter.d2l.generate(lambda *_: adapter.tensor(logits[:, None]), [[0], [0]], 1)
    with pytest.raises(ValueError, match=r"^logits: got a row whose largest number is -inf"):
        adapter.d2l.next_token_probs(adapter.tensor(np.full((1, 4), -np.inf)))
    masked = adapter.d2l.next_token_probs(adapter.tensor(np.array([0, -np.inf, 1e300])))
    np.testing.assert_array_equal(masked, [0, 0, 1])


@pytest.mark.parametrize(
    ("prompts", "kind", "error"),
    [
        ([[1], []], ValueError, "an empty prompt; need at least one token in each"),
        ([], ValueError, "none; need a list of lists of tokens, at least one"),
        ([[1, -2]], ValueError, "-2; need an integer of at least 0"),
        ([[1.0]], TypeError, "1.0; need an integer of at least 0"),
        ([["a"]], TypeError, "'a'; need an integer of at least 0"),
        ([[2**31]], ValueError, "2147483648; need an integer of at most 2147483647"),
        ([1, 2], TypeError, "int; need a list of lists of tokens, at least one"),
        (["ab"], TypeError, "str; need a list of lists of tokens, at least one"),
    ],
    ids=str,
)
def test_prompts_that_are_no_tokens_are_refused(
    adapter: Adapter, prompts: Any, kind: type[Exception], error: str
) -> None:
    with pytest.raises(kind, match=f"^prompts: got {error}$"):
        adapter.d2l.generate(lambda *_: None, prompts, 1)


def test_prompts_may_be_an_array(adapter: Adapter) -> None:
    def predict(tokens: Any, valid_lens: Any) -> Any:
        return adapter.tensor(np.eye(4)[adapter.to_numpy(tokens)])

    prompts = np.array([[1, 2], [3, 0]])
    for given in (prompts, adapter.tensor(prompts.astype("int32"))):
        assert adapter.d2l.generate(predict, given, 1, top_k=1) == [[2], [0]]


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
    with pytest.raises(ValueError, match=r"^num_tokens: got 0; need an integer of at least 1"):
        generate(predict, [[1]], 0)


def test_logits_are_taken_at_the_last_token_of_each_prompt(adapter: Adapter) -> None:
    def predict(tokens: Any, valid_lens: Any) -> Any:  # the most probable token is the next number
        return adapter.tensor(10 * np.eye(9)[adapter.to_numpy(tokens) + 1])

    texts = adapter.d2l.generate(predict, [[5, 1], [0], [4, 3, 2]], 3, top_k=1)
    assert texts == [[2, 3, 4], [1, 2, 3], [3, 4, 5]]
