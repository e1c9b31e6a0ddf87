"""Tests of Transformer blocks in Keras models and graphs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras

TOKENS = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 0, 0]])
LENGTHS = np.array([5, 3])
MEMORY = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")
ALIBI = {"positions": "alibi", "window": 3, "num_sinks": 1, "num_kv_heads": 2}


def make_blocks(**options: Any) -> list[keras.layers.Layer]:
    return [d2l.TransformerBlock(8, 4, 12, **options) for _ in range(2)]


def make_decoder(positions: str = "sinusoidal", **options: Any) -> keras.layers.Layer:
    blocks = make_blocks(causal=True, cross_attention=True, **ALIBI)
    return d2l.BlockDecoder(7, blocks, positions=positions, **options)


def test_loaded_model_computes_same_for_any_batch_and_length(tmp_path: Path) -> None:
    encoder = d2l.BlockEncoder(7, make_blocks(norm="rms", positions="rope"), positions="learned")
    decoder = make_decoder()
    tokens, lens = keras.Input((None,), dtype="int64"), keras.Input((), dtype="int64")
    memory = encoder(tokens, lens)
    logits = decoder(tokens, memory=memory, memory_valid_lens=lens)
    model = keras.Model([tokens, lens], logits)
    file = tmp_path / "model.keras"
    model.save(file)
    loaded = keras.models.load_model(file)
    for size in 2, 1:
        batch, lengths = TOKENS[:size, : 3 + size], np.minimum(LENGTHS[:size], 3 + size)
        output = model([batch, lengths])
        np.testing.assert_array_equal(loaded([batch, lengths]), output)
        want = decoder(batch, memory=encoder(batch, lengths), memory_valid_lens=lengths)
        np.testing.assert_allclose(output, want, atol=1e-6)


def test_graph_equals_eager_call() -> None:
    decoder = make_decoder("learned")
    signature = [tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((None,), tf.int64)]

    @tf.function(input_signature=[*signature, tf.TensorSpec((None, None, 8))])
    def traced(tokens: tf.Tensor, lens: tf.Tensor, memory: tf.Tensor) -> tf.Tensor:
        return decoder(tokens, lens, memory=memory)

    want = decoder(TOKENS, LENGTHS, memory=MEMORY)
    np.testing.assert_allclose(traced(TOKENS, LENGTHS, MEMORY), want, atol=1e-6)


def test_caches_are_refused_in_a_graph() -> None:
    decoder = make_decoder()
    decoder(TOKENS, memory=MEMORY)
    caches = decoder.make_caches(2, 5)

    def call(tokens: Any) -> Any:
        return decoder(tokens, caches=caches, memory=MEMORY)

    for function, tokens in (
        (tf.function(call), TOKENS),
        (call, keras.Input((5,), dtype="int64")),
    ):
        with pytest.raises(RuntimeError, match="cache: it cannot be used in a graph"):
            function(tokens)
    assert [*caches[0].lengths] == [0, 0]


def test_model_with_too_many_positions_is_refused() -> None:
    decoder = make_decoder("learned", max_len=4)
    error = r"^X: got 5 positions; need at most max_len = 4"
    with pytest.raises(ValueError, match=error):
        decoder(keras.Input((5,), dtype="int64"), memory=keras.Input((4, 8)))
    assert decoder(TOKENS[1:], LENGTHS[1:], memory=MEMORY[1:]).shape == (1, 5, 7)  # only padding


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_half_precision(norm: str) -> None:
    exact, half = (
        d2l.TransformerBlock(8, 4, 12, norm=norm, causal=True, dtype=dtype, **ALIBI)
        for dtype in ("float32", "mixed_float16")
    )
    d2l.convert_weights(exact, half)
    X = 300 * MEMORY  # its squares overflow float16
    bias = np.ones((4, 4), "float32")
    for masks in {}, {"score_bias": bias}, {"cache": half.make_cache(2, 4)}:
        output = half(X, **masks)
        assert output.dtype == tf.float16
        masks.pop("cache", None)
        np.testing.assert_allclose(output, exact(X, **masks), rtol=1e-2, atol=1)
    assert half.norm1.weights[0].dtype == tf.float32


def test_training_drops_the_embedding() -> None:
    encoder = d2l.BlockEncoder(7, make_blocks(), dropout=1.0)
    assert np.ptp(encoder(TOKENS), axis=1).min() > 0
    assert not np.ptp(encoder(TOKENS, training=True), axis=1).any()  # nothing tells tokens apart
