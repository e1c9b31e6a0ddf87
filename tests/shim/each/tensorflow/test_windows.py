"""Tests of attention within a window in Keras models and graphs, with dropout, and of its memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras

X = np.random.default_rng(0).normal(size=(2, 150, 8)).astype("float32")
LENGTHS = np.array([120, 150])


@pytest.mark.parametrize("num_steps", [150, None], ids=["known length", "any length"])
def test_loaded_model_computes_same(tmp_path: Path, num_steps: int | None) -> None:
    tokens, lengths = keras.Input((num_steps, 8)), keras.Input((), dtype="int64")
    attention = d2l.MultiHeadAttention(8, 2, 0.1)
    attended = attention(tokens, tokens, tokens, lengths, window=5)
    causal = d2l.CausalSelfAttention(8, 4, window=5, num_sinks=2)
    model = keras.Model([tokens, lengths], [attended, causal(tokens)])
    file = tmp_path / "model.keras"
    model.save(file)
    outputs = model([X, LENGTHS])
    for got, want in zip(keras.models.load_model(file)([X, LENGTHS]), outputs, strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(attention(X, X, X, LENGTHS, window=5), outputs[0], atol=1e-6)
    np.testing.assert_allclose(causal(X), outputs[1], atol=1e-6)


LONG = tf.TensorSpec((1, 2048, 8))


@pytest.mark.parametrize(
    "layer",
    [
        d2l.DotProductAttention(0.5),
        d2l.CausalSelfAttention(8, 2, 0.5, window=5, num_sinks=2),
        d2l.LinearAttention(8, 2),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_no_tensor_has_size_of_full_matrix(layer: keras.layers.Layer) -> None:
    is_dot_product = isinstance(layer, d2l.DotProductAttention)
    options: dict[str, Any] = {} if isinstance(layer, d2l.LinearAttention) else {"training": True}

    @tf.function(input_signature=[LONG])
    def differentiate(X: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(X)
            output = layer(X, X, X, window=5, **options) if is_dot_product else layer(X, **options)
        return tape.gradient(output, X)

    operations = differentiate.get_concrete_function().graph.get_operations()
    shapes = [x.shape for operation in operations for x in operation.outputs]
    sizes = [shape.num_elements() for shape in shapes if shape.is_fully_defined()]
    assert len(sizes) > 100
    assert max(sizes) < 2048**2 / 4


def test_dropout_applies_in_blocks() -> None:
    identity = np.eye(150, dtype="float32")[np.newaxis].repeat(2, axis=0)
    layer = d2l.DotProductAttention(0.25)
    used = layer(X, X, identity, window=40, training=True).numpy()
    seen = layer.attention_weights.numpy() > 0
    assert (used[~seen] == 0).all()
    assert (used[seen] == 0).mean() == pytest.approx(0.25, abs=0.03)


def test_more_sinks_than_tokens() -> None:
    layer = d2l.CausalSelfAttention(8, 2, window=3, num_sinks=200)
    want = d2l.CausalSelfAttention(8, 2)
    want(X)
    layer(X)
    want.set_weights(layer.get_weights())
    np.testing.assert_allclose(layer(X), want(X), atol=1e-6)


def test_long_text_is_causal_without_full_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = d2l.CausalSelfAttention(8, 4, num_kv_heads=2)
    want = layer(X)
    monkeypatch.setattr("d2l_compat.tensorflow._blockwise.MIN_QUERIES", 3)
    np.testing.assert_allclose(layer(X), want, atol=1e-6)
