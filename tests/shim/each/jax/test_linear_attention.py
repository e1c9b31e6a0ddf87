"""Tests of linear attention under JAX's transformations: its state is an immutable pytree of fixed shapes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from d2l_compat import jax as d2l

X = jax.random.normal(jax.random.key(0), (2, 7, 8))
LAYER = d2l.LinearAttention(8, 2, decay=[1.0, 0.5])
VARIABLES = LAYER.init(jax.random.key(1), X)


def test_state_can_be_carried_through_a_scan() -> None:
    def step(state: Any, x: jax.Array) -> Any:
        output, state = LAYER.apply(VARIABLES, x[:, None], state)
        return state, output[:, 0]

    state, outputs = jax.lax.scan(step, LAYER.make_state(2), X.swapaxes(0, 1))
    want, at_once = LAYER.apply(VARIABLES, X, LAYER.make_state(2))
    np.testing.assert_allclose(outputs.swapaxes(0, 1), want, atol=1e-6)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), state, at_once)
    assert not any(x.any() for x in jax.tree.leaves(state.reset()))


def test_jit_vmap_and_grad_match_plain_call() -> None:
    def read(X: jax.Array) -> jax.Array:
        return LAYER.apply(VARIABLES, X, chunk_size=3)

    def differentiate(X: jax.Array) -> jax.Array:
        return jax.grad(lambda X: (read(X) ** 2).sum())(X)

    for function in read, differentiate:
        want = function(X)
        mapped = jax.vmap(function)(X[:, None])[:, 0]
        for got in (jax.jit(function)(X), mapped):
            np.testing.assert_allclose(got, want, atol=1e-5)


def test_state_has_the_dtype_of_its_keys() -> None:
    half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), VARIABLES)
    state = LAYER.make_state(2, jnp.bfloat16)
    output, state = LAYER.apply(half, X.astype(jnp.bfloat16), state)
    assert output.dtype == state.kv.dtype == state.k.dtype == jnp.bfloat16
    with pytest.raises(TypeError, match="state, keys and values: got dtype bfloat16, float32"):
        LAYER.apply(VARIABLES, X, state)


def test_chunk_size_is_static() -> None:
    read = jax.jit(lambda size: LAYER.apply(VARIABLES, X, chunk_size=size))
    with pytest.raises(TypeError, match=r"chunk_size: got .*; need an integer of at least 1"):
        read(3)
