"""Tests of features that only TensorFlow has: Keras models and their files, graphs, and a quiet start."""

import copy
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow import _blockwise
from d2l_compat.tensorflow._keras import keras
from d2l_compat.tensorflow._start import suppress_log
from d2l_compat.tensorflow.training import Update
from tests.shim.each.calls import find_signature
from tests.shim.each.test_training import write_fashion_mnist

X = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
LENGTHS = np.array([3, 1])
BIAS = np.random.default_rng(1).normal(size=(2, 2, 3, 3)).astype("float32")
BIAS[..., 1, :] = -np.inf
ANY_INPUT = tf.TensorSpec((None, None, 8))

LayerCall = tuple[type, tuple[Any, ...], dict[str, Any]]


def layer_call(kind: type, *args: Any, **kwargs: Any) -> LayerCall:
    return kind, args, kwargs


ROTARY = {"base": 500.0, "layout": "halves", "position_scale": 0.5}
LAYERS: dict[str, LayerCall] = {
    "short": layer_call(d2l.MultiHeadAttention, 8, 2, 0.5),
    "long": layer_call(d2l.MultiHeadAttention, 5, 6, 7, 8, 2, 0.5, True),
    "dot product": layer_call(d2l.DotProductAttention, 0.25),
    "encoding": layer_call(d2l.PositionalEncoding, 7, 0.25, 20),
    "rotary": layer_call(d2l.RotaryEncoding, 6, 20, **ROTARY),
    "causal": layer_call(
        d2l.CausalSelfAttention, 8, 4, 0.5, num_kv_heads=2, rope=True, window=3, num_sinks=1
    ),
    "linear": layer_call(d2l.LinearAttention, 8, 2, True, decay=(1.0, 0.5)),
    "additive": layer_call(d2l.AdditiveAttention, 8, 0.5),
    "additive, long": layer_call(d2l.AdditiveAttention, 5, 6, 8, 0.5),
    "position-wise": layer_call(d2l.PositionWiseFFN, 5, 6, 7),
    "add and norm": layer_call(d2l.AddNorm, [1, 2], 0.5),
    "block": layer_call(d2l.TransformerEncoderBlock, 8, 8, 8, 8, [2], 16, 2, 0.5, True),
    "encoder": layer_call(d2l.TransformerEncoder, 7, 8, 16, 2, 2, 0.5),
    "recurrent": layer_call(d2l.GRU, 4, 2, 0.5),
    "recurrent encoder": layer_call(d2l.Seq2SeqEncoder, 7, 6, 4, 2, 0.5),
}
TOKENS = np.array([[1, 2, 3], [6, 5, 4]], "int32")


def make_model(max_len: int) -> keras.Model:
    """Make a model of encoding and attention, for any batch size and length."""
    tokens, lengths = keras.Input((None, 8)), keras.Input((), dtype="int64")
    encoded = d2l.PositionalEncoding(8, 0.1, max_len)(tokens)
    attended = d2l.MultiHeadAttention(8, 2, 0.1)(encoded, encoded, encoded, lengths)
    return keras.Model([tokens, lengths], attended)


