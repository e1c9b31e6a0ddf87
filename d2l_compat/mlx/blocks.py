"""A Transformer of today: a block with options, and models made of such blocks.

The block is that of Vaswani et al. (2017), section 3.1, with what has been added since: normalization before the
layers (Xiong et al., 2020), RMSNorm (Zhang and Sennrich, 2019), gated networks (Shazeer, 2020), rotary positions (Su et
al., 2021) or ALiBi (Press et al., 2022), and fewer heads of keys and values (Ainslie et al., 2023).

Without a cache, all of it may be compiled with ``mx.compile``.
"""

import math
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn

from d2l_compat._shared import block_layers, checks, encoding
from d2l_compat._shared import blocks as shared
from d2l_compat._shared.blocks import BlockOptions, count_transformer_parameters
from d2l_compat._shared.cache import new_positions, start_lengths
from d2l_compat.mlx import _blockwise
from d2l_compat.mlx._arrays import arrays, read_values
from d2l_compat.mlx._dropout import Dropout
from d2l_compat.mlx._lazy import linear
from d2l_compat.mlx.attention import DotProductAttention, MultiHeadAttention, round_to
from d2l_compat.mlx.generation import CausalSelfAttention, KVCache
from d2l_compat.mlx.seq2seq import Seq2Seq, evaluation_mode

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
        self.attention = DotProductAttention(options.dropout)

    def __call__(
        self,
        X: mx.array,
        valid_lens: mx.array | None = None,
        cache: KVCache | None = None,
        score_bias: mx.array | None = None,
    ) -> mx.array:
        options, sizes = self.options, self.sizes
        shared.check_cache(cache, score_bias, options)
        arrays.check_texts(X, valid_lens, self.W_q)
        arrays.check_score_bias(score_bias, X, X, sizes.num_heads)
        if cache is None and options.causal:
            valid_lens = None  # padding comes last, so that the causal mask hides it
        if options.causal and options.positions != "alibi" and score_bias is None:
            return super().__call__(X, valid_lens, cache)
        batch, num_steps, _ = X.shape
        if cache is None:
            positions = np.arange(num_steps)[None]
        else:
            lens = np.array([num_steps] * batch if valid_lens is None else valid_lens.tolist())
            positions = new_positions(start_lengths(cache, batch, sizes), lens, num_steps)
        queries = self._split(self.W_q(X), positions, rope=sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=sizes.rope)
        values = self._split(self.W_v(X), positions)
        key_positions = positions
        if cache is not None:
            keys, values, key_positions = cache.append(keys, values, valid_lens)
            valid_lens = None  # the mask hides padding
        elif valid_lens is not None:
            valid_lens = mx.repeat(valid_lens, sizes.num_heads, axis=0)
        mask = shared.score_mask(positions, key_positions, options, is_padded=False)
        keys, values = self._repeat_heads(keys), self._repeat_heads(values)
        pooled = self.attention(
            queries.flatten(0, 1),
            keys.flatten(0, 1),
            values.flatten(0, 1),
            valid_lens,
            score_bias=_bias_per_head(mask, score_bias, queries),
        )
        pooled = mx.unflatten(pooled, 0, (batch, sizes.num_heads))
        return self.W_o(pooled.swapaxes(1, 2).flatten(2))


def _bias_per_head(
    mask: np.ndarray | None, score_bias: mx.array | None, queries: mx.array
) -> mx.array | None:
    """Return the sum of a mask and a bias, shape (batch * heads, queries, keys), or None if there is neither."""
    if mask is None and score_bias is None:
        return None
    total = mx.zeros((), queries.dtype)
    if mask is not None:
        total = total + round_to(queries.dtype, mask)
    if score_bias is not None:
        total = total + score_bias.astype(queries.dtype)
    return mx.broadcast_to(total, (*queries.shape[:2], *total.shape[-2:])).flatten(0, 1)


# Of float64, MLX computes normalizations, and exponential and error functions, to 4 to 7 digits only. The
# following are correct to all digits.


class _LayerNorm(nn.LayerNorm):
    def __call__(self, X: mx.array) -> mx.array:
        if X.dtype != mx.float64:
            return super().__call__(X)
        X = X - X.mean(-1, keepdims=True)
        return X / mx.sqrt(X.square().mean(-1, keepdims=True) + self.eps) * self.weight + self.bias


class _RMSNorm(nn.RMSNorm):
    def __call__(self, X: mx.array) -> mx.array:
        if X.dtype != mx.float64:
            return super().__call__(X)
        return X / mx.sqrt(X.square().mean(-1, keepdims=True) + self.eps) * self.weight


def _silu(X: mx.array) -> mx.array:
    if X.dtype != mx.float64:
        return nn.silu(X)
    return X * (1 + mx.tanh(X / 2)) / 2


def _gelu(X: mx.array) -> mx.array:
    if X.dtype != mx.float64:
        return nn.gelu(X)
    # erf(z) is z / sqrt(pi) times the integral of exp(-(z t)^2) for t from -1 to 1. From |z| = 6 it is 1 or -1.
    z = mx.clip(X / math.sqrt(2), -6, 6)
    nodes, weights = (round_to(X.dtype, x) for x in np.polynomial.legendre.leggauss(48))
    integral = _blockwise.exp(-(z[..., None] * nodes).square()) @ weights
    return X * (1 + z / math.sqrt(math.pi) * integral) / 2


