"""Causal self-attention with a cache of keys and values, and generation token by token."""

import math
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn

from d2l_compat._shared import cache, checks, encoding, generation
from d2l_compat._shared.cache import Sizes, new_positions, start_lengths
from d2l_compat._shared.generation import next_token_probs
from d2l_compat._shared.windows import causal_blocks
from d2l_compat.mlx import _blockwise
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._dropout import Dropout
from d2l_compat.mlx._lazy import linear
from d2l_compat.mlx.attention import attend_causally, attend_in_blocks, round_to

__all__ = ["CausalSelfAttention", "KVCache", "generate", "next_token_probs"]


class KVCache(cache.KVCache):
    __doc__ = cache.KVCache.__doc__
    arrays = arrays
    keys: mx.array
    values: mx.array

    def _zeros(self, shape: tuple[int, ...], **options: Any) -> mx.array:
        return mx.zeros(shape, **options)

    def _itemsize(self) -> int:
        return self.keys.itemsize

    def _write(self, keys: mx.array, values: mx.array, start: int, end: int) -> None:
        self.keys[:, :, start:end] = mx.stop_gradient(keys)
        self.values[:, :, start:end] = mx.stop_gradient(values)

    def _concat(self, old: mx.array, new: mx.array) -> mx.array:
        return mx.concatenate([old, mx.stop_gradient(new)], axis=2)

    def _take(self, both: mx.array, sources: np.ndarray) -> mx.array:
        index = mx.array(sources[:, None, :, None])
        return mx.take_along_axis(both, index, axis=2)


class CausalSelfAttention(nn.Module):
    """Self-attention in which a token sees itself and what came before it, with a cache for generating.

    ``num_kv_heads`` heads of keys and values, a divisor of ``num_heads``, serve the heads of queries: query head h
    reads key head h // (num_heads / num_kv_heads). With as many, this is multi-head attention; with fewer,
    grouped-query attention (Ainslie et al., 2023); with one, multi-query attention (Shazeer, 2019). With ``rope``,
    queries and keys are rotated by their positions (:class:`RotaryEncoding`, interleaved). With a ``window``, a token
    sees the last ``window`` tokens, itself among them, and the text's first ``num_sinks`` (Xiao et al., 2024).
    """

    def __init__(
        self,
        num_hiddens: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = False,
        *,
        num_kv_heads: int | None = None,
        rope: bool = False,
        window: int | None = None,
        num_sinks: int = 0,
    ) -> None:
        """Create the projections W_q, W_k, W_v and W_o; ``dropout`` is the share of weights dropped in training.

        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        checks.check_dropout(dropout)
        checks.check_flag("bias", bias)
        super().__init__()
        sizes = Sizes.check(num_hiddens, num_heads, num_kv_heads, window, num_sinks, rope)
        self.sizes, self.dropout = sizes, Dropout(dropout)
        self.W_q = linear(sizes.num_hiddens, sizes.num_hiddens, bias)
        self.W_k = linear(sizes.num_hiddens, sizes.kv_size, bias)
        self.W_v = linear(sizes.num_hiddens, sizes.kv_size, bias)
        self.W_o = linear(sizes.num_hiddens, sizes.num_hiddens, bias)

    def make_cache(self, batch_size: int, max_len: int) -> KVCache:
        """Return an empty cache for ``batch_size`` texts of up to ``max_len`` tokens.

        With a window, texts may have any length. The cache has the dtype of the weights.
        """
        sizes = self.sizes
        return KVCache(
            batch_size,
            sizes.num_kv_heads,
            sizes.head_size,
            max_len,
            window=sizes.window,
            num_sinks=sizes.num_sinks,
            dtype=self.W_k.weight.dtype,
        )

    def __call__(
        self, X: mx.array, valid_lens: mx.array | None = None, cache: KVCache | None = None
    ) -> mx.array:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, integers of shape (batch,), counts the real tokens of each example; padding comes
        after them, and what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each
        text: they also see the cached ones, and are added to them. The results are those of one call with all
        tokens. Raises ValueError or TypeError for input that does not fit; the cache is then left as it was.
        """
        arrays.check_texts(X, valid_lens, self.W_q)
        batch, num_steps, _ = X.shape
        lens = np.array([num_steps] * batch if valid_lens is None else valid_lens.tolist())
        positions = new_positions(start_lengths(cache, batch, self.sizes), lens, num_steps)
        queries = self._split(self.W_q(X), positions, rope=self.sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=self.sizes.rope)
        values = self._split(self.W_v(X), positions)
        if cache is None:
            pooled = self._attend(queries, keys, values)
        else:
            keys, values, key_positions = cache.append(keys, values, valid_lens)
            is_visible = mx.array(self.sizes.visible_keys(positions, key_positions)[:, None])
            pooled = self._pool(queries, keys, values, is_visible)
        return self.W_o(pooled.swapaxes(1, 2).flatten(2))

    def _attend(self, queries: mx.array, keys: mx.array, values: mx.array) -> mx.array:
        """Attend without a cache; padding comes last, so that the causal mask hides it."""
        sizes, steps = self.sizes, queries.shape[2]
        queries = queries.flatten(0, 1)
        keys, values = (self._repeat_heads(X).flatten(0, 1) for X in (keys, values))
        blocks = causal_blocks(steps, sizes.window, sizes.num_sinks)
        if blocks is None:
            pooled = attend_causally(queries, keys, values, dropout=self.dropout)
        else:
            pooled = attend_in_blocks(queries, keys, values, blocks, dropout=self.dropout)
        return mx.unflatten(pooled, 0, (-1, sizes.num_heads))

    def _pool(
        self, queries: mx.array, keys: mx.array, values: mx.array, is_visible: mx.array
    ) -> mx.array:
        """Compute the attention pooling, shape (batch, heads, steps, head_size)."""
        scale = 1 / math.sqrt(self.sizes.head_size)
        # The fused function has no dropout, and computes its softmax in float32.
        if queries.dtype != mx.float64 and not (self.training and self.dropout.p):
            return mx.fast.scaled_dot_product_attention(
                queries, keys, values, scale=scale, mask=is_visible
            )
        keys, values = self._repeat_heads(keys), self._repeat_heads(values)
        scores = mx.where(is_visible, (queries * scale) @ keys.swapaxes(2, 3), -math.inf)
        return self.dropout(_blockwise.softmax(scores)) @ values

    def _repeat_heads(self, X: mx.array) -> mx.array:
        """Repeat keys or values for each head of queries that they serve."""
        return mx.repeat(X, self.sizes.num_heads // self.sizes.num_kv_heads, axis=1)

    def _split(self, X: mx.array, positions: np.ndarray, rope: bool = False) -> mx.array:
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size), and rotate by positions."""
        X = mx.unflatten(X, -1, (-1, self.sizes.head_size)).swapaxes(1, 2)
        if not rope:
            return X
        table = encoding.rotations_at(positions, self.sizes.head_size)[:, :, None]
        cos, sin = round_to(X.dtype, table)
        x, y = X[..., ::2], X[..., 1::2]
        return mx.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).flatten(-2)


generate = generation.make_generate(mx.array)
