"""Tests of linear attention in Keras models and graphs, and of its state."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras

X = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")


def make(**options: object) -> keras.layers.Layer:
    return d2l.LinearAttention(8, 2, decay=[1.0, 0.5], **options)


def test_loaded_model_computes_same(tmp_path: Path) -> None:
    tokens = keras.Input((5, 8))
    layer = make(bias=True)
    model = keras.Model(tokens, layer(tokens, chunk_size=2))
    file = tmp_path / "model.keras"
    model.save(file)
    output = model(X)
    np.testing.assert_array_equal(keras.models.load_model(file)(X), output)
    np.testing.assert_allclose(output, layer(X), atol=1e-6)
    assert model.count_params() == 4 * (8 * 8 + 8)


def test_graph_updates_state() -> None:
    layer = make()
    state = layer.make_state(2)
    want = layer(X)
    read = tf.function(lambda X: layer(X, state=state, chunk_size=2))
    parts = [read(X[:, i : i + 1]) for i in range(5)]
    np.testing.assert_allclose(tf.concat(parts, axis=1), want, atol=1e-6)
    sums = state.kv.numpy()
    state.reset()
    np.testing.assert_allclose(read(X), want, atol=1e-6)
    np.testing.assert_allclose(state.kv, sums, atol=1e-6)


def test_graph_needs_number_of_steps() -> None:
    need = "X: got an unknown number of steps; need a known one in a graph"
    with pytest.raises(ValueError, match=need):
        make()(keras.Input((None, 8)))


def test_model_cannot_have_a_state() -> None:
    layer = make()
    with pytest.raises(TypeError, match="X, with a state: got a symbolic tensor; need a tensor"):
        layer(keras.Input((5, 8)), state=layer.make_state(2))


def test_gradients_do_not_flow_through_the_state() -> None:
    layer = make()
    state = layer.make_state(2)
    first, second = tf.constant(X[:, :3]), tf.constant(X[:, 3:])
    with tf.GradientTape() as tape:
        tape.watch([first, second])
        layer(first, state=state)
        output = layer(second, state=state)
    gradients = tape.gradient(output, [first, second])
    assert gradients[0] is None
    assert gradients[1].shape == second.shape


@pytest.mark.parametrize("policy", ["mixed_float16", "bfloat16"])
def test_state_has_the_compute_dtype(policy: str) -> None:
    layer = make(dtype=policy)
    state = layer.make_state(2)
    assert layer(X, state=state).dtype == state.kv.dtype == policy.removeprefix("mixed_")
    with pytest.raises(TypeError, match=r"^state, keys and values: got dtype .*float16, float32"):
        make()(X, state=state)
