"""Tests that weights convert between the shim's layers and Keras's own, both ways."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import IS_KERAS_2, keras

rng = np.random.default_rng(0)
X, MEMORY = (rng.normal(size=(2, steps, 16)).astype("float32") for steps in (7, 5))
LENS = np.array([2, 5])
IS_REAL = np.arange(5) < LENS[:, None, None]


def convert_both_ways(
    ours: Any, own: Any, call_ours: Callable[..., Any], call_own: Callable[..., Any]
) -> None:
    """Check that each layer computes what the other did, once it has the other's weights."""
    call_own(own)  # its first call sets its sizes
    for source, target in ((ours, own), (own, ours)):
        d2l.convert_weights(source, target)  # our layer is made with all sizes
        for variable in source.trainable_variables:
            variable.assign(rng.normal(scale=0.5, size=variable.shape))
        want = np.asarray(call_ours(ours) if source is ours else call_own(own))
        d2l.convert_weights(source, target)
        got = np.asarray(call_own(own) if source is ours else call_ours(ours))
        np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("bias", [True, False])
def test_multi_head_attention(bias: bool) -> None:
    own = keras.layers.MultiHeadAttention(4, 4, use_bias=bias)
    causal = d2l.CausalSelfAttention(16, 4, bias=bias)
    convert_both_ways(
        causal, own, lambda layer: layer(X), lambda layer: layer(X, X, use_causal_mask=True)
    )
    ours = d2l.MultiHeadAttention(16, 16, 16, 16, 4, 0.0, bias)
    convert_both_ways(
        ours,
        own,
        lambda layer: layer(X, MEMORY, MEMORY, LENS),
        lambda layer: layer(X, MEMORY, attention_mask=np.tile(IS_REAL, (1, 7, 1))),
    )


@pytest.mark.skipif(IS_KERAS_2, reason="Keras 2 has no grouped-query attention")
@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_grouped_query_attention(num_kv_heads: int) -> None:
    own = keras.layers.GroupQueryAttention(4, 4, num_kv_heads)
    ours = d2l.CausalSelfAttention(16, 4, bias=True, num_kv_heads=num_kv_heads)
    convert_both_ways(
        ours, own, lambda layer: layer(X), lambda layer: layer(X, X, use_causal_mask=True)
    )


def test_attention_of_a_block() -> None:
    own = keras.layers.MultiHeadAttention(4, 4)
    block = d2l.TransformerBlock(16, 4, 24, causal=True, cross_attention=True)
    block(X, memory=MEMORY)
    for part in block.attention, block.cross_attention:
        call = (lambda x: x(X)) if part is block.attention else (lambda x: x(X, X, X, causal=True))
        convert_both_ways(part, own, call, lambda layer: layer(X, X, use_causal_mask=True))


def test_encoder_of_blocks() -> None:
    def make(positions: str | None) -> keras.layers.Layer:
        return d2l.BlockEncoder(7, [d2l.TransformerBlock(16, 4, 24)], positions=positions)

    def call(layer: keras.layers.Layer) -> Any:
        return layer(np.array([[1, 2, 3], [4, 5, 6]]))

    convert_both_ways(make("learned"), make("learned"), call, call)
    with pytest.raises(ValueError, match=r"with embedding positions=None; need .*'sinusoidal', as"):
        d2l.convert_weights(make("sinusoidal"), make(None))


def test_layers_that_cannot_be_converted() -> None:
    ours = d2l.CausalSelfAttention(16, 4, bias=True)
    for lazy in keras.layers.MultiHeadAttention(4, 4), d2l.MultiHeadAttention(16, 4, 0.0):
        with pytest.raises(ValueError, match=r"^layer: got one that has yet to take a size"):
            d2l.convert_weights(ours, lazy)
    for own, error in [
        (keras.layers.MultiHeadAttention(2, 8), "num_heads=2; need num_heads=4, as in the source"),
        (keras.layers.MultiHeadAttention(4, 4, 8), "whose W_v.weight has the shape"),
        (keras.layers.MultiHeadAttention(4, 4, use_bias=False), r"without W_.\.bias; need one, as"),
    ]:
        own(X, X)
        for variable in ours.trainable_variables:
            variable.assign(variable + 1)
        with pytest.raises(ValueError, match=f"^target: got a layer .*{error}"):
            d2l.convert_weights(ours, own)
    with pytest.raises(TypeError, match=r"^target: got Dense; need a TransformerBlock or "):
        d2l.convert_weights(ours, keras.layers.Dense(3))
