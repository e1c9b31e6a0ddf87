"""Encoders and decoders (Sutskever et al., 2014): their layers, training and translation."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from d2l_compat._shared import checks
from d2l_compat._shared import seq2seq as shared
from d2l_compat._shared.version import is_0_17
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch.training import Classifier, Module, clip_gradients

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
    """The base class of encoders: define ``forward``."""


class Decoder(shared.Decoder, nn.Module):
    """The base class of decoders: define ``init_state`` and ``forward``."""


class AttentionDecoder(shared.AttentionDecoder, Decoder):
    """The base class of decoders with attention: define ``attention_weights`` as well."""


class EncoderDecoder(shared.EncoderDecoder, Classifier):
    """An encoder, and a decoder that starts from its output.

    An instance of this class itself returns the decoder's output and state, as in D2L 0.17. An instance
    of a subclass, such as :class:`Seq2Seq`, returns only the output, as in D2L 1.0.
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
        device: torch.device,
        num_steps: int,
        save_attention_weights: bool = False,
    ) -> tuple[Tensor, list[Any]]:
        """Decode a batch greedily; return tokens (batch, num_steps), and the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target
        are used. Dropout is off.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lengths, _ = [tensor.to(device) for tensor in batch]
        with evaluation_mode(self):
            state = self.decoder.init_state(self.encoder(source, lengths), lengths)
            tokens, weights = shared.decode(
                self.decoder,
                state,
                target[:, :1],
                _pick_likeliest,
                num_steps,
                save_attention_weights,
            )
        return torch.cat(tokens, dim=1), weights


def _pick_likeliest(Y: Tensor) -> Tensor:
    return Y.argmax(dim=2)


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
        sizes = shared.recurrent_sizes(
            dropout, num_inputs=num_inputs, num_hiddens=num_hiddens, num_layers=num_layers
        )
        self.rnn = nn.GRU(*sizes, dropout=dropout if num_layers > 1 else 0)

    def forward(self, inputs: Tensor, H: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map ``inputs`` (steps, batch, inputs) to (steps, batch, hiddens) and a new state (layers, batch, hiddens)."""
        arrays.check_sequence("inputs", inputs, self.rnn.input_size)
        if H is not None:
            rnn = self.rnn
            arrays.check_state("H", H, rnn.num_layers, inputs.shape[1], rnn.hidden_size)
        return self.rnn(inputs, H)


class Seq2SeqEncoder(Encoder):
    """A GRU that reads a sentence, and returns its outputs at all steps and its final state.

    Its weights are drawn by :func:`init_seq2seq`. If ``D2L_VERSION`` is 0.17, PyTorch draws them, and ``rnn`` is an
    ``nn.GRU``.
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
        vocab_size, embed_size = shared.recurrent_sizes(
            dropout, vocab_size=vocab_size, embed_size=embed_size
        )
        self.embedding = nn.Embedding(vocab_size, embed_size)
        rnn = GRU(embed_size, num_hiddens, num_layers, dropout)
        if is_0_17():
            self.rnn: nn.Module = rnn.rnn
        else:
            self.rnn = rnn
            self.apply(init_seq2seq)

    def forward(self, X: Tensor, *args: Any) -> tuple[Tensor, Tensor]:
        """Map tokens (batch, steps) to (steps, batch, hiddens) and a new state (layers, batch, hiddens)."""
        arrays.check_tokens(X, self.embedding.weight.shape[0])
        return self.rnn(self.embedding(X.t().long()))


class Seq2Seq(EncoderDecoder):
    """An encoder and a decoder, trained with Adam at the learning rate ``lr``."""

    tgt_pad: int

    def __init__(self, encoder: nn.Module, decoder: nn.Module, tgt_pad: int, lr: float) -> None:
        """Create the model; ``tgt_pad`` is the index of the padding token, which the loss ignores."""
        super().__init__(encoder, decoder)
        self.save_hyperparameters()

    def validation_step(self, batch: Any) -> None:
        """Plot the loss of a batch, but not the accuracy, which would count padding."""
        Module.validation_step(self, batch)

    def loss(self, Y_hat: Tensor, Y: Tensor, averaged: bool = True) -> Tensor:
        """Return the mean cross-entropy, without padding; if not ``averaged``, one loss per token, 0 for padding."""
        losses = super().loss(Y_hat, Y, averaged=False)
        mask = (Y.flatten() != self.tgt_pad).to(losses.dtype)
        losses = losses * mask
        return losses.sum() / mask.sum() if averaged else losses

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam with the learning rate ``lr``."""
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def init_seq2seq(module: nn.Module) -> None:
    """Draw Xavier's uniform weights for a linear layer or a GRU; leave other layers unchanged.

    A linear layer that has no sizes yet stays unchanged too: its first call will draw its weights.
    """
    if isinstance(module, nn.Linear) and not isinstance(module, nn.LazyLinear):
        nn.init.xavier_uniform_(module.weight)
    elif isinstance(module, nn.GRU):
        for name, parameter in module.named_parameters():
            if "weight" in name:
                nn.init.xavier_uniform_(parameter)