class _Network(nn.Module):
    """The position-wise network W_2 f(W_1 x), with "swiglu" W_2 (silu(W_gate x) * W_1 x), each with its biases."""

    def __init__(self, options: BlockOptions) -> None:
        super().__init__()
        num_hiddens, size = options.sizes.num_hiddens, options.ffn_num_hiddens
        self.activation = options.activation
        if self.activation == "swiglu":
            self.gate = linear(num_hiddens, size, options.bias)
        self.dense1 = linear(num_hiddens, size, options.bias)
        self.dense2 = linear(size, num_hiddens, options.bias)

    def __call__(self, X: mx.array) -> mx.array:
        hidden = self.dense1(X)
        if self.activation == "swiglu":
            return self.dense2(_silu(self.gate(X)) * hidden)
        return self.dense2(_gelu(hidden) if self.activation == "gelu" else nn.relu(hidden))


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
        self.drop = Dropout(options.dropout)

    def make_cache(self, batch_size: int, max_len: int) -> KVCache:
        """Return an empty cache for ``batch_size`` texts of up to ``max_len`` tokens; with a window, of any length."""
        return self.attention.make_cache(batch_size, max_len)

    def __call__(
        self,
        X: mx.array,
        valid_lens: mx.array | None = None,
        *,
        cache: KVCache | None = None,
        memory: mx.array | None = None,
        memory_valid_lens: mx.array | None = None,
        score_bias: mx.array | None = None,
    ) -> mx.array:
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
    kind = _LayerNorm if options.norm == "layer" else _RMSNorm
    return kind(options.sizes.num_hiddens, options.norm_epsilon)


class _BlockModel(block_layers.BlockModel, nn.Module):
    arrays = arrays
    block_type = TransformerBlock

    def _make_layers(self, blocks: list[Any], options: BlockOptions, dropout: float) -> None:
        self.embedding = nn.Embedding(self.vocab_size, self.num_hiddens)
        if self.positions == "learned":
            self.position_embedding = nn.Embedding(self.max_len, self.num_hiddens)
        self.drop = Dropout(dropout)
        self.blks = blocks
        self.norm = make_norm(options) if options.norm_first else nn.Identity()
        if self.is_causal:
            self.dense = linear(self.num_hiddens, self.vocab_size, options.bias)

    def _embed(self, tokens: mx.array, positions: np.ndarray) -> mx.array:
        X = self.embedding(tokens.astype(mx.int32))
        if self.positions is None:
            return self.drop(X)
        shared.check_room(positions, self.max_len)
        positions = positions.clip(0)
        if self.positions == "learned":
            P = self.position_embedding(mx.array(positions))
        else:
            X = X * math.sqrt(self.num_hiddens)
            table = encoding.sinusoids(positions.max() + 1, self.num_hiddens)
            P = round_to(X.dtype, table[positions])
        return self.drop(X + P)

    def _read_lens(self, lens: mx.array) -> np.ndarray | None:
        # In `mx.compile`, lengths have no values: then padding counts, and what positions it gets does not matter.
        return read_values(lens)


class BlockEncoder(block_layers.BlockEncoder, _BlockModel):
    __doc__ = block_layers.BlockEncoder.__doc__

    def __call__(self, X: mx.array, valid_lens: mx.array | None = None) -> mx.array:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        ``valid_lens``, shape (batch,), counts the tokens of each text; the others are padding. Raises ValueError or
        TypeError for other input.
        """
        return self._run(X, valid_lens)


class BlockDecoder(block_layers.BlockDecoder, _BlockModel):
    __doc__ = block_layers.BlockDecoder.__doc__

    def make_caches(self, batch_size: int, max_len: int) -> list[KVCache]:
        """Return an empty cache for each block, for ``batch_size`` texts of up to ``max_len`` tokens."""
        return [block.make_cache(batch_size, max_len) for block in self.blks]

    def __call__(
        self,
        X: mx.array,
        valid_lens: mx.array | None = None,
        *,
        caches: Sequence[KVCache] | None = None,
        memory: mx.array | None = None,
        memory_valid_lens: mx.array | None = None,
    ) -> mx.array:
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

    def forward(self, enc_X: mx.array, dec_X: mx.array, enc_valid_lens: mx.array) -> mx.array:
        """Return logits (batch, steps, vocab_size) of the tokens that follow those in ``dec_X``, (batch, steps)."""
        memory = self.encoder(enc_X, enc_valid_lens)
        return self.decoder(dec_X, memory=memory, memory_valid_lens=enc_valid_lens)

    def predict_step(
        self,
        batch: Any,
        device: mx.Device,
        num_steps: int,
        save_attention_weights: bool = False,
    ) -> tuple[mx.array, list[Any]]:
        """Decode a batch greedily, with caches; return tokens (batch, num_steps), and attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target are used. The weights
        are those of cross-attention, an array (batch, heads, 1, source steps) for each block. Dropout is off.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lens, _ = batch
        with mx.stream(device), evaluation_mode(self):
            tokens, weights = self._decode(
                source, lens, target[:, :1], num_steps, save_attention_weights
            )
            return mx.concatenate(tokens, axis=1), weights
