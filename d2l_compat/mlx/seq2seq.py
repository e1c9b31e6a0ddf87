"""Encoders and decoders (Sutskever et al., 2014): their layers, training and translation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from mlx import nn, optimizers

from d2l_compat._shared import checks
from d2l_compat._shared import seq2seq as shared
from d2l_compat._shared.weights import AssignableWeights
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._dropout import Dropout
from d2l_compat.mlx._lazy import infer_sizes
from d2l_compat.mlx.training import Classifier, Module, clip_gradients

__all__ = [
    "GRU",
    "AttentionDecoder",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "MaskedSoftmaxCELoss",
    "Seq2Seq",
    "Seq2SeqEncoder",
    "init_seq2seq",
    "predict_seq2seq",
    "sequence_mask",
    "train_seq2seq",
]


class Encoder(shared.Encoder, nn.Module):
    """The base class of encoders: define ``__call__``, as in MLX, or ``forward``, as in PyTorch."""

    def __call__(self, X: Any, *args: Any) -> Any:
        """Call ``forward``."""
        return self.forward(X, *args)


class Decoder(shared.Decoder, nn.Module):
    """The base class of decoders: define ``init_state``, and ``__call__`` or ``forward``."""

    def __call__(self, X: Any, state: Any) -> Any:
        """Call ``forward``."""
        return self.forward(X, state)


class AttentionDecoder(AssignableWeights, shared.AttentionDecoder, Decoder):
    """The base class of decoders with attention: define ``attention_weights`` as well."""


class EncoderDecoder(shared.EncoderDecoder, Classifier):
    """An encoder, and a decoder that starts from its output.

    An instance of this class itself returns the decoder's output and state, as in D2L 0.17; an instance
    of a subclass, such as :class:`Seq2Seq`, returns the output only, as in D2L 1.0.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        """Store the two layers. Raises TypeError if one of them is not a layer."""
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
        """Decode a batch greedily; return tokens (batch, num_steps), and the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target
        are used. Dropout is off.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lengths, _ = batch
        with mx.stream(device), evaluation_mode(self):
            state = self.decoder.init_state(self.encoder(source, lengths), lengths)
            tokens, weights = shared.decode(
                self.decoder,
                state,
                target[:, :1],
                _pick_likeliest,
                num_steps,
                save_attention_weights,
            )
            return mx.concatenate(tokens, axis=1), weights


def _pick_likeliest(Y: mx.array) -> mx.array:
    return Y.argmax(axis=2)


class GRU(Module):
    """A multilayer network of gated recurrent units (Cho et al., 2014)."""

    def __init__(
        self, num_inputs: int, num_hiddens: int, num_layers: int, dropout: float = 0
    ) -> None:
        """Create the layers; ``dropout``, from 0 to 1, is the share of outputs dropped between them in training.

        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        super().__init__()
        self.save_hyperparameters()
        inputs, hiddens, layers = shared.recurrent_sizes(
            dropout, num_inputs=num_inputs, num_hiddens=num_hiddens, num_layers=num_layers
        )
        self.dropout_layer = Dropout(dropout)
        self.rnn = [nn.GRU(hiddens if layer else inputs, hiddens) for layer in range(layers)]

    def forward(self, inputs: mx.array, H: mx.array | None = None) -> tuple[mx.array, mx.array]:
        """Map ``inputs`` (steps, batch, inputs) to (steps, batch, hiddens) and a new state (layers, batch, hiddens)."""
        first_layer = self.rnn[0]
        arrays.check_sequence("inputs", inputs, first_layer.Wx.shape[1])
        if H is not None:
            arrays.check_state("H", H, len(self.rnn), inputs.shape[1], first_layer.hidden_size)
        outputs = inputs.swapaxes(0, 1)  # MLX's layers expect the batch first
        states = []
        for i, layer in enumerate(self.rnn):
            if i > 0:
                outputs = self.dropout_layer(outputs)
            outputs = layer(outputs, None if H is None else H[i])
            states.append(outputs[:, -1])
        return outputs.swapaxes(0, 1), mx.stack(states)


class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence, and returns its outputs at all steps and its final state."""

    def __init__(
        self,
        vocab_size: int,
        embed_size: int,
        num_hiddens: int,
        num_layers: int,
        dropout: float = 0,
    ) -> None:
        """Create the layers. Raises ValueError or TypeError for arguments of the wrong type or range."""
        super().__init__()
        vocab_size, embed_size = shared.recurrent_sizes(
            dropout, vocab_size=vocab_size, embed_size=embed_size
        )
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = GRU(embed_size, num_hiddens, num_layers, dropout)
        init_all(self)

    def __call__(self, X: mx.array, *args: Any) -> tuple[mx.array, mx.array]:
        """Map tokens (batch, steps) to (steps, batch, hiddens) and a new state (layers, batch, hiddens)."""
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        return self.rnn(self.embedding(X.T.astype(mx.int32)))


class Seq2Seq(EncoderDecoder):
    """An encoder and a decoder, trained with Adam at the learning rate ``lr``."""

    tgt_pad: int

    def __init__(self, encoder: nn.Module, decoder: nn.Module, tgt_pad: int, lr: float) -> None:
        """Create the model; ``tgt_pad`` is the index of the padding token, which the loss ignores."""
        super().__init__(encoder, decoder)
        self.save_hyperparameters()

    def validation_step(self, batch: Any) -> None:
        """Plot the loss of a batch, but no accuracy, which would count padding."""
        Module.validation_step(self, batch)

    def loss(self, Y_hat: mx.array, Y: mx.array, averaged: bool = True) -> mx.array:
        """Return the cross-entropy of tokens other than ``tgt_pad``.

        If not ``averaged``, there is a loss for each token, 0 for ``tgt_pad``.
        """
        losses = super().loss(Y_hat, Y, averaged=False)
        mask = (Y.flatten() != self.tgt_pad).astype(losses.dtype)
        losses = losses * mask
        return losses.sum() / mask.sum() if averaged else losses

    def configure_optimizers(self) -> optimizers.Optimizer:
        """Return Adam with the learning rate ``lr``."""
        return adam(self.lr)


def adam(lr: float) -> optimizers.Adam:
    """Return Adam with bias correction, as in its paper; MLX's default has none."""
    return optimizers.Adam(learning_rate=lr, bias_correction=True)


