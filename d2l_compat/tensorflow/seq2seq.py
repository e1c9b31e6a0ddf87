"""Encoders and decoders (Sutskever et al., 2014): their layers, training and translation."""

from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import checks, version
from d2l_compat._shared import seq2seq as shared
from d2l_compat._shared.training import undefined_method_error
from d2l_compat.tensorflow._arrays import Array, arrays, layer_inputs
from d2l_compat.tensorflow._keras import dynamic_shape, keras, name_training_for_keras_2
from d2l_compat.tensorflow.attention import register
from d2l_compat.tensorflow.training import (
    Classifier,
    Module,
    Update,
    clip_gradients,
    has_default_build,
)

__all__ = [
    "GRU",
    "AttentionDecoder",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "MaskedSoftmaxCELoss",
    "Seq2Seq",
    "Seq2SeqEncoder",
    "predict_seq2seq",
    "sequence_mask",
    "train_seq2seq",
]


class Encoder(keras.layers.Layer):
    """The base class of encoders: define ``call``."""

    def __init__(self, **kwargs: Any) -> None:
        """Pass ``kwargs`` on to Keras: ``name``, ``dtype``, ``trainable``."""
        super().__init__(**kwargs)
        self.built = has_default_build(self)

    def call(self, X: Any, *args: Any, training: bool | None = None) -> Any:
        """Return the input of the decoder's ``init_state``; subclasses define it."""
        raise undefined_method_error(self, "call")


class Decoder(keras.layers.Layer):
    """The base class of decoders: define ``init_state`` and ``call``.

    If ``call`` works differently in training, it needs an argument ``training``, which Keras passes
    on from the model to each layer whose ``call`` takes it.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Pass ``kwargs`` on to Keras: ``name``, ``dtype``, ``trainable``."""
        super().__init__(**kwargs)
        self.built = has_default_build(self)

    def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
        """Return the first state, from the encoder's outputs; subclasses define it."""
        raise undefined_method_error(self, "init_state")

    def call(self, X: Any, state: Any, training: bool | None = None) -> Any:
        """Return logits for the tokens after ``X``, and the next state; subclasses define it."""
        raise undefined_method_error(self, "call")


class AttentionDecoder(shared.AttentionDecoder, Decoder):
    """The base class of decoders with attention: define ``attention_weights`` as well."""


class EncoderDecoder(shared.EncoderDecoder, Classifier):
    """An encoder, and a decoder that starts from its output.

    An instance of this class itself returns the decoder's output and state, as in D2L 0.17. An instance
    of a subclass, such as :class:`Seq2Seq`, returns only the output, as in D2L 1.0.
    """

    def __init__(self, encoder: keras.layers.Layer, decoder: keras.layers.Layer) -> None:
        """Store the two layers. Raises TypeError if one of them is not a layer."""
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
        """Decode a batch greedily; return tokens (batch, num_steps), and the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target
        are used. Dropout is off.
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
    """A multilayer network of gated recurrent units (Cho et al., 2014)."""

    def __init__(
        self, num_hiddens: int, num_layers: int, dropout: float = 0, **kwargs: Any
    ) -> None:
        """Create the layers; ``dropout``, from 0 to 1, is the share of each layer's inputs dropped in training.

        At 1, Keras drops nothing. ``kwargs`` are those of any Keras model. Raises ValueError or TypeError for arguments
        of the wrong type or range.
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
        if hasattr(H, "shape"):  # one tensor for all layers
            H = tf.unstack(H)
        if not isinstance(H, (list, tuple)) or len(H) != num_layers:
            need = f"a list of {num_layers} tensors, one for each layer"
            raise TypeError(checks.message("H", checks.format_value(H), need))
        for state in H:
            layer_inputs.check_state("H", state, layer_inputs.shape(inputs)[1], num_hiddens)
        return super().__call__(inputs, H, **kwargs)

    def forward(self, inputs: Tensor, H: Any = None) -> tuple[Tensor, list[Tensor]]:
        """Map (steps, batch, inputs) to (steps, batch, hiddens) and the new state.

        The previous state, ``H``, and the new one are lists with a tensor (batch, hiddens) for each layer.
        """
        if H is None:
            shape = (dynamic_shape(inputs)[1], self.hparams["num_hiddens"])
            H = [tf.zeros(shape, inputs.dtype)] * self.hparams["num_layers"]
        # Keras's layers have the batch axis first.
        batch_first = tf.transpose(inputs, (1, 0, 2))
        outputs, *state = self.rnn(batch_first, initial_state=[*H])
        return tf.transpose(outputs, (1, 0, 2)), tf.nest.flatten(state)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.hparams}


