"""Tests of features of training that only JAX has: the state, keys for dropout, sown weights, the loader."""

import math
import os
import random
import subprocess
import sys
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from d2l_compat import jax as d2l
from tests.shim.each.jax.adapter import TWO_CPUS

KEY = jax.random.key(0)
X = np.random.default_rng(0).normal(size=(7, 4)).astype("float32")
Y = np.array([0, 1, 2, 0, 1, 2, 0], "int32")
TOKENS = np.array([[1, 2, 3, 0, 4], [6, 5, 4, 3, 2]], "int32")
LENS = np.array([3, 5], "int32")


class Rows(d2l.DataModule):
    def __init__(self, *arrays: Any, batch_size: int = 4) -> None:
        super().__init__()
        self.arrays, self.batch_size = arrays, batch_size

    def get_dataloader(self, train: bool) -> Any:
        return self.get_tensorloader(self.arrays, train)


class Linear(d2l.Classifier):
    """A classifier that drops its whole input in training."""

    lr: float = 0.1
    training: bool = False

    def setup(self) -> None:
        self.drop = nn.Dropout(1.0, deterministic=not self.training)
        self.net = nn.Dense(3, use_bias=False)

    def forward(self, X: jax.Array) -> jax.Array:
        return self.net(self.drop(X))


# Batches


def test_batches_are_numpy_arrays_and_follow_pythons_seed() -> None:
    loader = Rows(jnp.arange(7), X).train_dataloader()
    random.seed(1)
    first = list(loader)
    assert [[len(part) for part in batch] for batch in first] == [[4, 4], [3, 3]]
    assert {type(part) for batch in first for part in batch} == {np.ndarray}
    rows = np.concatenate([batch[0] for batch in first])
    np.testing.assert_array_equal(np.concatenate([batch[1] for batch in first]), X[rows])
    random.seed(1)
    np.testing.assert_array_equal(rows, np.concatenate([batch[0] for batch in loader]))


PROGRAM = """
import sys
from d2l_compat import jax as d2l
assert "optax" not in sys.modules, "only training imports it"
import jax, flax.linen as nn, numpy as np
first, second = jax.devices()
d2l.Trainer.devices._list_gpus = lambda: [second]


class Rows(d2l.DataModule):
    batch_size = 4

    def get_dataloader(self, train):
        return self.get_tensorloader((np.ones((6, 2), "float32"), np.ones(6, "int32")), train)


class Linear(d2l.Classifier):
    lr: float = 0.1

    def setup(self):
        self.net = nn.Dense(3)


trainer = d2l.Trainer(max_epochs=2, num_gpus=1)
trainer.fit(Linear(), Rows())
(device,) = {device for x in jax.tree.leaves(trainer.state.params) for device in x.devices()}
assert device == second
assert not {"tensorflow", "tensorflow_datasets", "torch"} & {*sys.modules}
print("trained")
"""


def test_training_needs_no_other_framework_and_stays_on_device() -> None:
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | TWO_CPUS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stdout == "trained\n", process.stderr


# The state


def test_every_epoch_drops_inputs_only_in_training() -> None:
    model = Linear()
    trainer = d2l.Trainer(max_epochs=3)
    trainer.fit(model, Rows(X, Y, batch_size=7), key=KEY)
    # All inputs were dropped, so the kernel has not changed.
    logits = X @ np.asarray(trainer.state.params["net"]["kernel"])
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(7), Y]
    curves = {name: [y for _, y in curve] for name, curve in model.board.data.items()}
    assert curves["train_loss"] == pytest.approx([math.log(3)] * 3)
    assert curves["val_loss"] == pytest.approx([losses.mean()] * 3, rel=1e-5)
    assert model.training is False


def test_each_step_has_a_new_key_for_dropout() -> None:
    trainer = d2l.Trainer(max_epochs=2)
    trainer.fit(Linear(), Rows(X, Y), key=KEY)
    key = jax.random.split(KEY)[1]
    for _ in range(4):  # two batches, two epochs
        key = jax.random.split(key)[0]
    assert trainer.state.dropout_rng == key
    assert trainer.state.step == 4


def test_same_key_and_seed_give_same_parameters() -> None:
    params = []
    for seed in (0, 0, 1):
        random.seed(seed)
        trainer = d2l.Trainer(max_epochs=1)
        trainer.fit(Module(), Rows(X, Y), key=KEY)
        params.append(np.asarray(trainer.state.params["net"]["kernel"]))
    np.testing.assert_array_equal(*params[:2])
    assert (params[0] != params[2]).any(), "another seed gives another order of batches"


