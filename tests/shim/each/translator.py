"""A Transformer with a decoder, as a reader of D2L writes and trains it in each framework.

JAX has its own ``translator`` with the sizes below, since Flax's modules are written differently.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

WIDTH, HIDDEN, HEADS, BLOCKS = 32, 64, 4, 1
Pairs = tuple[list[str], list[str]]


@dataclass
class Translations:
    sentences: list[str]  # up to <eos>
    weights: list[Any]  # the decoder's attention to the source at each step of one sentence
    losses: list[float]  # those that training plotted


def join(tokens: list[str]) -> str:
    """Join the tokens before <eos>."""
    end = tokens.index("<eos>") if "<eos>" in tokens else len(tokens)
    return " ".join(tokens[:end])


def make_decoder(adapter: Any, vocab_size: int) -> Any:
    """Make a decoder of one block."""
    d2l = adapter.d2l

    class DecoderBlock(adapter.Block):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.attention1 = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
            self.addnorm1 = d2l.AddNorm(*adapter.addnorm_args(WIDTH))
            self.attention2 = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
            self.addnorm2 = d2l.AddNorm(*adapter.addnorm_args(WIDTH))
            self.ffn = d2l.PositionWiseFFN(HIDDEN, WIDTH)
            self.addnorm3 = d2l.AddNorm(*adapter.addnorm_args(WIDTH))

        def forward(self, X: Any, state: Any, training: bool | None = None) -> Any:
            encoded, lens, seen = state
            keys = X if seen[0] is None else d2l.concat([seen[0], X], 1)
            seen[0] = keys
            own_lens = None
            if adapter.is_training(self, training):
                # All tokens at once: each attends to those up to itself.
                own_lens = adapter.tensor(np.tile(np.arange(1, X.shape[1] + 1), (X.shape[0], 1)))
            Y = self.addnorm1(X, self.attention1(X, keys, keys, own_lens))
            Z = self.addnorm2(Y, self.attention2(Y, encoded, encoded, lens))
            return self.addnorm3(Z, self.ffn(Z)), state

    class Decoder(d2l.AttentionDecoder):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = adapter.Embedding(vocab_size, WIDTH)
            self.pos_encoding = d2l.PositionalEncoding(WIDTH, 0.0)
            self.block = DecoderBlock()
            self.dense = adapter.build_dense(WIDTH, vocab_size)

        def init_state(self, enc_all_outputs: Any, *args: Any) -> Any:
            return [enc_all_outputs, args[0], adapter.first_keys(enc_all_outputs)]

        def forward(self, X: Any, state: Any) -> Any:
            offset = 0 if state[2][0] is None else state[2][0].shape[1]
            X = self.pos_encoding(self.embedding(X) * math.sqrt(WIDTH), offset=offset)
            X, state = self.block(X, state)
            return self.dense(X), state

        @property
        def attention_weights(self) -> Any:
            return [self.block.attention2.attention.attention_weights]

    for layer in DecoderBlock, Decoder:
        setattr(layer, adapter.CALL_METHOD, layer.forward)
    return adapter.initialize(Decoder())


def train_with_trainer(adapter: Any, data: Any, pairs: Pairs, epochs: int) -> Translations:
    """Train a ``Seq2Seq`` on ``data`` (an ``MTFraEng``) with a ``Trainer``, as in D2L 1.0.

    ``pairs`` are the arguments of ``data.build``.
    """
    seed_all(adapter)
    d2l = adapter.d2l
    encoder = d2l.TransformerEncoder(len(data.src_vocab), WIDTH, HIDDEN, HEADS, BLOCKS, 0.0)
    parts = encoder, make_decoder(adapter, len(data.tgt_vocab))
    model = d2l.Seq2Seq(*parts, tgt_pad=data.tgt_vocab["<pad>"], lr=0.005)
    d2l.Trainer(max_epochs=epochs, gradient_clip_val=1).fit(model, data)
    batch = data.build(*pairs)
    tokens, weights = model.predict_step(batch, d2l.cpu(), data.num_steps, True)
    return Translations(
        [join(data.tgt_vocab.to_tokens(row)) for row in adapter.to_numpy(tokens)],
        [[block[:HEADS] for block in step] for step in adapter.to_numpy(weights)],
        [loss for _, loss in model.board.data["train_loss"]],
    )


def train_with_functions(
    adapter: Any, load: Callable[[], Any], pairs: Pairs, num_steps: int, epochs: int
) -> Translations:
    """Train an ``EncoderDecoder`` with ``train_seq2seq``, as in D2L 0.17; ``load`` calls ``load_data_nmt``."""
    seed_all(adapter)
    d2l = adapter.d2l
    batches, src_vocab, tgt_vocab = load()
    sizes = adapter.block_sizes(WIDTH)
    encoder = d2l.TransformerEncoder(len(src_vocab), *sizes, HIDDEN, HEADS, BLOCKS, 0.0)
    net = d2l.EncoderDecoder(encoder, make_decoder(adapter, len(tgt_vocab)))
    d2l.train_seq2seq(net, batches, 0.005, epochs, tgt_vocab, d2l.cpu())
    predict = d2l.predict_seq2seq
    device = [d2l.cpu()] if "device" in signature(predict).parameters else []
    vocabs = src_vocab, tgt_vocab
    results = [predict(net, source, *vocabs, num_steps, *device, True) for source in pairs[0]]
    return Translations([text for text, _ in results], adapter.to_numpy(results[0][1]), [])


def seed_all(adapter: Any) -> None:
    """Seed the framework and the generators of NumPy and Python, which some loaders use."""
    random.seed(0)
    np.random.seed(0)
    adapter.seed(0)