@register
class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence, and returns its outputs at all steps and its final state."""

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        num_hiddens: int,
        num_layers: int,
        dropout: float = 0,
        **kwargs: Any,
    ) -> None:
        """Create the layers; ``kwargs`` are those of any Keras layer.

        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        super().__init__(**kwargs)
        vocab_size, embed_size = shared.recurrent_sizes(
            dropout, vocab_size=vocab_size, embed_size=embed_size
        )
        policy = self.dtype_policy
        self.embedding = keras.layers.Embedding(vocab_size, embed_size, dtype=policy)
        rnn = GRU(num_hiddens, num_layers, dropout, dtype=policy)
        self._sizes = rnn.hparams
        # As in D2L 0.17, Keras's own layer takes (batch, steps, inputs).
        self._is_batch_first = version.is_0_17()
        self.rnn = rnn.rnn if self._is_batch_first else rnn

    def build(self, X_shape: Any) -> None:
        self.embedding.build(X_shape)
        batch, steps = X_shape
        first_axes = (batch, steps) if self._is_batch_first else (steps, batch)
        self.rnn.build((*first_axes, self.embedding.output_dim))
        self.built = True

    def __call__(self, X: Array, *args: Any, **kwargs: Any) -> Any:
        """Map tokens (batch, steps) to (steps, batch, hiddens) and the state of :class:`GRU`.

        If D2L_VERSION is 0.17, the outputs are (batch, steps, hiddens). ``training=True`` activates
        dropout. Raises ValueError or TypeError for input that does not fit.
        """
        layer_inputs.check_tokens(X, self.embedding.input_dim)
        name_training_for_keras_2(kwargs)
        return super().__call__(X, *args, **kwargs)

    def call(
        self, X: Tensor, *args: Any, training: bool | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        if self._is_batch_first:
            outputs, *state = self.rnn(self.embedding(X), training=training)
            return outputs, tf.nest.flatten(state)
        return self.rnn(self.embedding(tf.transpose(X)), training=training)

    def get_config(self) -> dict[str, Any]:
        sizes = {
            "vocab_size": self.embedding.input_dim,
            "embed_size": self.embedding.output_dim,
        }
        return {**super().get_config(), **sizes, **self._sizes}


class Seq2Seq(EncoderDecoder):
    """An encoder and a decoder, trained with Adam at the learning rate ``lr``."""

    tgt_pad: int

    def __init__(
        self, encoder: keras.layers.Layer, decoder: keras.layers.Layer, tgt_pad: int, lr: float
    ) -> None:
        """Create the model; ``tgt_pad`` is the index of the padding token, which the loss ignores."""
        super().__init__(encoder, decoder)
        self.save_hyperparameters()

    def validation_step(self, batch: Any) -> None:
        """Plot the loss of a batch, but not the accuracy, which would count padding."""
        Module.validation_step(self, batch)

    def loss(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Return the mean cross-entropy, without padding; if not ``averaged``, one loss per token, 0 for padding."""
        losses = super().loss(Y_hat, Y, averaged=False)
        mask = tf.cast(tf.reshape(Y, (-1,)) != self.tgt_pad, losses.dtype)
        losses *= mask
        return tf.reduce_sum(losses) / tf.reduce_sum(mask) if averaged else losses

    def configure_optimizers(self) -> keras.optimizers.Optimizer:
        """Return Adam with the learning rate ``lr``."""
        return keras.optimizers.Adam(self.lr)


def sequence_mask(X: Array, valid_len: Array, value: float = 0) -> Tensor:
    """Return a copy of ``X`` with ``value`` in each example's steps past its length.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,). Raises
    ValueError or TypeError for a wrong shape or dtype.
    """
    arrays.check_sequence_mask(X, valid_len, value)
    steps = tf.shape(X, tf.int64)[1]
    is_valid = tf.sequence_mask(tf.cast(valid_len, tf.int64), steps)
    for _ in X.shape[2:]:
        is_valid = is_valid[..., tf.newaxis]
    return tf.where(is_valid, X, tf.cast(value, X.dtype))


class MaskedSoftmaxCELoss(keras.losses.Loss):
    """The softmax cross-entropy of sentences with the lengths ``valid_len`` (batch,), without padding.

    For tokens ``label`` (batch, steps) and logits ``pred`` (batch, steps, vocab_size), it returns each example's mean
    over all steps, (batch,); steps past its length contribute 0. Raises ValueError or TypeError for a wrong shape or
    dtype.
    """

    def __init__(self, valid_len: Tensor) -> None:
        super().__init__(reduction="none")
        self.valid_len = valid_len

    def call(self, label: Tensor, pred: Tensor) -> Tensor:
        label = tf.cast(label, tf.int32)  # Keras 3 has converted it to floating point
        arrays.check_sentence_loss(pred, label)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, pred)
        return tf.reduce_mean(sequence_mask(losses, self.valid_len), axis=1)


def train_seq2seq(
    net: Any,
    data_iter: Any,
    lr: float,
    num_epochs: int,
    tgt_vocab: Any,
    device: AbstractContextManager[Any],
) -> None:
    """Train ``net`` with Adam and teacher forcing, as in D2L 0.17.

    ``data_iter`` yields (source, source lengths, target, target lengths), as ``load_data_nmt``
    does. The loss per token is plotted every ten epochs, and printed at the end.
    """
    progress = shared.Progress(num_epochs, net, keras.layers.Layer, tgt_vocab, lr)
    optimizer = keras.optimizers.Adam(lr)
    update = Update()

    def step(batch: Any) -> tuple[Tensor, Tensor]:
        X, X_lens, Y, Y_lens = batch
        bos = tf.fill((len(Y), 1), tf.cast(tgt_vocab[shared.BOS], Y.dtype))
        with tf.GradientTape() as tape:
            dec_X = tf.concat([bos, Y[:, :-1]], axis=1)
            Y_hat = shared.discard_state(net(X, dec_X, X_lens, training=True))
            loss = tf.reduce_sum(MaskedSoftmaxCELoss(Y_lens)(Y, Y_hat))
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
    """Translate a sentence greedily; return the translation, and the attention weights of each step.

    Words are separated by spaces. Decoding stops at ``<eos>`` or after ``num_steps`` tokens.
    """
    shared.check_translation(net, src_sentence, src_vocab, tgt_vocab, num_steps)
    source, source_len = shared.encode_source(src_sentence, src_vocab, num_steps)
    lens = tf.constant([source_len])
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
