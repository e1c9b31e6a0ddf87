"""The Transformer on TensorFlow's face; tests/shim/each/translator.py trains it."""

import math
from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras
from tests.shim.each.translator import BLOCKS, HEADS, HIDDEN, WIDTH


class DecoderBlock(keras.layers.Layer):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.attention1 = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        self.addnorm1 = d2l.AddNorm([2], 0.0)
        self.attention2 = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        self.addnorm2 = d2l.AddNorm([2], 0.0)
        self.ffn = d2l.PositionWiseFFN(HIDDEN, WIDTH)
        self.addnorm3 = d2l.AddNorm([2], 0.0)

    def call(self, X: Tensor, state: Any, training: bool = False) -> tuple[Tensor, Any]:
        encoded, lens, seen = state
        seen[self.number] = keys = tf.concat((seen[self.number], X), axis=1)
        own_lens = None
        if training:  # all words at once: each looks at those up to itself
            batch, steps, _ = X.shape
            own_lens = tf.repeat(tf.range(1, steps + 1)[tf.newaxis], batch, axis=0)
        Y = self.addnorm1(X, self.attention1(X, keys, keys, own_lens))
        Z = self.addnorm2(Y, self.attention2(Y, encoded, encoded, lens))
        return self.addnorm3(Z, self.ffn(Z)), state


class Decoder(d2l.AttentionDecoder):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embedding = keras.layers.Embedding(vocab_size, WIDTH)
        self.pos_encoding = d2l.PositionalEncoding(WIDTH, 0.0)
        self.blks = [DecoderBlock(number) for number in range(BLOCKS)]
        self.dense = keras.layers.Dense(vocab_size)

    def init_state(self, enc_all_outputs: Tensor, *args: Any) -> Any:
        nothing_yet = tf.zeros((len(enc_all_outputs), 0, WIDTH))  # of None, old Kerases fail
        return [enc_all_outputs, args[0], [nothing_yet] * BLOCKS]

    def call(self, X: Tensor, state: Any) -> tuple[Tensor, Any]:
        offset = state[2][0].shape[1]
        X = self.pos_encoding(self.embedding(X) * math.sqrt(WIDTH), offset=offset)
        for block in self.blks:
            X, state = block(X, state)
        return self.dense(X), state

    @property
    def attention_weights(self) -> list[Tensor]:
        return [block.attention2.attention.attention_weights for block in self.blks]
