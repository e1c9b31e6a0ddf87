"""Tests of causal self-attention under JAX's transformations: its cache is an immutable pytree of fixed shapes."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from d2l_compat import jax as d2l

X = jax.random.normal(jax.random.key(0), (2, 7, 8))
MASKS = pytest.mark.parametrize("masks", [{}, {"window": 3, "num_sinks": 1}], ids=str)


def make(dropout: float = 0.0, **masks: int) -> tuple[nn.Module, Any]:
    layer = d2l.CausalSelfAttention(8, 4, dropout, num_kv_heads=2, rope=True, **masks)
    return layer, layer.init(jax.random.key(1), X)


@MASKS
def test_jitted_step_is_compiled_once_and_equals_plain_calls(masks: dict[str, int]) -> None:
    layer, variables = make(**masks)
    num_traces = 0

    def step(variables: Any, x: jax.Array, lens: jax.Array, cache: d2l.KVCache) -> Any:
        nonlocal num_traces
        num_traces += 1
        return layer.apply(variables, x, lens, cache=cache)

    jitted = jax.jit(step, donate_argnums=3)
    cache, plain = layer.make_cache(2, 7), layer.make_cache(2, 7)
    want = layer.apply(variables, X)
    for i in range(7):
        x, lens = X[:, i : i + 1], np.ones(2, "int32")
        got, cache = jitted(variables, x, lens, cache)
        eager, plain = layer.apply(variables, x, lens, cache=plain)
        np.testing.assert_allclose(got, eager, atol=1e-6)
        np.testing.assert_allclose(got[:, 0], want[:, i], atol=1e-6)
    assert num_traces == 1
    assert [*cache.lengths] == [7, 7]


@MASKS
def test_cache_can_be_carried_through_a_scan(masks: dict[str, int]) -> None:
    layer, variables = make(**masks)

    def step(cache: d2l.KVCache, x: jax.Array) -> Any:
        output, cache = layer.apply(variables, x[:, None], cache=cache)
        return cache, output[:, 0]

    cache, outputs = jax.lax.scan(step, layer.make_cache(2, 7), X.swapaxes(0, 1))
    np.testing.assert_allclose(outputs.swapaxes(0, 1), layer.apply(variables, X), atol=1e-6)
    assert [*cache.lengths] == [7, 7]


def test_tokens_past_the_end_are_not_stored_and_their_results_are_nan() -> None:
    layer, variables = make()
    apply = jax.jit(layer.apply)
    _, full = apply(variables, X[:, :3], np.array([2, 3]), cache=layer.make_cache(2, 4))
    got, over = apply(variables, X[:, 3:6], cache=full)
    alone, _ = layer.apply(variables, X[:, 3:4], cache=full)
    np.testing.assert_array_equal(
        np.isnan(got).all(-1), [[False, False, True], [False, True, True]]
    )
    np.testing.assert_allclose(got[:, 0], alone[:, 0], atol=1e-6)
    assert [*over.lengths] == [5, 6]
    for old, new in (full.keys, over.keys), (full.values, over.values):
        np.testing.assert_array_equal(old[0, :, :2], new[0, :, :2])
        np.testing.assert_array_equal(old[1, :, :3], new[1, :, :3])
    later, last = apply(variables, X[:, :1], cache=over)
    assert np.isnan(later).all()
    np.testing.assert_array_equal(over.keys, last.keys)
    with pytest.raises(ValueError, match="cache: got 7 tokens; need at most 4"):
        layer.apply(variables, X[:, :1], cache=over)


def test_texts_can_branch_since_a_cache_never_changes() -> None:
    layer, variables = make()
    _, prompt = layer.apply(variables, X[:, :5], cache=layer.make_cache(2, 7))
    for step in (5, 6):
        text = jnp.concatenate([X[:, :5], X[:, step : step + 1]], axis=1)
        got, _ = layer.apply(variables, X[:, step : step + 1], cache=prompt)
        np.testing.assert_allclose(got[:, 0], layer.apply(variables, text)[:, 5], atol=1e-6)
    assert [*prompt.lengths] == [5, 5]
    assert [*prompt.reset().lengths] == [0, 0]


def test_vmap_matches_batch() -> None:
    layer, variables = make(window=3, num_sinks=1)

    def read(x: jax.Array) -> jax.Array:
        first, cache = layer.apply(variables, x[None, :4], cache=layer.make_cache(1, 7))
        second, _ = layer.apply(variables, x[None, 4:], cache=cache)
        return jnp.concatenate([first, second], 1)[0]

    np.testing.assert_allclose(jax.vmap(read)(X), layer.apply(variables, X), atol=1e-6)


def test_cache_has_the_dtype_of_its_keys() -> None:
    layer, variables = make()
    cache = layer.make_cache(2, 7, jnp.bfloat16)
    with pytest.raises(TypeError, match="cache, keys and values: got dtype bfloat16, float32"):
        layer.apply(variables, X, cache=cache)
    half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), variables)
    output, cache = layer.apply(half, X.astype(jnp.bfloat16), cache=cache)
    assert output.dtype == cache.keys.dtype == cache.values.dtype == jnp.bfloat16
    with pytest.raises(TypeError, match="cache: got list; need a KVCache"):
        layer.apply(variables, X, cache=[])


def test_training_drops_weights() -> None:
    rngs = {"dropout": jax.random.key(0)}
    layer, variables = make(dropout=1.0)
    assert not layer.apply(variables, X, training=True, rngs=rngs).any()
    assert layer.apply(variables, X).any()
    with pytest.raises(TypeError, match="training: got KVCache; need True or False"):
        layer.apply(variables, X, None, layer.make_cache(2, 7))


@pytest.mark.usefixtures("force_blockwise")
def test_long_text_under_jit_and_grad_matches_plain_call() -> None:
    layer, variables = make()

    def differentiate(X: jax.Array, lens: np.ndarray | None) -> jax.Array:
        return jax.grad(lambda X: (layer.apply(variables, X, lens)[:, :4] ** 2).sum())(X)

    for lens in (None, np.array([7, 4])):
        want = layer.apply(variables, X, lens)
        got = jax.jit(layer.apply)(variables, X, lens)
        np.testing.assert_allclose(got[:, :4], want[:, :4], atol=1e-6)
        assert np.isfinite(got).all()
        whole = differentiate(X, None)
        np.testing.assert_allclose(differentiate(X, lens), whole, atol=1e-5)
        assert not whole[:, 4:].any()


@pytest.mark.parametrize("num_steps", [7, 200])
def test_more_sinks_than_tokens_are_causal_mask(num_steps: int) -> None:
    layer, variables = make()
    X = jax.random.normal(jax.random.key(2), (2, num_steps, 8))
    other = layer.copy(window=5, num_sinks=num_steps + 1)
    want = layer.apply(variables, X)
    np.testing.assert_allclose(other.apply(variables, X), want, atol=1e-5)
