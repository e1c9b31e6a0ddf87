"""Encoders and decoders (Sutskever et al., 2014): their layers, training and translation."""

from typing import Any

import numpy as onp
from mxnet import Context, autograd, gluon, init, np
from mxnet.gluon import nn, rnn

from d2l_compat._shared import checks, version
from d2l_compat._shared import seq2seq as shared
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet._dropout import Dropout
from d2l_compat.mxnet.training import Classifier, Module, clip_gradients

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


class Encoder(shared.Encoder, nn.Block):
    """The base class of encoders: define ``forward``."""


class Decoder(shared.Decoder, nn.Block):
    """The base class of decoders: define ``init_state`` and ``forward``."""


class AttentionDecoder(shared.AttentionDecoder, Decoder):
    """The base class of decoders with attention: define ``attention_weights`` as well."""


class EncoderDecoder(shared.EncoderDecoder, Classifier):
    """An encoder, and a decoder that starts from its output.

    An instance of this class itself returns the decoder's output and state, as in D2L 0.17. An instance
    of a subclass, such as :class:`Seq2Seq`, returns only the output, as in D2L 1.0.
    """

    def __init__(self, encoder: nn.Block, decoder: nn.Block) -> None:
        """Store the two layers. Raises TypeError if one of them is not a layer."""
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
        """Decode a batch greedily; return tokens (batch, num_steps), and the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target
        are used. Dropout is off.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lengths, _ = [tensor.as_in_ctx(device) for tensor in batch]
        with autograd.pause():
            state = self.decoder.init_state(self.encoder(source, lengths), lengths)
            tokens, weights = shared.decode(
                self.decoder,
                state,
                target[:, :1],
                _pick_likeliest,
                num_steps,
                save_attention_weights,
            )
        return np.concatenate(tokens, axis=1), weights


def _pick_likeliest(Y: np.ndarray) -> np.ndarray:
    return Y.argmax(axis=2)


class GRU(Module):
    """A multilayer network of gated recurrent units (Cho et al., 2014)."""

    def __init__(self, num_hiddens: int, num_layers: int, dropout: float = 0) -> None:
        """Create the layers; ``dropout``, from 0 to 1, is the share of outputs dropped between them in training.

        Raises ValueError or TypeError for arguments of the wrong type or range.
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
        """Map (steps, batch, inputs) to (steps, batch, hiddens) and the new state.

        The previous state, ``H``, and the new one have the shape (layers, batch, hiddens).
        """
        weight = self.rnn.l0_i2h_weight
        input_size = weight.shape[-1]  # 0 or -1 until the first input sets it
        input_size = input_size if input_size > 0 else None
        arrays.check_sequence("inputs", inputs, input_size, arrays.dtype(weight))
        batch = inputs.shape[1]
        if H is not None:
            arrays.check_state("H", H, self.rnn._num_layers, batch, self.rnn._hidden_size)
        else:  # Gluon's layer returns its state only if it is called with one
            [H] = self.rnn.begin_state(batch, ctx=inputs.ctx, dtype=inputs.dtype)
        outputs, [state] = self.rnn(inputs, [H])
        return outputs, state


class _GRU(rnn.GRU):
    """Gluon's GRU, with dropout between its layers.

    On the CPU, MXNet computes a GRU with oneDNN, which omits dropout. So this class computes the layers one by one.
    """

    def __init__(self, num_hiddens: int, num_layers: int, dropout: float) -> None:
        super().__init__(num_hiddens, num_layers)
        self.dropout = Dropout(dropout)

    def __repr__(self) -> str:
        return str(super().__repr__()).removeprefix("_")

    def _forward_kernel(
        self, F: Any, inputs: Any, states: Any, sequence_length: Any, **parameters: Any
    ) -> Any:
        if self._num_layers == 1 or not self.dropout._rate:
            return super()._forward_kernel(F, inputs, states, sequence_length, **parameters)
        new_states = []
        names = ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")
        for layer in range(self._num_layers):
            inputs = self.dropout(inputs) if layer else inputs
            flat = [parameters[f"l{layer}_{name}"].reshape(-1) for name in names]
            inputs, state = F.npx.rnn(
                inputs,
                F.np._internal.rnn_param_concat(*flat, dim=0),
                states[0][layer : layer + 1],
                mode="gru",
                state_size=self._hidden_size,
                num_layers=1,
                state_outputs=True,
            )
            new_states.append(state)
        return inputs, [F.np.concatenate(new_states, axis=0)]


# Gluon names parameters by their layer's class, and trainers sort them by these names.
_GRU.__name__ = rnn.GRU.__name__


