"""Encoders and decoders, how they learn to translate, and how they do it: Sutskever et al. (2014)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from mlx import nn, optimizers

from d2l_compat._shared import checks
from d2l_compat._shared import seq2seq as shared
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._dropout import Dropout
from d2l_compat.mlx._lazy import take_sizes
from d2l_compat.mlx.training import Classifier, Module, clip_gradients

__all__ = [
    "GRU",
    "AttentionDecoder",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "Seq2Seq",
    "Seq2SeqEncoder",
    "init_seq2seq",
    "predict_seq2seq",
    "sequence_mask",
    "train_seq2seq",
]


class Encoder(shared.Encoder, nn.Module):
    """The base class of encoders: define ``__call__``, as layers of MLX do, or ``forward``, as PyTorch's."""

    def __call__(self, X: Any, *args: Any) -> Any:
        """What ``forward`` gives."""
        return self.forward(X, *args)


class Decoder(shared.Decoder, nn.Module):
    """The base class of decoders: define ``init_state``, and ``__call__`` or ``forward``."""

    def __call__(self, X: Any, state: Any) -> Any:
        """What ``forward`` gives."""
        return self.forward(X, state)


class AttentionDecoder(shared.AttentionDecoder, Decoder):
    """The base class of decoders that attend: define ``attention_weights`` as well."""


class EncoderDecoder(shared.EncoderDecoder, Classifier):
    """An encoder, and a decoder that starts from what it gives.

    A model of this class itself gives its output and its state, as in D2L 0.17, whose pages make
    such; one of a subclass, as :class:`Seq2Seq` is, its output alone, as in D2L 1.0.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        """Raises TypeError if one of the two is not a layer."""
        super().__init__()
        checks.check_instance("encoder", encoder, nn.Module, "a layer")
        checks.check_instance("decoder", decoder, nn.Module, "a layer")
        self.encoder = encoder
        self.decoder = decoder

    def predict_step(
        self,
        batch: Any,
        device: mx.Device,
        num_steps: int,
        save_attention_weights: bool = False,
    ) -> tuple[mx.array, list[Any]]:
        """Decode, taking the likeliest token each time; also the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels), of which the target's first tokens
        are used. Returns tokens of shape (batch, num_steps). Dropout is off meanwhile.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lengths, _ = batch
        with mx.stream(device), evaluating(self):
            state = self.decoder.init_state(self.encoder(source, lengths), lengths)
            tokens, weights = shared.decode(
                self.decoder, state, target[:, :1], _likeliest, num_steps, save_attention_weights
            )
            return mx.concatenate(tokens, axis=1), weights


def _likeliest(Y: mx.array) -> mx.array:
    return Y.argmax(axis=2)


class GRU(Module):
    """Gated recurrent units in layers: Cho et al. (2014)."""

    def __init__(
        self, num_inputs: int, num_hiddens: int, num_layers: int, dropout: float = 0
    ) -> None:
        """``dropout``, from 0 to 1, is the share dropped between layers in training.

        Raises ValueError or TypeError for arguments of a wrong range or kind.
        """
        super().__init__()
        inputs, hiddens, layers = shared.recurrent_sizes(
            dropout, num_inputs=num_inputs, num_hiddens=num_hiddens, num_layers=num_layers
        )
        self.save_hyperparameters()
        self.between = Dropout(dropout)
        self.rnn = [nn.GRU(hiddens if layer else inputs, hiddens) for layer in range(layers)]

    def forward(self, inputs: mx.array, H: mx.array | None = None) -> tuple[mx.array, mx.array]:
        """(steps, batch, inputs) to (steps, batch, hiddens), and the state (layers, batch, hiddens)."""
        first, layers = self.rnn[0], len(self.rnn)
        arrays.check_sequence("inputs", inputs, first.Wx.shape[1])
        if H is not None:
            arrays.check_state("H", H, layers, inputs.shape[1], first.hidden_size)
        outputs, states = inputs.swapaxes(0, 1), []  # MLX's have the batch first
        for number, layer in enumerate(self.rnn):
            if number:
                outputs = self.between(outputs)
            outputs = layer(outputs, None if H is None else H[number])
            states.append(outputs[:, -1])
        return outputs.swapaxes(0, 1), mx.stack(states)


class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence: its outputs at all steps, and its state at the end."""

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        num_hiddens: int,
        num_layers: int,
        dropout: float = 0,
    ) -> None:
        """Raises ValueError or TypeError for arguments of a wrong range or kind."""
        super().__init__()
        vocab_size, embed_size = shared.recurrent_sizes(
            dropout, vocab_size=vocab_size, embed_size=embed_size
        )
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = GRU(embed_size, num_hiddens, num_layers, dropout)
        init_all(self)

    def __call__(self, X: mx.array, *args: Any) -> tuple[mx.array, mx.array]:
        """Tokens (batch, steps) to (steps, batch, hiddens), and the state (layers, batch, hiddens)."""
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        return self.rnn(self.embedding(X.T.astype(mx.int32)))


class Seq2Seq(EncoderDecoder):
    """Encoder and decoder, trained with Adam at the learning rate ``lr``."""

    tgt_pad: int

    def __init__(self, encoder: nn.Module, decoder: nn.Module, tgt_pad: int, lr: float) -> None:
        """``tgt_pad`` is the number of the token that fills up sentences; it does not count."""
        super().__init__(encoder, decoder)
        self.save_hyperparameters()

    def validation_step(self, batch: Any) -> None:
        """Draw the loss of a batch, and not the share of tokens that are right, which counts padding."""
        Module.validation_step(self, batch)

    def loss(self, Y_hat: mx.array, Y: mx.array, averaged: bool = True) -> mx.array:
        """Cross-entropy of the tokens that are not ``tgt_pad``; not averaged, 0 at those."""
        losses = super().loss(Y_hat, Y, averaged=False)
        counts = (Y.flatten() != self.tgt_pad).astype(losses.dtype)
        losses = losses * counts
        return losses.sum() / counts.sum() if averaged else losses

    def configure_optimizers(self) -> optimizers.Optimizer:
        """Adam, at the learning rate ``lr``."""
        return adam(self.lr)


def adam(lr: float) -> optimizers.Adam:
    """Adam as its authors have it: MLX's leaves out the correction of the bias unless asked."""
    return optimizers.Adam(learning_rate=lr, bias_correction=True)


