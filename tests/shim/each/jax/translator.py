"""The Transformer of tests/shim/each/translator.py in JAX."""

import math
import random
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from d2l_compat import jax as d2l
from tests.shim.each.translator import BLOCKS, HEADS, HIDDEN, WIDTH, Pairs, Translations, join


class DecoderBlock(nn.Module):
    number: int

    def setup(self) -> None:
        self.attention1 = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        self.addnorm1 = d2l.AddNorm(0.0)
        self.attention2 = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        self.addnorm2 = d2l.AddNorm(0.0)
        self.ffn = d2l.PositionWiseFFN(HIDDEN, WIDTH)
        self.addnorm3 = d2l.AddNorm(0.0)

    def __call__(
        self, X: jax.Array, state: Any, training: bool = False
    ) -> tuple[jax.Array, Any, jax.Array]:
        encoded, lens, seen = state
        before = seen[self.number]
        keys = X if before is None else jnp.concatenate((before, X), axis=1)
        seen[self.number] = keys
        own_lens = None
        if training:  # all tokens at once: each attends to those up to itself
            own_lens = jnp.tile(jnp.arange(1, X.shape[1] + 1), (len(X), 1))
        attended, _ = self.attention1(X, keys, keys, own_lens, training=training)
        Y = self.addnorm1(X, attended, training=training)
        attended, weights = self.attention2(Y, encoded, encoded, lens, training=training)
        Z = self.addnorm2(Y, attended, training=training)
        return self.addnorm3(Z, self.ffn(Z), training=training), state, weights


class Decoder(d2l.AttentionDecoder):
    vocab_size: int

    def setup(self) -> None:
        self.embedding = nn.Embed(self.vocab_size, WIDTH)
        self.pos_encoding = d2l.PositionalEncoding(WIDTH, 0.0)
        self.blks = [DecoderBlock(number) for number in range(BLOCKS)]
        self.dense = nn.Dense(self.vocab_size)

    def init_state(self, enc_all_outputs: jax.Array, *args: Any) -> Any:
        return enc_all_outputs, args[0], [None] * BLOCKS

    def __call__(self, X: jax.Array, state: Any, training: bool = False) -> tuple[jax.Array, Any]:
        seen = state[2][0]
        offset = 0 if seen is None else seen.shape[1]
        X = self.embedding(X) * math.sqrt(WIDTH)
        X = self.pos_encoding(X, training=training, offset=offset)
        attention_weights = []
        for block in self.blks:
            X, state, weights = block(X, state, training=training)
            attention_weights.append(weights)
        self.sow("intermediates", "dec_attention_weights", attention_weights)
        return self.dense(X), state


def train_with_trainer(data: Any, pairs: Pairs, epochs: int) -> Translations:
    random.seed(0)  # for the order of the batches
    encoder = d2l.TransformerEncoder(len(data.src_vocab), WIDTH, HIDDEN, HEADS, BLOCKS, 0.0)
    decoder = Decoder(len(data.tgt_vocab))
    pad = data.tgt_vocab["<pad>"]
    model = d2l.Seq2Seq(encoder, decoder, tgt_pad=pad, lr=0.005, training=True)
    trainer = d2l.Trainer(max_epochs=epochs, gradient_clip_val=1)
    trainer.fit(model, data, key=jax.random.key(0))
    assert {*model.board.data} == {"train_loss", "val_loss"}
    batch = data.build(*pairs)
    tokens, (weights, _) = model.predict_step(trainer.state.params, batch, data.num_steps, True)
    return Translations(
        [join(data.tgt_vocab.to_tokens(row)) for row in tokens],
        [[np.asarray(block[:HEADS]) for block in step] for step in weights],
        [loss for _, loss in model.board.data["train_loss"]],
    )