class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence, and returns its outputs at all steps and its final state.

    Its weights are initialized at once, by Xavier's rule. If ``D2L_VERSION`` is 0.17, they are not initialized, and
    ``rnn`` is Gluon's layer.
    """

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
        sizes = shared.recurrent_sizes(dropout, vocab_size=vocab_size, embed_size=embed_size)
        self.embedding = nn.Embedding(*sizes)
        layer = GRU(num_hiddens, num_layers, dropout)
        if version.is_0_17():
            self.rnn = layer.rnn
        else:
            self.rnn = layer
            self.initialize(init.Xavier())

    def forward(self, X: np.ndarray, *args: Any) -> tuple[np.ndarray, Any]:
        """Map tokens (batch, steps) to (steps, batch, hiddens) and the state of :class:`GRU`.

        If D2L_VERSION is 0.17, the state is wrapped in a list.
        """
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        embedded = self.embedding(X.T)
        if version.is_0_17():
            state = self.rnn.begin_state(X.shape[0], ctx=X.ctx, dtype=embedded.dtype)
            return self.rnn(embedded, state)
        return self.rnn(embedded)


class Seq2Seq(EncoderDecoder):
    """An encoder and a decoder, trained with Adam at the learning rate ``lr``."""

    tgt_pad: int

    def __init__(self, encoder: nn.Block, decoder: nn.Block, tgt_pad: int, lr: float) -> None:
        """Create the model; ``tgt_pad`` is the index of the padding token, which the loss ignores."""
        super().__init__(encoder, decoder)
        self.save_hyperparameters()

    def validation_step(self, batch: Any) -> None:
        """Plot the loss of a batch, but not the accuracy, which would count padding."""
        Module.validation_step(self, batch)

    def loss(self, Y_hat: np.ndarray, Y: np.ndarray, averaged: bool = True) -> np.ndarray:
        """Return the mean cross-entropy, without padding; if not ``averaged``, one loss per token, 0 for padding."""
        losses = super().loss(Y_hat, Y, averaged=False)
        mask = (Y.reshape(-1) != self.tgt_pad).astype(losses.dtype)
        losses = losses * mask
        return losses.sum() / mask.sum() if averaged else losses

    def configure_optimizers(self) -> gluon.Trainer:
        """Return Adam with the learning rate ``lr``."""
        return gluon.Trainer(self.parameters(), "adam", {"learning_rate": self.lr})


def sequence_mask(X: np.ndarray, valid_len: np.ndarray, value: float = 0) -> np.ndarray:
    """Return a copy of ``X`` with ``value`` in each example's steps past its length.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,): whole
    numbers of an integer or floating-point dtype. Raises ValueError or TypeError for another
    shape or dtype.
    """
    lens = arrays.check_sequence_mask(X, valid_len, value)
    is_valid = onp.arange(X.shape[1]) < lens[:, None]
    is_valid = is_valid.reshape(*is_valid.shape, *[1] * (X.ndim - 2))
    if not X.size:  # MXNet's `where` would crash the process
        return X
    # With a plain number, `np.where` swaps the gradients of its two branches (apache/mxnet#17893).
    padding = np.full((1,) * X.ndim, value, X.dtype, ctx=X.ctx)
    return np.where(np.array(is_valid, dtype=bool, ctx=X.ctx), X, padding)


class MaskedSoftmaxCELoss(gluon.loss.SoftmaxCELoss):
    """The softmax cross-entropy of sentences, without padding.

    For logits ``pred`` (batch, steps, vocab_size), tokens ``label`` (batch, steps) and lengths ``valid_len`` (batch,),
    it returns each example's mean over all steps, (batch,); steps past its length contribute 0. Raises ValueError or
    TypeError for a wrong shape or dtype.
    """

    def forward(self, pred: np.ndarray, label: np.ndarray, valid_len: np.ndarray) -> np.ndarray:
        arrays.check_sentence_loss(pred, label)
        weights = sequence_mask(np.ones_like(pred[..., :1]), valid_len)
        return super().forward(pred, label, weights)


def train_seq2seq(
    net: Any, data_iter: Any, lr: float, num_epochs: int, tgt_vocab: Any, device: Context
) -> None:
    """Reinitialize ``net`` and train it with Adam and teacher forcing, as in D2L 0.17.

    ``data_iter`` yields (source, source lengths, target, target lengths), as ``load_data_nmt``
    does. The loss per token is plotted every ten epochs, and printed at the end.
    """
    progress = shared.Progress(num_epochs, net, nn.Block, tgt_vocab, lr)
    net.initialize(init.Xavier(), force_reinit=True, ctx=device)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": lr})
    masked_loss = MaskedSoftmaxCELoss()

    def step(batch: Any) -> tuple[np.ndarray, int]:
        X, X_lens, Y, Y_lens = [tensor.as_in_ctx(device) for tensor in batch]
        bos = np.full_like(Y[:, :1], tgt_vocab[shared.BOS])
        dec_X = np.concatenate((bos, Y[:, :-1]), axis=1)
        with autograd.record():
            Y_hat = shared.discard_state(net(X, dec_X, X_lens))
            loss = masked_loss(Y_hat, Y, Y_lens).sum()
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
    """Translate a sentence greedily; return the translation, and the attention weights of each step.

    Words are separated by spaces. Decoding stops at ``<eos>`` or after ``num_steps`` tokens.
    """
    shared.check_translation(net, src_sentence, src_vocab, tgt_vocab, num_steps)
    source, source_len = shared.encode_source(src_sentence, src_vocab, num_steps)

    def to_tensor(tokens: Any) -> np.ndarray:
        return np.array(tokens, dtype="int32", ctx=device)

    with autograd.pause():
        lens = to_tensor([source_len])
        state = net.decoder.init_state(net.encoder(to_tensor([source]), lens), lens)
        bos = to_tensor([[tgt_vocab[shared.BOS]]])
        eos = tgt_vocab[shared.EOS]
        tokens, weights = shared.decode(
            net.decoder, state, bos, _pick_likeliest, num_steps, save_attention_weights, eos
        )
    return shared.join_tokens(tokens, tgt_vocab), weights
