"""A Transformer of today: a block with options, and models made of such blocks.

The block is that of Vaswani et al. (2017), section 3.1, with what has been added since: normalization before the
layers (Xiong et al., 2020), RMSNorm (Zhang and Sennrich, 2019), gated networks (Shazeer, 2020), rotary positions (Su et
al., 2021) or ALiBi (Press et al., 2022), and fewer heads of keys and values (Ainslie et al., 2023).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from d2l_compat._shared import block_layers, checks, encoding
from d2l_compat._shared import blocks as shared
from d2l_compat._shared.blocks import BlockOptions, count_transformer_parameters
from d2l_compat._shared.cache import new_positions, start_lengths
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch.attention import MultiHeadAttention
from d2l_compat.torch.generation import CausalSelfAttention, KVCache
from d2l_compat.torch.seq2seq import Seq2Seq, evaluation_mode

__all__ = [
    "BlockDecoder",
    "BlockEncoder",
    "BlockSeq2Seq",
    "TransformerBlock",
    "count_transformer_parameters",
]


class _SelfAttention(CausalSelfAttention):
    """Self-attention with or without a causal mask, and with a bias of the scores."""

    def __init__(self, options: BlockOptions) -> None:
        sizes = options.sizes
        super().__init__(
            sizes.num_hiddens,
            sizes.num_heads,
            options.dropout,
            options.bias,
            num_kv_heads=sizes.num_kv_heads,
            rope=sizes.rope,
            window=sizes.window,
            num_sinks=sizes.num_sinks,
        )
        self.options = options

    def forward(
        self,
        X: Tensor,
        valid_lens: Tensor | None = None,
        cache: KVCache | None = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        options, sizes = self.options, self.sizes
        shared.check_cache(cache, score_bias, options)
        if options.causal and options.positions != "alibi" and score_bias is None:
            return super().forward(X, valid_lens, cache)
        arrays.check_texts(X, valid_lens, self.W_q)
        arrays.check_score_bias(score_bias, X, X, sizes.num_heads)
        lens = np.array([X.shape[1]] * len(X) if valid_lens is None else valid_lens.tolist())
        positions = new_positions(start_lengths(cache, len(X), sizes), lens, X.shape[1])
        queries = self._split(self.W_q(X), positions, rope=sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=sizes.rope)
        values = self._split(self.W_v(X), positions)
        key_positions = positions
        if cache is not None:
            keys, values, key_positions = cache.append(keys, values, valid_lens)
        is_padded = valid_lens is not None
        mask = shared.score_mask(positions, key_positions, options, is_padded=is_padded)
        bias = None if mask is None else torch.from_numpy(mask).to(queries)
        is_empty = None
        if score_bias is not None:
            bias = score_bias if bias is None else score_bias + bias
            # Kernels differ in their results for a query that sees no key. Let it see all, and drop the result.
            is_empty = (bias == -math.inf).all(dim=-1, keepdim=True)
            bias = bias.masked_fill(is_empty, 0)
        pooled = F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=bias,
            dropout_p=self.dropout if self.training else 0.0,
            enable_gqa=True,
        )
        if is_empty is not None:
            pooled = pooled.masked_fill(is_empty, 0)
        return self.W_o(pooled.transpose(1, 2).flatten(2))


class _Network(nn.Module):
    """The position-wise network W_2 f(W_1 x), with "swiglu" W_2 (silu(W_gate x) * W_1 x), each with its biases."""

    def __init__(self, options: BlockOptions) -> None:
        super().__init__()
        num_hiddens, size = options.sizes.num_hiddens, options.ffn_num_hiddens
        self.activation = options.activation
        if self.activation == "swiglu":
            self.gate = nn.Linear(num_hiddens, size, options.bias)
        self.dense1 = nn.Linear(num_hiddens, size, options.bias)
        self.dense2 = nn.Linear(size, num_hiddens, options.bias)

    def forward(self, X: Tensor) -> Tensor:
        hidden = self.dense1(X)
        if self.activation == "swiglu":
            return self.dense2(F.silu(self.gate(X)) * hidden)
        return self.dense2(F.gelu(hidden) if self.activation == "gelu" else F.relu(hidden))


class TransformerBlock(block_layers.TransformerBlock, nn.Module):
    __doc__ = block_layers.TransformerBlock.__doc__
    arrays = arrays

    def _make_layers(self) -> None:
        options = self.options
        self.norm1 = make_norm(options)
        self.attention = _SelfAttention(options)
        if options.cross_attention:
            self.norm2 = make_norm(options)
            size, num_heads = options.sizes.num_hiddens, options.sizes.num_heads
            self.cross_attention = MultiHeadAttention(
                size, size, size, size, num_heads, options.dropout, options.bias
            )
        self.norm3 = make_norm(options)
        self.network = _Network(options)
        self.drop = nn.Dropout(options.dropout)

    def make_cache(self, batch_size: int, max_len: int) -> KVCache:
        """Return an empty cache for ``batch_size`` texts of up to ``max_len`` tokens; with a window, of any length."""
        return self.attention.make_cache(batch_size, max_len)

    def forward(
        self,
        X: Tensor,
        valid_lens: Tensor | None = None,
        *,
        cache: KVCache | None = None,
        memory: Tensor | None = None,
        memory_valid_lens: Tensor | None = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        """Return the block's output, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, integers of shape (batch,), counts the real tokens of each example; padding comes after them, and
        what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each text. ``memory`` has
        the shape (batch, memory steps, num_hiddens), of which the first ``memory_valid_lens`` are real. ``score_bias``
        is added to the scores of self-attention, shape (steps, steps), (heads, steps, steps) or (batch, heads, steps,
        steps); not with a cache. Raises ValueError or TypeError for input that does not fit; the cache is then left as
        it was.
        """
        return self._run(X, valid_lens, cache, memory, memory_valid_lens, score_bias)


def make_norm(options: BlockOptions) -> nn.Module:
    """Return a new layer of the block's kind of normalization."""
    kind = nn.LayerNorm if options.norm == "layer" else nn.RMSNorm
    return kind(options.sizes.num_hiddens, options.norm_epsilon)