def init_seq2seq(module: nn.Module) -> None:
    """Xavier's uniform initialization of a linear layer's weights, or a GRU's; of nothing else.

    A linear layer that has no sizes yet is left as it is: its first call will draw its weights.
    """
    draw: Any = nn.init.glorot_uniform()
    if isinstance(module, nn.Linear) and "weight" in module:
        module.weight = draw(module.weight)
    elif isinstance(module, nn.GRU):
        module.Wx, module.Wh = draw(module.Wx), draw(module.Wh)


def init_all(net: nn.Module) -> None:
    """``init_seq2seq`` of each layer in it."""
    net.apply_to_modules(lambda _, layer: init_seq2seq(layer))


def sequence_mask(X: mx.array, valid_len: mx.array, value: float = 0) -> mx.array:
    """``X`` with ``value`` in each example's steps past its length; ``X`` itself is not changed.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,). Raises
    ValueError or TypeError for a wrong shape or dtype.
    """
    arrays.check_sequence_mask(X, valid_len, value)
    is_past = mx.arange(X.shape[1]) >= valid_len.astype(mx.int64)[:, None]
    filler = mx.array(value, X.dtype)
    return mx.where(is_past.reshape(*is_past.shape, *[1] * (X.ndim - 2)), filler, X)


def train_seq2seq(
    net: Any, data_iter: Any, lr: float, num_epochs: int, tgt_vocab: Any, device: mx.Device
) -> None:
    """D2L 0.17's training: initialize ``net`` anew, then fit it with Adam and teacher forcing.

    ``data_iter`` gives (source, source lengths, target, target lengths), as ``load_data_nmt``
    makes them. The loss per token is drawn every ten epochs, and printed at the end.
    """
    progress = shared.Progress(num_epochs, net, nn.Module, tgt_vocab, lr)
    init_all(net)
    net.train()
    optimizer = adam(lr)

    def loss(X: mx.array, X_lens: mx.array, Y: mx.array, Y_lens: mx.array) -> mx.array:
        first = mx.full((len(Y), 1), tgt_vocab[shared.BOS], Y.dtype)
        said = mx.concatenate([first, Y[:, :-1]], axis=1)
        return _masked_loss(shared.discard_state(net(X, said, X_lens)), Y, Y_lens).sum()

    def step(batch: Any) -> tuple[mx.array, mx.array]:
        take_sizes(net, lambda: loss(*batch))
        total, gradients = nn.value_and_grad(net, loss)(*batch)
        optimizer.update(net, clip_gradients(gradients, 1))
        # Now: or all steps would wait until the end, each with all that it was computed from.
        mx.eval(net.parameters(), optimizer.state)
        return total, batch[3].sum()

    with mx.stream(device):
        progress.train(data_iter, step, device, arrays)


def predict_seq2seq(
    net: Any,
    src_sentence: str,
    src_vocab: Any,
    tgt_vocab: Any,
    num_steps: int,
    device: mx.Device,
    save_attention_weights: bool = False,
) -> tuple[str, list[Any]]:
    """Translate a sentence, its words separated by blanks; also the attention weights of each step.

    The likeliest token is taken each time, until ``<eos>`` or ``num_steps`` tokens.
    """
    shared.check_translation(net, src_sentence, src_vocab, tgt_vocab, num_steps)
    source, length = shared.encode_source(src_sentence, src_vocab, num_steps)
    lens, first = mx.array([length]), mx.array([[tgt_vocab[shared.BOS]]])
    end = tgt_vocab[shared.EOS]
    with mx.stream(device), evaluating(net):
        state = net.decoder.init_state(net.encoder(mx.array([source]), lens), lens)
        tokens, weights = shared.decode(
            net.decoder, state, first, _likeliest, num_steps, save_attention_weights, end
        )
    return shared.join_tokens(tokens, tgt_vocab), weights


def _masked_loss(Y_hat: mx.array, Y: mx.array, lens: mx.array) -> mx.array:
    """Each example's mean cross-entropy, over all steps, of those within its length."""
    losses = nn.losses.cross_entropy(Y_hat, Y.astype(mx.int32))
    return sequence_mask(losses, lens).mean(axis=1)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within it a model is in evaluation; afterwards each layer is as it was."""
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for layer, was_training in modes:
            layer._set_training_mode(was_training)
