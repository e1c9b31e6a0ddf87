"""The Transformer on PyTorch's face; tests/shim/each/translator.py trains it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from d2l_compat import torch as d2l
from tests.shim.each.translator import BLOCKS, HEADS, HIDDEN, WIDTH


class DecoderBlock(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.attention1 = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        self.addnorm1 = d2l.AddNorm(WIDTH, 0.0)
        self.attention2 = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0)
        self.addnorm2 = d2l.AddNorm(WIDTH, 0.0)
        self.ffn = d2l.PositionWiseFFN(HIDDEN, WIDTH)
        self.addnorm3 = d2l.AddNorm(WIDTH, 0.0)

    def forward(self, X: Tensor, state: Any) -> tuple[Tensor, Any]:
        encoded, lens, seen = state
        before = seen[self.number]
        keys = X if before is None else torch.cat((before, X), dim=1)
        seen[self.number] = keys
        own_lens = None
        if self.training:  # all words at once: each looks at those up to itself
            own_lens = torch.arange(1, X.shape[1] + 1, device=X.device).repeat(len(X), 1)
        Y = self.addnorm1(X, self.attention1(X, keys, keys, own_lens))
        Z = self.addnorm2(Y, self.attention2(Y, encoded, encoded, lens))
        return self.addnorm3(Z, self.ffn(Z)), state


class Decoder(d2l.AttentionDecoder):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, WIDTH)
        self.pos_encoding = d2l.PositionalEncoding(WIDTH, 0.0)
        self.blks = nn.Sequential(*(DecoderBlock(number) for number in range(BLOCKS)))
        self.dense = nn.Linear(WIDTH, vocab_size)

    def init_state(self, enc_all_outputs: Tensor, *args: Any) -> Any:
        return enc_all_outputs, args[0], [None] * BLOCKS

    def forward(self, X: Tensor, state: Any) -> tuple[Tensor, Any]:
        seen = state[2][0]
        offset = 0 if seen is None else seen.shape[1]
        X = self.pos_encoding(self.embedding(X) * math.sqrt(WIDTH), offset=offset)
        for block in self.blks:
            X, state = block(X, state)
        return self.dense(X), state

    @property
    def attention_weights(self) -> list[Tensor]:
        return [block.attention2.attention.attention_weights for block in self.blks]