class _BlockModel(block_layers.BlockModel, nn.Module):
    arrays = arrays
    block_type = TransformerBlock

    def _make_layers(self, blocks: list[Any], options: BlockOptions, dropout: float) -> None:
        self.embedding = nn.Embedding(self.vocab_size, self.num_hiddens)
        if self.positions == "learned":
            self.position_embedding = nn.Embedding(self.max_len, self.num_hiddens)
        self.drop = nn.Dropout(dropout)
        self.blks = nn.ModuleList(blocks)
        self.norm = make_norm(options) if options.norm_first else nn.Identity()
        if self.is_causal:
            self.dense = nn.Linear(self.num_hiddens, self.vocab_size, options.bias)

    def _embed(self, tokens: Tensor, positions: np.ndarray) -> Tensor:
        X = self.embedding(tokens.long())
        if self.positions is None:
            return self.drop(X)
        shared.check_room(positions, self.max_len)
        positions = positions.clip(0)
        if self.positions == "learned":
            P = self.position_embedding(torch.from_numpy(positions).to(tokens.device))
        else:
            X = X * math.sqrt(self.num_hiddens)
            table = encoding.sinusoids(positions.max() + 1, self.num_hiddens)
            P = torch.from_numpy(table[positions]).to(X)
        return self.drop(X + P)


class BlockEncoder(block_layers.BlockEncoder, _BlockModel):
    __doc__ = block_layers.BlockEncoder.__doc__

    def forward(self, X: Tensor, valid_lens: Tensor | None = None) -> Tensor:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        ``valid_lens``, shape (batch,), counts the tokens of each text; the others are padding. Raises ValueError or
        TypeError for other input.
        """
        return self._run(X, valid_lens)


class BlockDecoder(block_layers.BlockDecoder, _BlockModel):
    __doc__ = block_layers.BlockDecoder.__doc__

    def make_caches(self, batch_size: int, max_len: int) -> list[KVCache]:
        """Return an empty cache for each block, for ``batch_size`` texts of up to ``max_len`` tokens."""
        blocks: Any = self.blks
        return [block.make_cache(batch_size, max_len) for block in blocks]

    def forward(
        self,
        X: Tensor,
        valid_lens: Tensor | None = None,
        *,
        caches: Sequence[KVCache] | None = None,
        memory: Tensor | None = None,
        memory_valid_lens: Tensor | None = None,
    ) -> Tensor:
        """Return logits (batch, steps, vocab_size) of the tokens that follow those in ``X``, (batch, steps).

        ``valid_lens``, shape (batch,), counts the tokens of each text; the others are padding. With ``caches``, ``X``
        has the next tokens of each text, and the logits are those of one call with all tokens. ``memory``, (batch,
        memory steps, num_hiddens), of which the first ``memory_valid_lens`` are real, is what an encoder returns.
        Raises ValueError or TypeError for other input; the caches are then left as they were.
        """
        H = self._run(X, valid_lens, caches, memory=memory, memory_valid_lens=memory_valid_lens)
        return self.dense(H)


class BlockSeq2Seq(block_layers.BlockSeq2Seq, Seq2Seq):
    __doc__ = block_layers.BlockSeq2Seq.__doc__
    encoder: BlockEncoder
    decoder: BlockDecoder

    def forward(self, enc_X: Tensor, dec_X: Tensor, enc_valid_lens: Tensor) -> Tensor:
        """Return logits (batch, steps, vocab_size) of the tokens that follow those in ``dec_X``, (batch, steps)."""
        memory = self.encoder(enc_X, enc_valid_lens)
        return self.decoder(dec_X, memory=memory, memory_valid_lens=enc_valid_lens)

    def predict_step(
        self,
        batch: Any,
        device: torch.device,
        num_steps: int,
        save_attention_weights: bool = False,
    ) -> tuple[Tensor, list[Any]]:
        """Decode a batch greedily, with caches; return tokens (batch, num_steps), and attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target are used. The weights
        are those of cross-attention, a tensor (batch, heads, 1, source steps) for each block. Dropout is off.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lens, _ = [tensor.to(device) for tensor in batch]
        with evaluation_mode(self):
            tokens, weights = self._decode(
                source, lens, target[:, :1], num_steps, save_attention_weights
            )
            return torch.cat(tokens, dim=1), weights
