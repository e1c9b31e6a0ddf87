"""A Transformer of today: a block with options, and models made of such blocks.

The block is that of Vaswani et al. (2017), section 3.1, with what has been added since: normalization before the
layers (Xiong et al., 2020), RMSNorm (Zhang and Sennrich, 2019), gated networks (Shazeer, 2020), rotary positions (Su et
al., 2021) or ALiBi (Press et al., 2022), and fewer heads of keys and values (Ainslie et al., 2023).

As for all of Gluon's layers, call ``initialize`` before the first call.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp
from mxnet import Context, autograd, np, npx
from mxnet.gluon import nn

from d2l_compat._shared import block_layers, checks, encoding
from d2l_compat._shared import blocks as shared
from d2l_compat._shared.blocks import BlockOptions, count_transformer_parameters
from d2l_compat._shared.cache import new_positions, start_lengths
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet._dropout import Dropout
from d2l_compat.mxnet.attention import DotProductAttention, MultiHeadAttention, dense
from d2l_compat.mxnet.generation import CausalSelfAttention, KVCache
from d2l_compat.mxnet.seq2seq import Seq2Seq

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
        self.options, self.attention = options, DotProductAttention(options.dropout)

    def __call__(
        self,
        X: np.ndarray,
        valid_lens: np.ndarray | None = None,
        cache: KVCache | None = None,
        score_bias: np.ndarray | None = None,
    ) -> np.ndarray:
        return nn.Block.__call__(self, X, valid_lens, cache, score_bias)

    def forward(
        self,
        X: np.ndarray,
        valid_lens: np.ndarray | None = None,
        cache: KVCache | None = None,
        score_bias: np.ndarray | None = None,
    ) -> np.ndarray:
        options, sizes = self.options, self.sizes
        shared.check_cache(cache, score_bias, options)
        if options.causal and options.positions != "alibi" and score_bias is None:
            return super().forward(X, valid_lens, cache)
        lens = arrays.check_texts(X, valid_lens, self.W_q)
        arrays.check_score_bias(score_bias, X, X, sizes.num_heads)
        batch, num_steps, _ = X.shape
        lens = onp.full(batch, num_steps) if lens is None else lens
        positions = new_positions(start_lengths(cache, batch, sizes), lens, num_steps)
        queries = self._split(self.W_q(X), positions, rope=sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=sizes.rope)
        values = self._split(self.W_v(X), positions)
        key_positions = positions
        if cache is not None:
            keys, values, key_positions = cache.append(keys, values, valid_lens)
        is_padded = valid_lens is not None
        mask = shared.score_mask(positions, key_positions, options, is_padded=is_padded)
        bias = None if mask is None else np.array(mask, dtype=X.dtype, ctx=X.ctx)
        if score_bias is not None:
            bias = score_bias if bias is None else score_bias + bias
        if bias is not None:
            scores_shape = batch, sizes.num_heads, num_steps, keys.shape[2]
            bias = _merge_heads(np.broadcast_to(bias, scores_shape))
        keys, values = self._repeat_heads(keys), self._repeat_heads(values)
        pooled = self.attention(*map(_merge_heads, (queries, keys, values)), score_bias=bias)
        return self.W_o(pooled.reshape(queries.shape).swapaxes(1, 2).reshape(X.shape))


def _merge_heads(X: np.ndarray) -> np.ndarray:
    """Reshape (batch, heads, ...) to (batch * heads, ...)."""
    return X.reshape(X.shape[0] * X.shape[1], *X.shape[2:])


class _RMSNorm(nn.Block):
    """Root mean square normalization with learned scales, which MXNet does not have."""

    def __init__(self, num_hiddens: int, epsilon: float) -> None:
        super().__init__()
        self._epsilon = epsilon
        self.gamma = self.params.get("gamma", shape=(num_hiddens,), init="ones")

    def forward(self, X: np.ndarray) -> np.ndarray:
        if not X.size:  # `mean` would fail, and only in a later operation.
            return X
        mean_square = np.square(X).mean(axis=-1, keepdims=True)
        return X / np.sqrt(mean_square + self._epsilon) * self.gamma.data(X.ctx)


class _Network(nn.Block):
    """The position-wise network W_2 f(W_1 x), with "swiglu" W_2 (silu(W_gate x) * W_1 x), each with its biases."""

    def __init__(self, options: BlockOptions) -> None:
        super().__init__()
        num_hiddens, size = options.sizes.num_hiddens, options.ffn_num_hiddens
        self.activation = options.activation
        if self.activation == "swiglu":
            self.gate = dense(num_hiddens, size, options.bias)
        self.dense1 = dense(num_hiddens, size, options.bias)
        self.dense2 = dense(size, num_hiddens, options.bias)

    def forward(self, X: np.ndarray) -> np.ndarray:
        hidden = self.dense1(X)
        if self.activation == "swiglu":
            gate = self.gate(X)
            return self.dense2(gate * npx.sigmoid(gate) * hidden)
        return self.dense2(_gelu(hidden) if self.activation == "gelu" else npx.relu(hidden))


def _gelu(X: np.ndarray) -> np.ndarray:
    """Return x times the probability that a standard normal number is below x."""
    # MXNet's own function has single precision, also for float64.
    return X * (1 + npx.erf(X / math.sqrt(2))) / 2


class TransformerBlock(block_layers.TransformerBlock, nn.Block):
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
        X: np.ndarray,
        valid_lens: np.ndarray | None = None,
        *,
        cache: KVCache | None = None,
        memory: np.ndarray | None = None,
        memory_valid_lens: np.ndarray | None = None,
        score_bias: np.ndarray | None = None,
    ) -> np.ndarray:
        # Gluon's `__call__` takes positional arguments only.
        return super().__call__(X, valid_lens, cache, memory, memory_valid_lens, score_bias)

    def forward(
        self,
        X: np.ndarray,
        valid_lens: np.ndarray | None = None,
        cache: KVCache | None = None,
        memory: np.ndarray | None = None,
        memory_valid_lens: np.ndarray | None = None,
        score_bias: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the block's output, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, whole numbers of shape (batch,), counts the real tokens of each example; padding comes after
        them, and what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each text.
        ``memory`` has the shape (batch, memory steps, num_hiddens), of which the first ``memory_valid_lens`` are real.
        ``score_bias`` is added to the scores of self-attention, shape (steps, steps), (heads, steps, steps) or (batch,
        heads, steps, steps); not with a cache. Raises ValueError or TypeError for input that does not fit; the cache
        is then left as it was.
        """
        return self._run(X, valid_lens, cache, memory, memory_valid_lens, score_bias)


