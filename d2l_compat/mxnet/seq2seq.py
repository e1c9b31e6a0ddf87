"""Encoders and decoders, how they learn to translate, and how they do it: Sutskever et al. (2014)."""

from typing import Any

import numpy as onp
from mxnet import Context, autograd, gluon, init, np
from mxnet.gluon import nn, rnn

from d2l_compat._shared import checks, version
from d2l_compat._shared import seq2seq as shared
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet._dropout import Dropout
from d2l_compat.mxnet.training import Classifier, Module, clip_gradients, cross_entropy

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


class Encoder(shared.Encoder, nn.Block):
    """The base class of encoders: define ``forward``."""


class Decoder(shared.Decoder, nn.Block):
    """The base class of decoders: define ``init_state`` and ``forward``."""


class AttentionDecoder(shared.AttentionDecoder, Decoder):
    """The base class of decoders that attend: define ``attention_weights`` as well."""


class EncoderDecoder(shared.EncoderDecoder, Classifier):
    """An encoder, and a decoder that starts from what it gives.

    A model of this class itself gives its output and its state, as in D2L 0.17, whose pages make
    such; one of a subclass, as :class:`Seq2Seq` is, its output alone, as in D2L 1.0.
    """

    def __init__(self, encoder: nn.Block, decoder: nn.Block) -> None:
        """Raises TypeError if one of the two is not a layer."""
        super().__init__()
        checks.check_instance("encoder", encoder, nn.Block, "a layer")
        checks.check_instance("decoder", decoder, nn.Block, "a layer")
        self.encoder = encoder
        self.decoder = decoder

    def predict_step(
        self,
        batch: Any,
        device: Context,
        num_steps: int,
        save_attention_weights: bool = False,
    ) -> tuple[np.ndarray, list[Any]]:
        """Decode, taking the likeliest token each time; also the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels), of which the target's first tokens
        are used. Returns tokens of shape (batch, num_steps). Dropout is off meanwhile.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lengths, _ = [tensor.as_in_ctx(device) for tensor in batch]
        with autograd.pause():
            state = self.decoder.init_state(self.encoder(source, lengths), lengths)
            tokens, weights = shared.decode(
                self.decoder, state, target[:, :1], _likeliest, num_steps, save_attention_weights
            )
        return np.concatenate(tokens, axis=1), weights


def _likeliest(Y: np.ndarray) -> np.ndarray:
    return Y.argmax(axis=2)


class GRU(Module):
    """Gated recurrent units in layers: Cho et al. (2014)."""

    def __init__(self, num_hiddens: int, num_layers: int, dropout: float = 0) -> None:
        """``dropout``, from 0 to 1, is the share dropped between layers in training.

        Raises ValueError or TypeError for arguments of a wrong range or kind.
        """
        super().__init__()
        num_hiddens, num_layers = shared.recurrent_sizes(
            dropout, num_hiddens=num_hiddens, num_layers=num_layers
        )
        self.save_hyperparameters()
        self.rnn = _GRU(num_hiddens, num_layers, dropout)

    def __call__(self, inputs: np.ndarray, H: np.ndarray | None = None) -> Any:
        return super().__call__(inputs, H)

    def forward(
        self, inputs: np.ndarray, H: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(steps, batch, inputs) to (steps, batch, hiddens), and the state.

        ``H``, the state before, and that after are of shape (layers, batch, hiddens).
        """
        weight = self.rnn.l0_i2h_weight
        size = weight.shape[-1]  # not above 0 before the first input tells it
        size = size if size > 0 else None
        arrays.check_sequence("inputs", inputs, size, arrays.dtype(weight))
        if H is not None:
            rnn = self.rnn
            arrays.check_state("H", H, rnn._num_layers, inputs.shape[1], rnn._hidden_size)
        if H is None:  # Gluon's layer gives its state only to those who give it one
            batch, dtype = inputs.shape[1], inputs.dtype
            [H] = self.rnn.begin_state(batch, ctx=inputs.ctx, dtype=dtype)
        outputs, [state] = self.rnn(inputs, [H])
        return outputs, state


class _GRU(rnn.GRU):
    """Gluon's, with dropout between its layers: on the CPU MXNet's own forgets it.

    oneDNN, which computes it there, knows no dropout. So layers are computed one by one.
    """

    def __init__(self, num_hiddens: int, num_layers: int, dropout: float) -> None:
        super().__init__(num_hiddens, num_layers)
        self.dropout = Dropout(dropout)

    def _forward_kernel(
        self, F: Any, inputs: Any, states: Any, sequence_length: Any, **parameters: Any
    ) -> Any:
        if self._num_layers == 1 or not self.dropout._rate:
            return super()._forward_kernel(F, inputs, states, sequence_length, **parameters)
        after = []
        for layer in range(self._num_layers):
            inputs = self.dropout(inputs) if layer else inputs
            kinds = ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")
            flat = [parameters[f"l{layer}_{kind}"].reshape(-1) for kind in kinds]
            inputs, state = F.npx.rnn(
                inputs,
                F.np._internal.rnn_param_concat(*flat, dim=0),
                states[0][layer : layer + 1],
                mode="gru",
                state_size=self._hidden_size,
                num_layers=1,
                state_outputs=True,
            )
            after.append(state)
        return inputs, [F.np.concatenate(after, axis=0)]


