"""Encoders and decoders, how they learn to translate, and how they do it: Sutskever et al. (2014)."""

from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import checks, version
from d2l_compat._shared import seq2seq as shared
from d2l_compat._shared.training import undefined_method_error
from d2l_compat.tensorflow._arrays import Array, arrays, layer_inputs
from d2l_compat.tensorflow._keras import keras, named_for_keras_2, sizes
from d2l_compat.tensorflow.attention import register
from d2l_compat.tensorflow.training import (
    Classifier,
    Module,
    Update,
    builds_its_parts,
    clip_gradients,
)

__all__ = [
    "GRU",
    "AttentionDecoder",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "Seq2Seq",
    "Seq2SeqEncoder",
    "predict_seq2seq",
    "sequence_mask",
    "train_seq2seq",
]


class Encoder(keras.layers.Layer):
    """The base class of encoders: define ``call``."""

    def __init__(self, **kwargs: Any) -> None:
        """``kwargs`` are any layer's: ``name``, ``dtype``, ``trainable``."""
        super().__init__(**kwargs)
        self.built = builds_its_parts(self)

    def call(self, X: Any, *args: Any, training: bool | None = None) -> Any:
        """What the decoder's ``init_state`` will be given; to be defined."""
        raise undefined_method_error(self, "call")


class Decoder(keras.layers.Layer):
    """The base class of decoders: define ``init_state`` and ``call``.

    Where ``call`` works differently in training, it has an argument ``training``: Keras hands
    that on, from the model to each of the layers whose ``call`` names it.
    """

    def __init__(self, **kwargs: Any) -> None:
        """``kwargs`` are any layer's: ``name``, ``dtype``, ``trainable``."""
        super().__init__(**kwargs)
        self.built = builds_its_parts(self)

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        """The first state, from the encoder's outputs; to be defined."""
        raise undefined_method_error(self, "init_state")

    def call(self, X: Any, state: Any, training: bool | None = None) -> Any:
        """Logits for the tokens after ``X``, and the next state; to be defined."""
        raise undefined_method_error(self, "call")


class AttentionDecoder(shared.AttentionDecoder, Decoder):
    """The base class of decoders that attend: define ``attention_weights`` as well."""