class Normalized(d2l.Classifier):
    lr: float = 0.1
    training: bool = True

    def setup(self) -> None:
        self.norm = nn.BatchNorm(use_running_average=not self.training, momentum=0.9)
        self.dense = nn.Dense(3)

    def forward(self, X: jax.Array) -> jax.Array:
        return self.dense(self.norm(X))


def test_batch_statistics_are_stored_in_state() -> None:
    trainer = d2l.Trainer(max_epochs=1)
    trainer.fit(Normalized(), Rows(X, Y, batch_size=7), key=KEY)
    mean = trainer.state.batch_stats["norm"]["mean"]
    np.testing.assert_allclose(mean, 0.1 * X.mean(axis=0), rtol=1e-4)
    _, changed = trainer.model.loss(trainer.state.params, (X,), Y, trainer.state)
    np.testing.assert_array_equal(changed["batch_stats"]["norm"]["mean"], mean)


class Descent(d2l.HyperParameters):
    """An optimizer as on D2L's page on linear regression, whose state is a class, not an object."""

    def __init__(self, lr: float) -> None:
        self.save_hyperparameters()

    def init(self, params: Any) -> Any:
        return optax.EmptyState

    def update(self, updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return jax.tree.map(lambda gradient: -self.lr * gradient, updates), state


class Module(d2l.Module):
    """Regression with a loss that is a single number."""

    lr: float = 0.5

    def setup(self) -> None:
        self.net = nn.Dense(1)

    def loss(self, params: Any, X: Any, y: Any, state: Any) -> Any:
        return ((state.apply_fn({"params": params}, *X)[:, 0] - y) ** 2).mean()

    def configure_optimizers(self) -> Any:
        return Descent(self.lr)


def test_custom_module_trains_with_its_loss_and_optimizer() -> None:
    model = Module()
    trainer = d2l.Trainer(max_epochs=1)
    trainer.fit(model, Rows(X, X[:, 0], batch_size=7), key=KEY)
    before = np.asarray(model.init(jax.random.split(KEY)[0], X)["params"]["net"]["kernel"])[:, 0]
    after = np.asarray(trainer.state.params["net"]["kernel"])[:, 0]
    residual = X @ before - X[:, 0]
    np.testing.assert_allclose(after, before - X.T @ residual / 7, rtol=1e-4, atol=1e-6)
    assert model.board.data["train_loss"][0].y == pytest.approx((residual**2).mean(), rel=1e-5)
    assert model.board.data["val_loss"][0].x == 1


def test_points_per_epoch_can_be_set() -> None:
    model = Module()
    with pytest.raises(TypeError, match="plot_train_per_epoch"):
        Module(plot_train_per_epoch=1)  # not an argument, as in upstream
    assert (model.plot_train_per_epoch, model.plot_valid_per_epoch) == (2, 1)
    model.plot_train_per_epoch = 1
    d2l.Trainer(max_epochs=2).fit(model, Rows(X, Y, batch_size=2))
    assert len(model.board.data["train_loss"]) == 2


# Classifiers


def test_losses_and_hits_per_example_without_average() -> None:
    model = Linear()
    trainer = d2l.Trainer(max_epochs=1)
    trainer.fit(model, Rows(X, Y), key=KEY)
    args = trainer.state.params, (X,), Y, trainer.state
    losses, _ = model.loss(*args, averaged=False)
    hits = model.accuracy(*args, averaged=False)
    assert losses.shape == hits.shape == (7,)
    assert model.loss(*args)[0] == pytest.approx(float(losses.mean()))
    assert model.accuracy(*args) == pytest.approx(float(hits.mean()))
    logits = X @ np.asarray(trainer.state.params["net"]["kernel"])
    np.testing.assert_array_equal(hits, logits.argmax(axis=1) == Y)


def test_summary_names_each_layer_and_its_shape(capsys: pytest.CaptureFixture[str]) -> None:
    class Net(d2l.Classifier):
        def setup(self) -> None:
            layers = nn.Dense(5), nn.Dropout(0.5, deterministic=False), nn.Dense(3)
            self.net = nn.Sequential(layers)

    Net().layer_summary((2, 4))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Dense output shape:\t (2, 5)",
        "Dropout output shape:\t (2, 5)",
        "Dense output shape:\t (2, 3)",
    ]


# Translation