class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence: its outputs at all steps, and its state at the end.

    Its weights are there to begin with, drawn by Xavier's rule.
    """

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
        sizes = shared.recurrent_sizes(dropout, vocab_size=vocab_size, embed_size=embed_size)
        self.embedding = nn.Embedding(*sizes)
        self.rnn = GRU(num_hiddens, num_layers, dropout)
        self.initialize(init.Xavier())

    def forward(self, X: np.ndarray, *args: Any) -> tuple[np.ndarray, Any]:
        """Tokens (batch, steps) to (steps, batch, hiddens), and the state, as of :class:`GRU`.

        Where D2L_VERSION is 0.17, the state is in a list of its own.
        """
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        outputs, state = self.rnn(self.embedding(X.T))
        return outputs, [state] if version.is_0_17() else state


class Seq2Seq(EncoderDecoder):
    """Encoder and decoder, trained with Adam at the learning rate ``lr``."""

    tgt_pad: int

    def __init__(self, encoder: nn.Block, decoder: nn.Block, tgt_pad: int, lr: float) -> None:
        """``tgt_pad`` is the number of the token that fills up sentences; it does not count."""
        super().__init__(encoder, decoder)
        self.save_hyperparameters()

    def validation_step(self, batch: Any) -> None:
        """Draw the loss of a batch, and not the share of tokens that are right, which counts padding."""
        Module.validation_step(self, batch)

    def loss(self, Y_hat: np.ndarray, Y: np.ndarray, averaged: bool = True) -> np.ndarray:
        """Cross-entropy of the tokens that are not ``tgt_pad``; not averaged, 0 at those."""
        losses = super().loss(Y_hat, Y, averaged=False)
        counts = (Y.reshape(-1) != self.tgt_pad).astype(losses.dtype)
        losses = losses * counts
        return losses.sum() / counts.sum() if averaged else losses

    def configure_optimizers(self) -> gluon.Trainer:
        """Adam, at the learning rate ``lr``."""
        return gluon.Trainer(self.parameters(), "adam", {"learning_rate": self.lr})


def sequence_mask(X: np.ndarray, valid_len: np.ndarray, value: float = 0) -> np.ndarray:
    """``X`` with ``value`` in each example's steps past its length; ``X`` itself is not changed.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,): whole
    numbers of an integer or floating-point dtype. Raises ValueError or TypeError for another
    shape or dtype.
    """
    lens = arrays.check_sequence_mask(X, valid_len, value)
    valid = onp.arange(X.shape[1]) < lens[:, None]
    valid = valid.reshape(*valid.shape, *[1] * (X.ndim - 2))
    if not X.size:  # MXNet's own would end the process
        return X
    # Given a number as it is, its own swaps the gradients of the two branches (apache/mxnet#17893).
    padding = np.full((1,) * X.ndim, value, X.dtype, ctx=X.ctx)
    return np.where(np.array(valid, dtype=bool, ctx=X.ctx), X, padding)


def train_seq2seq(
    net: Any, data_iter: Any, lr: float, num_epochs: int, tgt_vocab: Any, device: Context
) -> None:
    """D2L 0.17's training: initialize ``net`` anew, then fit it with Adam and teacher forcing.

    ``data_iter`` gives (source, source lengths, target, target lengths), as ``load_data_nmt``
    makes them. The loss per token is drawn every ten epochs, and printed at the end.
    """
    progress = shared.Progress(num_epochs, net, nn.Block, tgt_vocab, lr)
    net.initialize(init.Xavier(), force_reinit=True, ctx=device)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": lr})

    def step(batch: Any) -> tuple[np.ndarray, int]:
        X, X_lens, Y, Y_lens = [tensor.as_in_ctx(device) for tensor in batch]
        first = np.full_like(Y[:, :1], tgt_vocab[shared.BOS])
        teacher = np.concatenate((first, Y[:, :-1]), axis=1)
        with autograd.record():
            Y_hat = shared.discard_state(net(X, teacher, X_lens))
            # Each example's mean over all steps, of those within its length.
            loss = sequence_mask(cross_entropy(Y_hat, Y), Y_lens).mean(axis=1).sum()
        loss.backward()
        clip_gradients(net, 1)
        num_tokens = int(Y_lens.sum())
        trainer.step(num_tokens)
        return loss, num_tokens

    progress.train(data_iter, step, device, arrays)


def predict_seq2seq(
    net: Any,
    src_sentence: str,
    src_vocab: Any,
    tgt_vocab: Any,
    num_steps: int,
    device: Context,
    save_attention_weights: bool = False,
) -> tuple[str, list[Any]]:
    """Translate a sentence, its words separated by blanks; also the attention weights of each step.

    The likeliest token is taken each time, until ``<eos>`` or ``num_steps`` tokens.
    """
    shared.check_translation(net, src_sentence, src_vocab, tgt_vocab, num_steps)
    source, length = shared.encode_source(src_sentence, src_vocab, num_steps)

    def numbers(values: Any) -> np.ndarray:
        return np.array(values, dtype="int32", ctx=device)

    with autograd.pause():
        lens = numbers([length])
        state = net.decoder.init_state(net.encoder(numbers([source]), lens), lens)
        first, end = numbers([[tgt_vocab[shared.BOS]]]), tgt_vocab[shared.EOS]
        tokens, weights = shared.decode(
            net.decoder, state, first, _likeliest, num_steps, save_attention_weights, end
        )
    return shared.join_tokens(tokens, tgt_vocab), weights