class EncoderDecoder(shared.EncoderDecoder, Classifier):
    """An encoder, and a decoder that starts from what it gives.

    A model of this class itself gives its output and its state, as in D2L 0.17, whose pages make
    such; one of a subclass, as :class:`Seq2Seq` is, its output alone, as in D2L 1.0.
    """

    def __init__(self, encoder: keras.layers.Layer, decoder: keras.layers.Layer) -> None:
        """Raises TypeError if one of the two is not a layer."""
        super().__init__()
        checks.check_instance("encoder", encoder, keras.layers.Layer, "a layer")
        checks.check_instance("decoder", decoder, keras.layers.Layer, "a layer")
        self.encoder = encoder
        self.decoder = decoder

    def predict_step(
        self,
        batch: Any,
        device: AbstractContextManager[Any],
        num_steps: int,
        save_attention_weights: bool = False,
    ) -> tuple[Tensor, list[Any]]:
        """Decode, taking the likeliest token each time; also the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels), of which the target's first tokens
        are used. Returns tokens of shape (batch, num_steps). Dropout is off meanwhile.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lengths, _ = batch
        with device:
            encoded = self.encoder(source, lengths, training=False)
            state = self.decoder.init_state(encoded, lengths)
            tokens, weights = shared.decode(
                self.decoder,
                state,
                target[:, :1],
                lambda Y: tf.argmax(Y, axis=2, output_type=target.dtype),
                num_steps,
                save_attention_weights,
                training=False,
            )
            return tf.concat(tokens, axis=1), weights


@register
class GRU(Module):
    """Gated recurrent units in layers: Cho et al. (2014)."""

    def __init__(
        self, num_hiddens: int, num_layers: int, dropout: float = 0, **kwargs: Any
    ) -> None:
        """``dropout``, from 0 to 1, is the share of each layer's inputs dropped in training; at 1, Keras drops none.

        ``kwargs`` are any Keras model's. Raises ValueError or TypeError for arguments of a wrong
        range or kind.
        """
        super().__init__(**kwargs)
        num_hiddens, num_layers = shared.recurrent_sizes(
            dropout, num_hiddens=num_hiddens, num_layers=num_layers
        )
        self.save_hyperparameters(ignore=["kwargs"])
        policy = self.dtype_policy
        cells = [
            keras.layers.GRUCell(num_hiddens, dropout=dropout, dtype=policy)
            for _ in range(num_layers)
        ]
        self.rnn = keras.layers.RNN(cells, return_sequences=True, return_state=True, dtype=policy)

    def build(self, inputs_shape: Any) -> None:
        steps, batch, features = inputs_shape
        self.rnn.build((batch, steps, features))
        self.built = True

    def __call__(self, inputs: Array, H: Any = None, **kwargs: Any) -> Any:
        cell = self.rnn.cell.cells[0]
        layer_inputs.check_sequence("inputs", inputs, cell.kernel.shape[0] if cell.built else None)
        if H is None:
            return super().__call__(inputs, **kwargs)
        num_layers, num_hiddens = self.hparams["num_layers"], self.hparams["num_hiddens"]
        if hasattr(H, "shape"):  # stacked
            H = tf.unstack(H)
        if not isinstance(H, (list, tuple)) or len(H) != num_layers:
            need = f"a list of {num_layers} tensors, one for each layer"
            raise TypeError(checks.fault("H", checks.format_value(H), need))
        for of_layer in H:
            layer_inputs.check_state("H", of_layer, layer_inputs.shape(inputs)[1], num_hiddens)
        return super().__call__(inputs, H, **kwargs)

    def forward(self, inputs: Tensor, H: Any = None) -> tuple[Tensor, list[Tensor]]:
        """(steps, batch, inputs) to (steps, batch, hiddens), and the state.

        That is a tensor for each layer, (batch, hiddens), and so it may be given in ``H``.
        """
        if H is None:
            size = (sizes(inputs)[1], self.hparams["num_hiddens"])
            H = [tf.zeros(size, inputs.dtype)] * self.hparams["num_layers"]
        # Keras has the batch first.
        batch_first = tf.transpose(inputs, (1, 0, 2))
        outputs, *state = self.rnn(batch_first, initial_state=[*H])
        return tf.transpose(outputs, (1, 0, 2)), tf.nest.flatten(state)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.hparams}


@register
class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence: its outputs at all steps, and its state at the end."""

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        num_hiddens: int,
        num_layers: int,
        dropout: float = 0,
        **kwargs: Any,
    ) -> None:
        """``kwargs`` are any layer's. Raises ValueError or TypeError for arguments of a wrong
        range or kind."""
        super().__init__(**kwargs)
        vocab_size, embed_size = shared.recurrent_sizes(
            dropout, vocab_size=vocab_size, embed_size=embed_size
        )
        policy = self.dtype_policy
        self.embedding = keras.layers.Embedding(vocab_size, embed_size, dtype=policy)
        self.rnn = GRU(num_hiddens, num_layers, dropout, dtype=policy)

    def build(self, X_shape: Any) -> None:
        self.embedding.build(X_shape)
        self.rnn.build((X_shape[1], X_shape[0], self.embedding.output_dim))
        self.built = True

    def __call__(self, X: Array, *args: Any, **kwargs: Any) -> Any:
        """Tokens (batch, steps) to (steps, batch, hiddens), and the state, as :class:`GRU` has it.

        Where D2L_VERSION is 0.17, to (batch, steps, hiddens). ``training=True`` drops. Raises
        ValueError or TypeError for input that does not fit.
        """
        layer_inputs.check_tokens(X, self.embedding.input_dim)
        named_for_keras_2(kwargs)
        return super().__call__(X, *args, **kwargs)

    def call(
        self, X: Tensor, *args: Any, training: bool | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        outputs, state = self.rnn(self.embedding(tf.transpose(X)), training=training)
        return tf.transpose(outputs, (1, 0, 2)) if version.is_0_17() else outputs, state

    def get_config(self) -> dict[str, Any]:
        embedding, rnn = self.embedding, self.rnn.hparams
        given = {"vocab_size": embedding.input_dim, "embed_size": embedding.output_dim}
        return {**super().get_config(), **given, **rnn}


class Seq2Seq(EncoderDecoder):
    """Encoder and decoder, trained with Adam at the learning rate ``lr``."""

    tgt_pad: int

    def __init__(
        self, encoder: keras.layers.Layer, decoder: keras.layers.Layer, tgt_pad: int, lr: float
    ) -> None:
        """``tgt_pad`` is the number of the token that fills up sentences; it does not count."""
        super().__init__(encoder, decoder)
        self.save_hyperparameters()

    def validation_step(self, batch: Any) -> None:
        """Draw the loss of a batch, and not the share of tokens that are right, which counts padding."""
        Module.validation_step(self, batch)

    def loss(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Cross-entropy of the tokens that are not ``tgt_pad``; not averaged, 0 at those."""
        losses = super().loss(Y_hat, Y, averaged=False)
        counts = tf.cast(tf.reshape(Y, (-1,)) != self.tgt_pad, losses.dtype)
        losses *= counts
        return tf.reduce_sum(losses) / tf.reduce_sum(counts) if averaged else losses

    def configure_optimizers(self) -> keras.optimizers.Optimizer:
        """Adam, at the learning rate ``lr``."""
        return keras.optimizers.Adam(self.lr)


def sequence_mask(X: Array, valid_len: Array, value: float = 0) -> Tensor:
    """``X`` with ``value`` in each example's steps past its length.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,). Raises
    ValueError or TypeError for a wrong shape or dtype.
    """
    arrays.check_sequence_mask(X, valid_len, value)
    steps = tf.shape(X, tf.int64)[1]
    is_valid = tf.sequence_mask(tf.cast(valid_len, tf.int64), steps)
    for _ in X.shape[2:]:
        is_valid = is_valid[..., tf.newaxis]
    return tf.where(is_valid, X, tf.cast(value, X.dtype))


def train_seq2seq(
    net: Any,
    data_iter: Any,
    lr: float,
    num_epochs: int,
    tgt_vocab: Any,
    device: AbstractContextManager[Any],
) -> None:
    """D2L 0.17's training: fit ``net`` with Adam and teacher forcing.

    ``data_iter`` gives (source, source lengths, target, target lengths), as ``load_data_nmt``
    makes them. The loss per token is drawn every ten epochs, and printed at the end.
    """
    progress = shared.Progress(num_epochs, net, keras.layers.Layer, tgt_vocab, lr)
    optimizer, update = keras.optimizers.Adam(lr), Update()

    def step(batch: Any) -> tuple[Tensor, Tensor]:
        X, X_lens, Y, Y_lens = batch
        first = tf.fill((len(Y), 1), tf.cast(tgt_vocab[shared.BOS], Y.dtype))
        with tf.GradientTape() as tape:
            dec_X = tf.concat([first, Y[:, :-1]], axis=1)
            Y_hat = shared.discard_state(net(X, dec_X, X_lens, training=True))
            loss = tf.reduce_sum(_masked_loss(Y_hat, Y, Y_lens))
        variables = net.trainable_variables
        gradients = clip_gradients(tape.gradient(loss, variables), 1)
        update(optimizer, gradients, variables)
        return loss, tf.reduce_sum(Y_lens)

    with device:
        progress.train(data_iter, step, getattr(device, "_device_name", device), arrays)


def predict_seq2seq(
    net: Any,
    src_sentence: str,
    src_vocab: Any,
    tgt_vocab: Any,
    num_steps: int,
    save_attention_weights: bool = False,
) -> tuple[str, list[Any]]:
    """Translate a sentence, its words separated by blanks; also the attention weights of each step.

    The likeliest token is taken each time, until ``<eos>`` or ``num_steps`` tokens.
    """
    shared.check_translation(net, src_sentence, src_vocab, tgt_vocab, num_steps)
    source, length = shared.encode_source(src_sentence, src_vocab, num_steps)
    lens = tf.constant([length])
    encoded = net.encoder(tf.constant([source]), lens, training=False)
    tokens, weights = shared.decode(
        net.decoder,
        net.decoder.init_state(encoded, lens),
        tf.constant([[tgt_vocab[shared.BOS]]]),
        lambda Y: tf.argmax(Y, axis=2, output_type=tf.int32),
        num_steps,
        save_attention_weights,
        end=tgt_vocab[shared.EOS],
        training=False,
    )
    return shared.join_tokens(tokens, tgt_vocab), weights


def _masked_loss(Y_hat: Tensor, Y: Tensor, lens: Tensor) -> Tensor:
    """Each example's mean cross-entropy, over all steps, of those within its length."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(Y, Y_hat)
    return tf.reduce_mean(sequence_mask(losses, lens), axis=1)