def sequence_mask(X: Tensor, valid_len: Tensor, value: float = 0) -> Tensor:
    """Return a copy of ``X`` with ``value`` in each example's steps past its length.

    ``X`` has the shape (batch, steps) or (batch, steps, ...), ``valid_len`` (batch,). Raises
    ValueError or TypeError for a wrong shape or dtype.
    """
    arrays.check_sequence_mask(X, valid_len, value)
    steps = torch.arange(X.shape[1], device=X.device)
    is_past = steps >= valid_len.to(X.device, torch.int64)[:, None]
    return X.masked_fill(is_past.reshape(*is_past.shape, *[1] * (X.ndim - 2)), value)


class MaskedSoftmaxCELoss(nn.CrossEntropyLoss):
    """The softmax cross-entropy of sentences, without padding.

    For logits ``pred`` (batch, steps, vocab_size), tokens ``label`` (batch, steps) and lengths ``valid_len`` (batch,),
    it returns each example's mean over all steps, (batch,); steps past its length contribute 0. Raises ValueError or
    TypeError for a wrong shape or dtype.
    """

    def forward(self, pred: Tensor, label: Tensor, valid_len: Tensor) -> Tensor:  # type: ignore[override]
        arrays.check_sentence_loss(pred, label)
        self.reduction = "none"
        losses = super().forward(pred.transpose(1, 2), label.long())
        return sequence_mask(losses, valid_len).mean(dim=1)


def train_seq2seq(
    net: Any, data_iter: Any, lr: float, num_epochs: int, tgt_vocab: Any, device: torch.device
) -> None:
    """Reinitialize ``net`` and train it with Adam and teacher forcing, as in D2L 0.17.

    ``data_iter`` yields (source, source lengths, target, target lengths), as ``load_data_nmt``
    does. The loss per token is plotted every ten epochs, and printed at the end.
    """
    progress = shared.Progress(num_epochs, net, nn.Module, tgt_vocab, lr)
    net.apply(init_seq2seq)
    net.to(device)
    net.train()
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    masked_loss = MaskedSoftmaxCELoss()

    def step(batch: Any) -> tuple[Tensor, Tensor]:
        X, X_lens, Y, Y_lens = [tensor.to(device) for tensor in batch]
        first = torch.full_like(Y[:, :1], tgt_vocab[shared.BOS])
        Y_hat = shared.discard_state(net(X, torch.cat([first, Y[:, :-1]], dim=1), X_lens))
        optimizer.zero_grad()
        loss = masked_loss(Y_hat, Y, Y_lens).sum()
        loss.backward()
        clip_gradients(net, 1)
        optimizer.step()
        return loss, Y_lens.sum()

    progress.train(data_iter, step, device, arrays)


def predict_seq2seq(
    net: Any,
    src_sentence: str,
    src_vocab: Any,
    tgt_vocab: Any,
    num_steps: int,
    device: torch.device,
    save_attention_weights: bool = False,
) -> tuple[str, list[Any]]:
    """Translate a sentence greedily; return the translation, and the attention weights of each step.

    Words are separated by spaces. Decoding stops at ``<eos>`` or after ``num_steps`` tokens.
    """
    shared.check_translation(net, src_sentence, src_vocab, tgt_vocab, num_steps)
    source, length = shared.encode_source(src_sentence, src_vocab, num_steps)
    lens = torch.tensor([length], device=device)
    first = torch.tensor([[tgt_vocab[shared.BOS]]], device=device)
    end = tgt_vocab[shared.EOS]
    with evaluation_mode(net):
        encoded = net.encoder(torch.tensor([source], device=device), lens)
        state = net.decoder.init_state(encoded, lens)
        tokens, weights = shared.decode(
            net.decoder, state, first, _pick_likeliest, num_steps, save_attention_weights, end
        )
    return shared.join_tokens(tokens, tgt_vocab), weights


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Put ``model`` into evaluation mode, without gradients; restore each layer's mode afterwards."""
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for layer, was_training in modes:
            layer.training = was_training


def prediction_mode(net: Any) -> AbstractContextManager[None]:
    """Return :func:`evaluation_mode` for a layer, or a context without gradients for a function."""
    return evaluation_mode(net) if isinstance(net, nn.Module) else torch.no_grad()