class Decoder(d2l.Decoder):
    """A minimal decoder, which computes outputs from embeddings and the encoder's last state."""

    sows: bool = True

    def setup(self) -> None:
        self.embedding = nn.Embed(7, 4)
        self.dense = nn.Dense(7)

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        return enc_all_outputs[1][-1]

    def __call__(self, X: jax.Array, state: Any, training: bool = False) -> Any:
        if self.sows:
            self.sow("intermediates", "dec_attention_weights", state[:, None])
        features = jnp.tanh(self.embedding(X) + state[:, None])
        return self.dense(features), features[:, -1]


BATCH = TOKENS, TOKENS, LENS, TOKENS[::-1]


def make_translator(sows: bool = True) -> tuple[d2l.Seq2Seq, Any]:
    encoder = d2l.Seq2SeqEncoder(7, 6, 4, 2, 0.5)
    model = d2l.Seq2Seq(encoder, Decoder(sows), tgt_pad=0, lr=0.1, training=False)
    return model, model.init(KEY, *BATCH[:-1])["params"]


@pytest.mark.parametrize("save", [pytest.param(False, marks=pytest.mark.release), True])
def test_prediction_returns_likeliest_tokens_and_requested_weights(save: bool) -> None:
    model, params = make_translator()
    tokens, (decoder_weights, encoder_weights) = model.predict_step(params, BATCH, 3, save)
    state = model.encoder.apply({"params": params["encoder"]}, TOKENS)[1][-1]
    token = TOKENS[:, :1]
    for step in range(3):
        if save:
            np.testing.assert_allclose(decoder_weights[step], state[:, None], atol=1e-6)
        logits, state = model.decoder.apply({"params": params["decoder"]}, token, state)
        token = logits.argmax(axis=2)
        np.testing.assert_array_equal(tokens[:, step : step + 1], token)
    assert len(decoder_weights) == 3 * save
    assert encoder_weights == []


def test_requested_weights_must_be_sown() -> None:
    model, params = make_translator(sows=False)
    with pytest.raises(NotImplementedError, match=r"Decoder.sow.*'dec_attention_weights'"):
        model.predict_step(params, BATCH, 3, True)
    assert model.predict_step(params, BATCH, 3)[0].shape == (2, 3)


def test_encoder_weights_are_grouped_by_block() -> None:
    class LastStepDecoder(Decoder):
        def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
            return enc_all_outputs[:, -1]

    encoder = d2l.TransformerEncoder(7, 4, 8, 2, 3, 0.0)
    model = d2l.EncoderDecoder(encoder, LastStepDecoder(), training=False)
    params = model.init(KEY, *BATCH[:-1])["params"]
    _, (_, weights) = model.predict_step(params, BATCH, 2, True)
    assert [block.shape for block in weights] == [(4, 5, 5)] * 3
    assert not np.any([block[:2, :, 3:] for block in weights]), "the first sentence has 3 tokens"


def test_custom_decoder_weights_are_grouped_by_head() -> None:
    class AttentionDecoder(Decoder):
        def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
            return enc_all_outputs[0].swapaxes(0, 1), *args

        @nn.compact
        def __call__(self, X: jax.Array, state: Any, training: bool = False) -> Any:
            encoded, lens = state
            heads = d2l.MultiHeadAttention(4, 2, 0.0)
            pooled, weights = heads(self.embedding(X), encoded, encoded, lens)
            self.sow("intermediates", "dec_attention_weights", [[weights], [weights]])
            return self.dense(pooled), state

    encoder = d2l.Seq2SeqEncoder(7, 6, 4, 2)
    model = d2l.EncoderDecoder(encoder, AttentionDecoder(), training=False)
    params = model.init(KEY, *BATCH[:-1])["params"]
    _, (steps, _) = model.predict_step(params, BATCH, 2, True)
    for (first,), (second,) in steps:
        assert first.shape == (4, 1, 5)
        assert not first[:2, :, 3:].any(), "both heads of the first sentence, of 3 tokens"
        assert second[2:, :, 3:].all()


def test_seq2seq_takes_keyword_or_positional_arguments() -> None:
    parts = d2l.Encoder(), d2l.Decoder()
    model = d2l.Seq2Seq(*parts, 3, 0.1)
    assert (model.tgt_pad, model.lr, model.training) == (3, 0.1, True)
    other = d2l.Seq2Seq(encoder=parts[0], decoder=parts[1], tgt_pad=3, lr=0.1, training=False)
    assert other.copy(training=True) == model
    with pytest.raises(TypeError, match="training: got int; need True or False"):
        d2l.EncoderDecoder(*parts, training=1)
