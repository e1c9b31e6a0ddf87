"""Tests of causal self-attention in Keras models and graphs, and of its cache outside of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras

X = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
LENGTHS = np.array([3, 5])


def make(**options: Any) -> keras.layers.Layer:
    return d2l.CausalSelfAttention(8, 4, num_kv_heads=2, rope=True, window=3, **options)


def test_loaded_model_computes_same_for_any_batch_and_length(tmp_path: Path) -> None:
    layer = make(num_sinks=1)
    tokens, lengths = keras.Input((None, 8)), keras.Input((), dtype="int64")
    model = keras.Model([tokens, lengths], layer(tokens, lengths))
    file = tmp_path / "model.keras"
    model.save(file)
    loaded = keras.models.load_model(file)
    for batch in (X, X[:1, :2]):
        lens = np.minimum(LENGTHS[: len(batch)], batch.shape[1])
        output = model([batch, lens])
        np.testing.assert_array_equal(loaded([batch, lens]), output)
        np.testing.assert_allclose(output, layer(batch), atol=1e-6)
    assert loaded.count_params() == 8 * (8 + 4 + 4 + 8)


def test_graph_without_cache_equals_eager_call() -> None:
    layer = make()
    signature = [tf.TensorSpec((None, None, 8)), tf.TensorSpec((None,), tf.int64)]
    traced = tf.function(lambda X, lens: layer(X, lens), input_signature=signature)
    np.testing.assert_allclose(traced(X, LENGTHS), layer(X, LENGTHS), atol=1e-6)


def test_cache_is_refused_in_a_graph() -> None:
    layer = make()
    layer(X)
    cache = layer.make_cache(2, 5)
    calls = tf.function(lambda x: layer(x, cache=cache)), lambda x: layer(x, cache=cache)
    for call, x in zip(calls, (X, keras.Input((5, 8))), strict=True):
        with pytest.raises(RuntimeError, match="cache: it cannot be used in a graph"):
            call(x)
    assert [*cache.lengths] == [0, 0]


def test_gradients_do_not_flow_through_the_cache() -> None:
    layer, cache = make(), make().make_cache(2, 5)
    layer(X)
    first, second = tf.constant(X[:, :3]), tf.constant(X[:, 3:])
    with tf.GradientTape() as tape:
        tape.watch([first, second])
        layer(first, cache=cache)
        output = layer(second, None, cache)
    gradients = tape.gradient(output, [first, second])
    assert gradients[0] is None
    assert gradients[1].shape == second.shape


def test_cache_has_the_compute_dtype() -> None:
    layer = make(dtype="mixed_float16")
    cache = layer.make_cache(2, 5)
    assert layer(X, cache=cache).dtype == cache.keys.dtype == tf.float16
    with pytest.raises(TypeError, match=r"^cache, keys and values: got dtype float16, float32"):
        make()(X, cache=layer.make_cache(2, 5))
    with pytest.raises(TypeError, match="cache: got list; need a KVCache"):
        layer(X, cache=[])


def test_training_drops_weights() -> None:
    layer = make(dropout=1.0)
    assert not np.any(layer(X, training=True))
    assert np.any(layer(X))