def make_norm(options: BlockOptions) -> nn.Block:
    """Return a new layer of the block's kind of normalization."""
    num_hiddens, epsilon = options.sizes.num_hiddens, options.norm_epsilon
    if options.norm == "rms":
        return _RMSNorm(num_hiddens, epsilon)
    return nn.LayerNorm(epsilon=epsilon, in_channels=num_hiddens)


class _BlockModel(block_layers.BlockModel, nn.Block):
    arrays = arrays
    block_type = TransformerBlock

    def _make_layers(self, blocks: list[Any], options: BlockOptions, dropout: float) -> None:
        self.embedding = nn.Embedding(self.vocab_size, self.num_hiddens)
        if self.positions == "learned":
            self.position_embedding = nn.Embedding(self.max_len, self.num_hiddens)
        self.drop = Dropout(dropout)
        self.blks = nn.Sequential()
        self.blks.add(*blocks)
        # An empty `Sequential` returns its input.
        self.norm = make_norm(options) if options.norm_first else nn.Sequential()
        if self.is_causal:
            self.dense = dense(self.num_hiddens, self.vocab_size, options.bias)

    def _embed(self, tokens: np.ndarray, positions: onp.ndarray) -> np.ndarray:
        X = self.embedding(tokens)
        if self.positions is None:
            return self.drop(X)
        shared.check_room(positions, self.max_len)
        positions = positions.clip(0)
        if self.positions == "learned":
            P = self.position_embedding(np.array(positions, dtype="int32", ctx=X.ctx))
        else:
            X = X * math.sqrt(self.num_hiddens)
            table = encoding.sinusoids(positions.max() + 1, self.num_hiddens)
            P = np.array(table[positions], dtype=X.dtype, ctx=X.ctx)
        return self.drop(X + P)


class BlockEncoder(block_layers.BlockEncoder, _BlockModel):
    __doc__ = block_layers.BlockEncoder.__doc__

    def __call__(self, X: np.ndarray, valid_lens: np.ndarray | None = None) -> np.ndarray:
        return super().__call__(X, valid_lens)

    def forward(self, X: np.ndarray, valid_lens: np.ndarray | None = None) -> np.ndarray:
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
        X: np.ndarray,
        valid_lens: np.ndarray | None = None,
        *,
        caches: Sequence[KVCache] | None = None,
        memory: np.ndarray | None = None,
        memory_valid_lens: np.ndarray | None = None,
    ) -> np.ndarray:
        return super().__call__(X, valid_lens, caches, memory, memory_valid_lens)

    def forward(
        self,
        X: np.ndarray,
        valid_lens: np.ndarray | None = None,
        caches: Sequence[KVCache] | None = None,
        memory: np.ndarray | None = None,
        memory_valid_lens: np.ndarray | None = None,
    ) -> np.ndarray:
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

    def forward(
        self, enc_X: np.ndarray, dec_X: np.ndarray, enc_valid_lens: np.ndarray
    ) -> np.ndarray:
        """Return logits (batch, steps, vocab_size) of the tokens that follow those in ``dec_X``, (batch, steps)."""
        memory = self.encoder(enc_X, enc_valid_lens)
        return self.decoder(dec_X, memory=memory, memory_valid_lens=enc_valid_lens)

    def predict_step(
        self,
        batch: Any,
        device: Context,
        num_steps: int,
        save_attention_weights: bool = False,
    ) -> tuple[np.ndarray, list[Any]]:
        """Decode a batch greedily, with caches; return tokens (batch, num_steps), and attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target are used. The weights
        are those of cross-attention, an array (batch, heads, 1, source steps) for each block. Dropout is off.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lens, _ = [tensor.as_in_ctx(device) for tensor in batch]
        with autograd.pause():
            tokens, weights = self._decode(
                source, lens, target[:, :1], num_steps, save_attention_weights
            )
            return np.concatenate(tokens, axis=1), weights