@pytest.mark.parametrize(("kind", "args", "kwargs"), LAYERS.values(), ids=LAYERS)
def test_layer_round_trips_through_config(
    kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    arguments = find_signature(kind, args).bind(*args).arguments | kwargs
    layer = kind(*args, **kwargs, name="one", dtype="mixed_float16")
    config = layer.get_config()
    copied = kind.from_config(config)
    assert {**config, **arguments} == config == copied.get_config()
    assert (copied.name, copied.dtype_policy.name) == ("one", "mixed_float16")
    assert [w.shape for w in copied.weights] == [w.shape for w in layer.weights]


def test_loaded_model_computes_same(tmp_path: Path) -> None:
    model = make_model(max_len=10)
    file = tmp_path / "model.keras"
    model.save(file)
    loaded_model = keras.models.load_model(file)
    np.testing.assert_array_equal(loaded_model([X, LENGTHS]), model([X, LENGTHS]))
    assert loaded_model.count_params() == 4 * 8 * 8


@pytest.mark.parametrize("axes", [1, 2, 3])  # of the bias, besides the batch axis, which Keras adds
def test_loaded_model_with_masks_computes_same(tmp_path: Path, axes: int) -> None:
    tokens, lengths = keras.Input((None, 8)), keras.Input((), dtype="int64")
    bias = keras.Input((None,) * axes)
    rotated = d2l.RotaryEncoding(8, 10)(tokens)
    attention = d2l.MultiHeadAttention(8, 2, 0.1)
    attended = attention(rotated, rotated, tokens, lengths, causal=True, score_bias=bias)
    model = keras.Model([tokens, lengths, bias], attended)
    file = tmp_path / "model.keras"
    model.save(file)
    inputs = [X, LENGTHS, BIAS[(0,) * (3 - axes)]]
    np.testing.assert_array_equal(keras.models.load_model(file)(inputs), model(inputs))
    rotated = d2l.RotaryEncoding(8, 10)(X)
    eager = attention(rotated, rotated, X, LENGTHS, causal=True, score_bias=inputs[-1])
    np.testing.assert_allclose(model(inputs), eager, atol=1e-6)


@pytest.mark.parametrize("kind", ["encoder", "recurrent encoder"])
def test_loaded_encoder_computes_same(tmp_path: Path, kind: str) -> None:
    Encoder, args, _ = LAYERS[kind]
    tokens = keras.Input((None,), dtype="int32")
    file = tmp_path / "model.keras"
    model = keras.Model(tokens, Encoder(*args)(tokens))
    model.save(file)
    outputs = tf.nest.flatten(keras.models.load_model(file)(TOKENS))
    for got, want in zip(outputs, tf.nest.flatten(model(TOKENS)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_encoder_traces_for_any_batch_and_length() -> None:
    encoder = d2l.TransformerEncoder(7, 8, 16, 2, 2, 0.0)
    signature = [tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int64)]
    encode = tf.function(lambda X, lengths: encoder(X, lengths), input_signature=signature)
    expected = encoder(TOKENS, LENGTHS)
    np.testing.assert_allclose(encode(TOKENS, LENGTHS), expected, atol=1e-5)


def test_heads_and_masks_work_without_static_shapes() -> None:
    signature = [ANY_INPUT, tf.TensorSpec((None,), tf.int64)]

    @tf.function(input_signature=signature)
    def apply(X: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        heads = d2l.transpose_qkv(X, 2)
        return d2l.transpose_output(heads, 2), d2l.sequence_mask(X, lengths)

    merged, masked = apply(X, LENGTHS)
    np.testing.assert_array_equal(merged, X)
    np.testing.assert_array_equal(masked, d2l.sequence_mask(X, LENGTHS))


@pytest.mark.parametrize("norm_shape", [8, [8], [2, 3], -4])
def test_norm_shape_means_axes(norm_shape: Any) -> None:
    """Test that sizes are rejected: unlike in PyTorch, ``norm_shape`` lists the axes to normalize."""
    with pytest.raises(ValueError, match=r"norm_shape: got .*; need axes of X, from -3 to 2"):
        d2l.AddNorm(norm_shape, 0.0)(X, X)


def test_several_axes_are_normalized_together() -> None:
    normalized = d2l.AddNorm((1, 2), 0.0)(X, X).numpy()
    np.testing.assert_allclose(normalized.mean(axis=(1, 2)), 0, atol=1e-6)
    assert np.abs(normalized.mean(axis=2)).max() > 0.1


def test_state_of_recurrent_layer_may_be_list() -> None:
    """Test a list, as the layer returns it; a shared test covers a stacked tensor."""
    layer = d2l.GRU(4, 2)
    x = X.swapaxes(0, 1)
    _, state = layer(x)
    assert [h.shape for h in state] == [(2, 4)] * 2
    for ours, stacked in zip(layer(x, state), layer(x, tf.stack(state)), strict=True):
        np.testing.assert_array_equal(ours, stacked)


class DropoutModule(d2l.Module):
    """A module with dropout that records its training flag."""

    def __init__(self) -> None:
        super().__init__()
        self.net = keras.layers.Dropout(0.5)
        self.flags: list[Any] = []

    def forward(self, X: tf.Tensor) -> tf.Tensor:
        self.flags.append(self.training)
        return self.net(X)


def test_module_training_flag_is_respected() -> None:
    module = DropoutModule()
    drops = []
    for training in (None, True, False):
        module.training = training
        calls = ({}, {"training": True}, {"training": False})
        drops += [bool((module(X, **call).numpy() == 0).any()) for call in calls]
        assert module.training is training
    assert drops == [False, True, False, True, True, False, False, True, False]
    assert module.flags == [None, True, False, True, True, False, False, True, False]


class ScratchModel(d2l.Module):
    """A model from scratch as D2L writes it, made of variables, one of them in a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.lr = 0.1
        self.W = tf.Variable([[1.0], [2.0]])
        self.more = {1: [tf.Variable([3.0])], "b": tf.Variable([4.0], trainable=False)}
        self.part = d2l.Module()
        self.part.scale = tf.Variable([2.0])
        self.dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")

    def forward(self, X: tf.Tensor) -> tf.Tensor:
        return self.part.scale * self.dense(X @ self.W) + self.more[1][0] + self.more["b"]

    def loss(self, Y_hat: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(Y_hat - Y)


class OneBatchData(d2l.DataModule):
    def __init__(self) -> None:
        super().__init__()
        self.batch_size = 1

    def get_dataloader(self, train: bool) -> tf.data.Dataset:
        return self.get_tensorloader((tf.constant([[1.0, 3.0]]), tf.constant([[0.0]])), train)


@pytest.mark.parametrize("frozen", [False, True])
def test_variables_outside_layers_are_trained(frozen: bool) -> None:
    model = ScratchModel()
    model.part.trainable = not frozen
    d2l.Trainer(max_epochs=1).fit(model, OneBatchData())
    # X W = 7. For the scale s = 2, the gradients are s X, 1, 7 and, for the kernel, 7 s.
    assert model.W.numpy().ravel().tolist() == pytest.approx([1 - 0.2, 2 - 0.6])
    assert float(model.more[1][0][0]) == pytest.approx(3 - 0.1)
    assert float(model.more["b"][0]) == 4
    assert float(model.part.scale[0]) == pytest.approx(2 if frozen else 2 - 0.7)
    assert float(model.dense.kernel[0, 0]) == pytest.approx(1 - 1.4)
    assert len(model.trainable_variables) == 3 + (not frozen)


def test_module_is_keras_model() -> None:
    module = DropoutModule()
    module.compile(loss="mse")
    assert module.evaluate(X, X, verbose=0) == 0


class TokenEncoder(d2l.Encoder):
    """An encoder as D2L writes it, with additional positional arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = keras.layers.Embedding(7, 4)

    def call(self, X: tf.Tensor, *args: Any) -> tf.Tensor:
        return self.embedding(X)


class TokenDecoder(d2l.Decoder):
    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(7)

    def init_state(self, enc_all_outputs: tf.Tensor, *args: Any) -> list[Any]:
        return [enc_all_outputs, None]

    def call(self, X: tf.Tensor, state: list[Any]) -> tuple[tf.Tensor, list[Any]]:
        return self.dense(state[0]), state


@pytest.mark.filterwarnings("error::UserWarning")
def test_calling_models_emits_no_warning(tmp_path: Path) -> None:
    models = [d2l.Seq2Seq(TokenEncoder(), TokenDecoder(), 0, 0.1) for _ in range(2)]
    outputs = [model(TOKENS, TOKENS, LENGTHS) for model in models]
    file = tmp_path / "model.weights.h5"
    models[0].save_weights(file)
    models[1].load_weights(file)
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3
    np.testing.assert_array_equal(models[1](TOKENS, TOKENS, LENGTHS), outputs[0])


def test_custom_module_may_define_build() -> None:
    class Scaled(d2l.Module):
        def build(self, X_shape: Any) -> None:
            self.scale = self.add_weight(shape=(X_shape[-1],), initializer="ones")

        def forward(self, X: tf.Tensor) -> tf.Tensor:
            return X * self.scale

    np.testing.assert_array_equal(Scaled()(X), X)


def test_repeated_token_counts_once_in_gradient_norm() -> None:
    table = tf.Variable([[1.0], [1.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [0, 0, 0]))
    gradient = tape.gradient(loss, table)
    (clipped,) = d2l.Trainer(1).clip_gradients(1, [gradient])
    np.testing.assert_allclose(clipped, [[1.0], [0.0]])


def test_compiled_step_matches_keras_step() -> None:
    """Test also sparse gradients, a frozen layer, and another optimizer."""

    def train(update: Any) -> list[np.ndarray]:
        start = np.arange(12, dtype="float32").reshape(6, 2) / 12
        table, weight = keras.Variable(start), keras.Variable(start.T)
        parameters = [table, weight]
        adam, descent = keras.optimizers.Adam(0.1), keras.optimizers.SGD(0.1, momentum=0.9)
        for optimizer, variables in [
            (adam, parameters),
            (adam, [weight]),
            (descent, parameters),
            (adam, parameters),
        ]:
            for tokens in ([0, 2, 2], [5, 1, 1, 2]) * Update.EAGER_STEPS:
                with tf.GradientTape() as tape:
                    rows = tf.gather(table.value, tokens)
                    loss = tf.reduce_sum(tf.sin(rows @ weight.value))
                gradients = tape.gradient(loss, [v.value for v in variables])
                update(optimizer, gradients, variables)
        return [v.numpy() for v in parameters]

    eager = train(lambda optimizer, g, v: optimizer.apply_gradients(zip(g, v, strict=True)))
    for ours, theirs in zip(train(Update()), eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_custom_optimizer_steps_in_python() -> None:
    class Descent:
        steps = 0

        def apply_gradients(self, pairs: Any) -> None:
            self.steps += 1
            for gradient, variable in pairs:
                variable.assign_sub(0.5 * gradient)

    weight = tf.Variable([1.0, 2.0])
    update = Update()
    descent = Descent()
    steps = Update.EAGER_STEPS + 2  # enough for Keras's optimizers to be compiled
    for _ in range(steps):
        update(descent, [tf.constant([1.0, -1.0])], [weight])
    assert descent.steps == steps
    np.testing.assert_allclose(weight.numpy(), [1 - steps / 2, 2 + steps / 2])


def test_keras_optimizer_steps_in_python_only_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = keras.Variable([1.0, 2.0])
    update = Update()
    descent = keras.optimizers.SGD(0.5)
    calls = []
    original = descent.apply_gradients
    monkeypatch.setattr(descent, "apply_gradients", lambda pairs: calls.append(original(pairs)))
    for _ in range(Update.EAGER_STEPS + 5):
        update(descent, [tf.constant([1.0, -1.0])], [weight])
    assert len(calls) == Update.EAGER_STEPS + 1, "the last one is traced"


def test_epochs_can_be_run_by_hand() -> None:
    class Line(d2l.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lr, self.net = 0.1, keras.layers.Dense(1)

        def loss(self, Y_hat: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            return tf.reduce_mean((Y_hat - Y) ** 2)

    class Points(d2l.DataModule):
        batch_size = 4

        def get_dataloader(self, train: bool) -> tf.data.Dataset:
            X = tf.reshape(tf.range(8.0) / 8, (8, 1))
            return self.get_tensorloader((X, 2 * X + 1), train)

    class ByHand(d2l.Trainer):
        def fit(self, model: Any, data: Any) -> None:  # as D2L's page writes it
            self.prepare_data(data)
            self.prepare_model(model)
            self.optim = model.configure_optimizers()
            self.epoch = self.train_batch_idx = self.val_batch_idx = 0
            for self.epoch in range(self.max_epochs):  # noqa: B020
                self.fit_epoch()

    model = Line()
    ByHand(max_epochs=20).fit(model, Points())
    losses = [loss for _, loss in model.board.data["val_loss"]]
    assert losses[-1] < losses[0] / 4


@pytest.mark.parametrize("with_layer", [True, False])
def test_keras_model_is_trained(with_layer: bool) -> None:
    """Train a model that inherits from Keras's class, with a method ``loss`` and perhaps variables of its own."""

    class Line(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.net = keras.layers.Dense(1) if with_layer else None
            self.w = None if with_layer else tf.Variable([[0.0]])

        def call(self, X: Any) -> Any:
            return self.net(X) if self.net else X * self.w

        def loss(self, y_hat: Any, y: Any) -> Any:
            return tf.reduce_mean((y_hat - y) ** 2)

        def training_step(self, batch: Any) -> Any:
            return self.loss(self(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return keras.optimizers.SGD(0.3)

    X = np.linspace(-1, 1, 16, dtype="float32").reshape(-1, 1)
    batches = tf.data.Dataset.from_tensor_slices((X, 3 * X)).batch(8)
    loaders = SimpleNamespace(train_dataloader=lambda: batches, val_dataloader=lambda: None)
    model = Line()
    d2l.Trainer(max_epochs=20).fit(model, loaders)
    np.testing.assert_allclose(model(X), 3 * X, atol=0.1)


def test_images_of_other_shape_are_padded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = write_fashion_mnist(d2l, tmp_path, monkeypatch)["t10k"]
    data = d2l.FashionMNIST(batch_size=4, resize=(28, 32))
    X, y = next(iter(data.val_dataloader()))
    np.testing.assert_allclose(X[:, :, 2:-2, 0], images[:4] / 255, atol=1e-6)
    assert not X.numpy()[:, :, [0, 1, -2, -1]].any()
    assert (X.dtype, y.dtype) == (tf.float32, tf.int32)
    assert [array.shape for array in data.val] == [(8, 28, 28), (8,)]


def test_subclass_of_rnn_may_set_its_layer() -> None:
    class LSTM(d2l.RNN):
        """A subclass as on D2L's page, which does not call RNN's __init__."""

        def __init__(self) -> None:
            d2l.Module.__init__(self)
            self.rnn = keras.layers.LSTM(4, return_sequences=True, return_state=True)

    inputs = np.linspace(-1, 1, 30, dtype="float32").reshape(5, 2, 3)
    model = LSTM()
    outputs, state = model(inputs)
    want, *last = model.rnn(inputs.transpose(1, 0, 2))
    np.testing.assert_allclose(outputs, np.transpose(want, (1, 0, 2)), atol=1e-6)
    np.testing.assert_allclose(state, last, atol=1e-6)


def test_layer_can_be_copied_after_call_in_graph() -> None:
    layer = d2l.MultiHeadAttention(8, 2, 0.5)
    output = tf.function(layer)(X, X, X)
    np.testing.assert_allclose(copy.deepcopy(layer)(X, X, X), output, atol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "XLA"])
@pytest.mark.parametrize(
    "spec",
    [None, tf.TensorSpec((None,), tf.int64), tf.TensorSpec((2,), tf.int64)],
    ids=["known shapes", "unknown shapes", "only lengths known"],
)
def test_graph_matches_eager_call(spec: tf.TensorSpec | None, jit_compile: bool) -> None:
    layer = d2l.MultiHeadAttention(8, 2, 0.5)
    signature = None if spec is None else [ANY_INPUT, spec]

    @tf.function(input_signature=signature, jit_compile=jit_compile)
    def attend(X: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return layer(X, X, X, lengths), layer.attention_weights

    for got, want in zip(
        attend(X, LENGTHS), (layer(X, X, X, LENGTHS), layer.attention_weights), strict=True
    ):
        np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize(
    "jit_compile",
    [pytest.param(False, id="graph"), pytest.param(True, id="XLA", marks=pytest.mark.release)],
)
@pytest.mark.parametrize("has_static_shapes", [True, False], ids=["known shapes", "unknown shapes"])
@pytest.mark.parametrize("bias", [BIAS[0, 0], BIAS[0], BIAS], ids=np.ndim)
def test_masks_in_graph_match_eager_call(
    bias: np.ndarray, has_static_shapes: bool, jit_compile: bool
) -> None:
    layer = d2l.MultiHeadAttention(8, 2, 0.5)
    lengths = tf.TensorSpec((None,), tf.int64)
    signature = [ANY_INPUT, lengths, tf.TensorSpec((None,) * bias.ndim)]

    @tf.function(input_signature=None if has_static_shapes else signature, jit_compile=jit_compile)
    def attend(X: tf.Tensor, lengths: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        output = layer(X, X, X, lengths, causal=True, score_bias=bias)
        return output, layer.attention_weights

    got = attend(X, LENGTHS, bias)
    output = layer(X, X, X, LENGTHS, causal=True, score_bias=bias)
    for ours, eager in zip(got, (output, layer.attention_weights), strict=True):
        np.testing.assert_allclose(ours, eager, atol=1e-6)


@pytest.mark.parametrize("queries", [2, None])
@pytest.mark.parametrize("keys", [3, None])
def test_last_query_sees_last_key_in_graph(queries: int | None, keys: int | None) -> None:
    layer = d2l.DotProductAttention(0.0)
    signature = [tf.TensorSpec((2, steps, 8)) for steps in (queries, keys)]
    attend = tf.function(lambda Q, K: layer(Q, K, K, causal=True), input_signature=signature)
    eager = layer(X[:, :2], X, X, causal=True)
    np.testing.assert_allclose(attend(X[:, :2], X), eager, atol=1e-6)


def test_graph_weights_cannot_be_read_outside() -> None:
    network = make_model(max_len=10)
    network.predict([X, LENGTHS], verbose=0)
    with pytest.raises(AttributeError, match="in the graph of the last call"):
        _ = network.layers[-1].attention_weights
    network([X, LENGTHS])
    assert network.layers[-1].attention_weights.shape == (2, 2, 3, 3)


def test_traced_graph_keeps_weights_of_last_eager_call() -> None:
    layer = d2l.MultiHeadAttention(8, 2, 0.5)
    other = X[:, ::-1]
    graph = tf.function(lambda X: layer(X, X, X))
    graph(X)
    layer(other, other, other)
    weights = layer.attention_weights
    graph(X)
    np.testing.assert_array_equal(layer.attention_weights, weights)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((None, 7), r"shape \(None, None, 7\); need a last dimension of 8"),
        ((8,), r"shape \(None, 8\); need 3 dimensions"),
    ],
)
def test_functional_model_is_checked_when_built(shape: tuple, message: str) -> None:
    layer = d2l.MultiHeadAttention(8, 8, 8, 8, 2, 0.5)
    tokens = keras.Input((None, 8))
    with pytest.raises(ValueError, match=f"^queries: got {message}"):
        layer(keras.Input(shape), tokens, tokens)


ENCODINGS = {
    "encoding": lambda: d2l.PositionalEncoding(8, 0.0, max_len=10),
    "rotary": lambda: d2l.RotaryEncoding(8, 10),
    "rotary, halves": lambda: d2l.RotaryEncoding(8, 10, layout="halves"),
}
every_encoding = pytest.mark.parametrize("make", ENCODINGS.values(), ids=ENCODINGS)


@every_encoding
def test_offset_may_be_tensor_of_graph(make: Callable[[], keras.layers.Layer]) -> None:
    layer = make()
    encode = tf.function(lambda X, offset: layer(X, offset=offset))
    np.testing.assert_array_equal(encode(X, tf.constant(7)), layer(X, 7))
    for outside in (10, -1):
        with pytest.raises(tf.errors.InvalidArgumentError):
            encode(X[:, :1], tf.constant(outside))


@every_encoding
def test_layer_created_in_graph_works_outside(make: Callable[[], Any]) -> None:
    layers = []

    @tf.function
    def encode(X: tf.Tensor) -> tf.Tensor:
        layers.append(make())
        return layers[0](X)

    np.testing.assert_array_equal(encode(X), layers[0](X))


@pytest.mark.parametrize("policy", ["float16", "bfloat16", "mixed_float16", "float64"])
def test_layers_compute_in_dtype_of_their_policy(policy: str) -> None:
    encoding = d2l.PositionalEncoding(8, 0.5, dtype=policy)
    attention = d2l.MultiHeadAttention(8, 2, 0.5, dtype=policy)
    encoded = encoding(X)
    attention(encoded, encoded, encoded, LENGTHS, training=True)
    dtype = policy.removeprefix("mixed_")
    assert encoded.dtype == attention.attention_weights.dtype == encoding.P.dtype == dtype
    rotary = d2l.RotaryEncoding(8, dtype=policy)
    assert attention(X, X, X, score_bias=BIAS).dtype == rotary(X).dtype == rotary.P.dtype == dtype
    attention(encoded, encoded, encoded, LENGTHS, training=True)
    assert encoding.P[0, :, 6:8].T.shape == (2, 1000)
    weights = attention.attention_weights.numpy()
    assert (weights[1, :, :, 1:] == 0).all()


def test_fit_uses_dropout_and_predict_does_not() -> None:
    inputs = keras.Input((3, 8))
    network = keras.Model(inputs, d2l.PositionalEncoding(8, 0.9)(inputs))
    network.compile(loss="mse")
    target = network.predict(X, verbose=0)
    assert network.evaluate(X, target, verbose=0) == 0
    assert network.fit(X, target, verbose=0).history["loss"][0] > 1


@every_encoding
def test_encoding_passes_mask_on(make: Callable[[], keras.layers.Layer]) -> None:
    embedding = keras.layers.Embedding(5, 8, mask_zero=True)
    mask = make()(embedding(np.array([[1, 2, 0]])))._keras_mask
    assert mask.numpy().tolist() == [[True, True, False]]


@pytest.mark.parametrize("gpus", [0, 2])
def test_devices_are_those_of_tensorflow(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind] * gpus)
    names = ["/GPU:0", "/GPU:1"] if gpus else ["/CPU:0"]
    assert d2l.num_gpus() == gpus
    assert [device._device_name for device in d2l.try_all_gpus()] == names
    assert [d2l.try_gpu(i)._device_name for i in (0, 2)] == [names[0], "/CPU:0"]
    with d2l.cpu():
        assert d2l.ones(1).device.endswith("CPU:0")


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, check=False, env=variables | environment, capture_output=True, text=True
    )


PROGRAM = """
from d2l_compat import tensorflow as d2l
import tensorflow as tf

d2l.num_gpus()
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
with tf.device("/CPU:1"):
    X, lens = tf.random.normal((2, 4, 100)), tf.constant([3, 2])
    heads = d2l.MultiHeadAttention(100, 5, 0.5)
    tensors = [heads(X, X, X, lens), heads.attention_weights, *(w.value for w in heads.weights)]
    tensors += [d2l.PositionalEncoding(100, 0.5)(X), d2l.masked_softmax(X, lens)]
    tensors += [d2l.RotaryEncoding(100)(X), heads(X, X, X, causal=True, score_bias=tf.zeros((4, 4)))]
print({tensor.device[-5:] for tensor in tensors}, len(tensors))

X, lens = d2l.ones((2, 4, 8)), tf.constant([3, 2])
for layer in (d2l.MultiHeadAttention(8, 2, 0.5), d2l.AdditiveAttention(8, 0.5)):
    tf.function(layer)(X, X, X, lens)
tf.function(d2l.MultiHeadAttention(8, 2, 0.5))(X, X, X, causal=True, score_bias=d2l.ones((2, 4, 4)))
tf.function(d2l.PositionalEncoding(8, 0.5))(X)
tf.function(d2l.RotaryEncoding(8))(X)
tf.function(d2l.TransformerEncoderBlock(8, 16, 2, 0.5))(X, lens)
"""


@pytest.fixture(scope="module")
def traced_process() -> subprocess.CompletedProcess[str]:
    return run(PROGRAM)


def test_layers_stay_on_second_device(
    traced_process: subprocess.CompletedProcess[str],
) -> None:
    assert traced_process.stdout == "{'CPU:1'} 10\n", traced_process.stderr


def test_importing_and_tracing_print_nothing(
    traced_process: subprocess.CompletedProcess[str],
) -> None:
    """Test stderr, since AutoGraph warns of Python code that it cannot convert."""
    assert (traced_process.returncode, traced_process.stderr) == (0, "")


def test_other_keras_backend_is_rejected_before_import() -> None:
    program = "import sys; sys.modules['tensorflow'] = None; import d2l_compat.tensorflow"
    stderr = run(program, KERAS_BACKEND="jax").stderr
    assert "ImportError: KERAS_BACKEND: got jax; need tensorflow, chosen before Keras" in stderr


def test_log_is_shown_on_failure_or_request(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def log(fail: bool = False) -> None:
        with suppress_log():
            os.write(2, b"why")
            if fail:
                raise ImportError

    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    log()
    assert capfd.readouterr().err == ""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    with pytest.raises(ImportError):
        log(fail=True)
    assert capfd.readouterr().err == "why"
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    log()
    assert capfd.readouterr().err == "why"
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    with monkeypatch.context() as patch:
        patch.setattr(os, "dup", Mock(side_effect=OSError))  # as in IDLE on Windows
        log()
    assert capfd.readouterr().err == "why"


def test_tape_stores_no_weights_for_long_input(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = tf.constant(X)
    layer = d2l.DotProductAttention(0.0)
    # Call the layer once before counting: old versions of Keras first call it with symbolic inputs.
    layer(inputs, inputs, inputs, LENGTHS)
    original = _blockwise.softmax
    weight_refs: list[weakref.ref[tf.Tensor]] = []

    def softmax(*args: Any) -> tf.Tensor:
        weights = original(*args)
        weight_refs.append(weakref.ref(weights))
        return weights

    monkeypatch.setattr(_blockwise, "softmax", softmax)
    monkeypatch.setattr(_blockwise, "MIN_QUERIES", 3)
    monkeypatch.setattr(_blockwise, "BLOCK", 2)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        pooled = layer(inputs, inputs, inputs, LENGTHS)
    gc.collect()
    assert len(weight_refs) == 2
    assert not any(weights() is not None for weights in weight_refs)
    assert tape.gradient(pooled, inputs) is not None
    assert len(weight_refs) == 4
