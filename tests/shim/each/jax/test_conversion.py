"""Tests that weights convert between the shim's attention layers and Flax's own, both ways."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from d2l_compat import jax as d2l

X, MEMORY = (jax.random.normal(jax.random.key(n), (2, n, 16)) for n in (7, 5))
CAUSAL = nn.make_causal_mask(X[..., 0])
OWN = nn.MultiHeadDotProductAttention(4, deterministic=True)


def randomize(params: Any) -> Any:
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda x: jnp.asarray(rng.normal(0, 0.5, x.shape), x.dtype), params)


@pytest.mark.parametrize("bias", [False, True])
def test_causal_attention(bias: bool) -> None:
    ours, own = d2l.CausalSelfAttention(16, 4, 0.5, bias), OWN.copy(use_bias=bias, dropout_rate=0.5)
    params = randomize(ours.init(jax.random.key(0), X)["params"])
    own_params = d2l.convert_weights(ours, own, params)
    got = own.apply({"params": own_params}, X, mask=CAUSAL)
    np.testing.assert_allclose(got, ours.apply({"params": params}, X), atol=1e-4)
    back = d2l.convert_weights(own, ours, own_params)
    jax.tree.map(np.testing.assert_array_equal, back, params)


@pytest.mark.parametrize("sizes", [(), (5, 16, 5)], ids=str)
def test_attention_to_memory(sizes: tuple[int, ...]) -> None:
    ours, own = (
        d2l.MultiHeadAttention(*sizes, 8, 4, 0.5, True),
        OWN.copy(qkv_features=8, out_features=8),
    )
    memory = MEMORY[..., :5]
    params = randomize(own.init(jax.random.key(0), X, memory)["params"])
    our_params = d2l.convert_weights(own, ours, params)
    got, _ = ours.apply({"params": our_params}, X, memory, memory)
    np.testing.assert_allclose(got, own.apply({"params": params}, X, memory), atol=1e-4)
    back = d2l.convert_weights(ours, own, our_params)
    jax.tree.map(np.testing.assert_array_equal, back, params)


def test_attention_of_nnx_has_the_same_parameters() -> None:
    ours = d2l.CausalSelfAttention(16, 4, bias=True)
    params = randomize(ours.init(jax.random.key(0), X)["params"])
    layer = nnx.MultiHeadAttention(4, 16, decode=False, rngs=nnx.Rngs(0))
    nnx.update(layer, d2l.convert_weights(ours, OWN, params))
    want = ours.apply({"params": params}, X)
    np.testing.assert_allclose(layer(X, mask=CAUSAL), want, atol=1e-4)


def test_result_has_the_dtype_of_the_parameters() -> None:
    ours = d2l.CausalSelfAttention(16, 4, bias=True)
    params = ours.init(jax.random.key(0), X)["params"]
    half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
    assert {x.dtype for x in jax.tree.leaves(d2l.convert_weights(ours, OWN, half))} == {
        jnp.dtype(jnp.bfloat16)
    }


def test_layers_that_cannot_be_converted() -> None:
    ours, block = d2l.CausalSelfAttention(16, 4), d2l.TransformerBlock(16, 4, 24)
    variables = ours.init(jax.random.key(0), X)
    with pytest.raises(ValueError, match=r"^params: got parameters without 'W_q'; need variables"):
        d2l.convert_weights(ours, OWN, variables)
    with pytest.raises(ValueError, match=r"^target: got TransformerBlock; need an attention layer"):
        d2l.convert_weights(ours, block, variables["params"])
    with pytest.raises(ValueError, match=r"^layer: got an nn.MultiHeadDotProductAttention with no"):
        d2l.convert_weights(ours, OWN.copy(normalize_qk=True), variables["params"])
    with pytest.raises(
        ValueError, match=r"^target: got a layer whose W_k.weight has the shape \(8"
    ):
        d2l.convert_weights(
            ours, d2l.MultiHeadAttention(8, 16, 16, 16, 4, 0.0), variables["params"]
        )