def init_seq2seq(module: nn.Module) -> None:
    """Initialize the weights of a linear layer or a GRU with Xavier's uniform distribution.

    Other layers stay as they are. So does a linear layer without sizes: its first call draws its
    weights.
    """
    init: Any = nn.init.glorot_uniform()
    if isinstance(module, nn.Linear) and "weight" in module:
        module.weight = init(module.weight)
    elif isinstance(module, nn.GRU):
        module.Wx = init(module.Wx)
        module.Wh = init(module.Wh)


def init_all(net: nn.Module) -> None:
    """Apply ``init_seq2seq`` to each layer of ``net``."""
    net.apply_to_modules(lambda _, layer: init_seq2seq(layer))


def sequence_mask(X: mx.array, valid_len: mx.array, value: float = 0) -> mx.array:
    """Return a copy of ``X`` with ``value`` in each example's steps past its length.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,). Raises
    ValueError or TypeError for a wrong shape or dtype.
    """
    arrays.check_sequence_mask(X, valid_len, value)
    is_past = mx.arange(X.shape[1]) >= valid_len.astype(mx.int64)[:, None]
    is_past = is_past.reshape(*is_past.shape, *[1] * (X.ndim - 2))
    return mx.where(is_past, mx.array(value, X.dtype), X)


class MaskedSoftmaxCELoss(nn.Module):
    """The softmax cross-entropy of sentences, without padding.

    For logits ``pred`` (batch, steps, vocab_size), tokens ``label`` (batch, steps) and lengths ``valid_len`` (batch,),
    it returns each example's mean over all steps, (batch,); steps past its length contribute 0. Raises ValueError or
    TypeError for a wrong shape or dtype.
    """

    def __call__(self, pred: mx.array, label: mx.array, valid_len: mx.array) -> mx.array:
        arrays.check_sentence_loss(pred, label)
        losses = nn.losses.cross_entropy(pred, label.astype(mx.int32))
        return sequence_mask(losses, valid_len).mean(axis=1)


def train_seq2seq(
    net: Any, data_iter: Any, lr: float, num_epochs: int, tgt_vocab: Any, device: mx.Device
) -> None:
    """Initialize ``net`` and train it with Adam and teacher forcing, as in D2L 0.17.

    Batches of ``data_iter`` are (source, source lengths, target, target lengths), as from
    ``load_data_nmt``. The loss per token is plotted every ten epochs, and printed at the end.
    """
    progress = shared.Progress(num_epochs, net, nn.Module, tgt_vocab, lr)
    init_all(net)
    net.train()
    optimizer = adam(lr)
    masked_loss = MaskedSoftmaxCELoss()

    def loss(X: mx.array, X_lens: mx.array, Y: mx.array, Y_lens: mx.array) -> mx.array:
        bos = mx.full((len(Y), 1), tgt_vocab[shared.BOS], Y.dtype)
        decoder_inputs = mx.concatenate([bos, Y[:, :-1]], axis=1)
        return masked_loss(shared.discard_state(net(X, decoder_inputs, X_lens)), Y, Y_lens).sum()

    def step(batch: Any) -> tuple[mx.array, mx.array]:
        infer_sizes(net, lambda: loss(*batch))
        total, gradients = nn.value_and_grad(net, loss)(*batch)
        optimizer.update(net, clip_gradients(gradients, 1))
        # Computed now, since otherwise the graphs of all steps would accumulate until the end.
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
    """Translate a sentence greedily; return the translation, and the attention weights of each step.

    Words are separated by spaces. Decoding stops at ``<eos>`` or after ``num_steps`` tokens.
    """
    shared.check_translation(net, src_sentence, src_vocab, tgt_vocab, num_steps)
    source, length = shared.encode_source(src_sentence, src_vocab, num_steps)
    lens = mx.array([length])
    bos = mx.array([[tgt_vocab[shared.BOS]]])
    eos = tgt_vocab[shared.EOS]
    with mx.stream(device), evaluation_mode(net):
        state = net.decoder.init_state(net.encoder(mx.array([source]), lens), lens)
        tokens, weights = shared.decode(
            net.decoder, state, bos, _pick_likeliest, num_steps, save_attention_weights, eos
        )
    return shared.join_tokens(tokens, tgt_vocab), weights


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """In this context, put the model in evaluation mode; afterwards restore each layer's mode."""
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for layer, was_training in modes:
            layer._set_training_mode(was_training)
