"""Causal self-attention with a cache of keys and values, and generation token by token."""

import math
from typing import Any

import numpy as onp
from mxnet import np, npx
from mxnet.gluon import nn

from d2l_compat._shared import cache, checks, encoding, generation
from d2l_compat._shared.cache import Sizes, new_positions, start_lengths
from d2l_compat._shared.generation import next_token_probs
from d2l_compat._shared.windows import causal_blocks
from d2l_compat.mxnet import _blockwise
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet._dropout import Dropout, is_inactive
from d2l_compat.mxnet.attention import attend_in_blocks, compute_weights, dense

__all__ = ["CausalSelfAttention", "KVCache", "generate", "next_token_probs"]


class KVCache(cache.KVCache):
    __doc__ = cache.KVCache.__doc__
    arrays = arrays
    keys: np.ndarray
    values: np.ndarray

    def _zeros(self, shape: tuple[int, ...], **options: Any) -> np.ndarray:
        return np.zeros(shape, **options)

    def _itemsize(self) -> int:
        return onp.dtype(self.keys.dtype).itemsize

    def _write(self, keys: np.ndarray, values: np.ndarray, start: int, end: int) -> None:
        self.keys[:, :, start:end] = keys.detach()
        self.values[:, :, start:end] = values.detach()

    def _concat(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.concatenate([old, new.detach()], axis=2)

    def _take(self, both: np.ndarray, sources: onp.ndarray) -> np.ndarray:
        example = onp.arange(len(sources))[:, None]
        return both[example, :, sources].swapaxes(1, 2)  # `take_along_axis` cannot be recorded


class CausalSelfAttention(nn.Block):
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
        use_bias: bool = False,
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
        checks.check_flag("use_bias", use_bias)
        super().__init__()
        sizes = Sizes.check(num_hiddens, num_heads, num_kv_heads, window, num_sinks, rope)
        self.sizes, self.dropout = sizes, Dropout(dropout)
        self.W_q = dense(sizes.num_hiddens, sizes.num_hiddens, use_bias)
        self.W_k = dense(sizes.num_hiddens, sizes.kv_size, use_bias)
        self.W_v = dense(sizes.num_hiddens, sizes.kv_size, use_bias)
        self.W_o = dense(sizes.num_hiddens, sizes.num_hiddens, use_bias)

    def make_cache(self, batch_size: int, max_len: int) -> KVCache:
        """Return an empty cache for ``batch_size`` texts of up to ``max_len`` tokens.

        With a window, texts may have any length. The cache has the dtype and the device of the weights.
        """
        sizes, weight = self.sizes, self.W_k.weight
        return KVCache(
            batch_size,
            sizes.num_kv_heads,
            sizes.head_size,
            max_len,
            window=sizes.window,
            num_sinks=sizes.num_sinks,
            dtype=weight.dtype,
            ctx=weight.list_ctx()[0],
        )

    def __call__(
        self, X: np.ndarray, valid_lens: np.ndarray | None = None, cache: KVCache | None = None
    ) -> np.ndarray:
        return super().__call__(X, valid_lens, cache)

    def forward(
        self, X: np.ndarray, valid_lens: np.ndarray | None = None, cache: KVCache | None = None
    ) -> np.ndarray:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, integers of shape (batch,), counts the real tokens of each example; padding comes
        after them, and what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each
        text: they also see the cached ones, and are added to them. The results are those of one call with all
        tokens. Raises ValueError or TypeError for input that does not fit; the cache is then left as it was.
        """
        lens = arrays.check_texts(X, valid_lens, self.W_q)
        batch, num_steps, _ = X.shape
        lens = onp.full(batch, num_steps) if lens is None else lens
        positions = new_positions(start_lengths(cache, batch, self.sizes), lens, num_steps)
        queries = self._split(self.W_q(X), positions, rope=self.sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=self.sizes.rope)
        values = self._split(self.W_v(X), positions)
        if cache is None:
            pooled = self._attend(queries, self._repeat_heads(keys), self._repeat_heads(values))
        else:
            keys, values, key_positions = cache.append(keys, values, valid_lens)
            is_visible = self.sizes.visible_keys(positions, key_positions)[:, None]
            bias = np.array(onp.where(is_visible, 0, -math.inf), dtype=X.dtype, ctx=X.ctx)
            scaled = queries / math.sqrt(self.sizes.head_size)  # cheaper than scaling the scores
            scores = npx.batch_dot(scaled, self._repeat_heads(keys), transpose_b=True) + bias
            weights = self.dropout(npx.softmax(scores, axis=-1))
            pooled = npx.batch_dot(weights, self._repeat_heads(values))
        return self.W_o(pooled.swapaxes(1, 2).reshape(X.shape))

    def _attend(self, *inputs: np.ndarray) -> np.ndarray:
        """Attend to keys without a cache; padding comes last, so that the causal mask hides it.

        ``inputs``: queries, keys and values, each (batch, heads, steps, features).
        """
        batch, num_heads, num_steps, size = shape = inputs[0].shape
        queries, keys, values = (x.reshape(batch * num_heads, num_steps, size) for x in inputs)
        blocks = causal_blocks(num_steps, self.sizes.window, self.sizes.num_sinks)
        if blocks is not None:
            pooled = attend_in_blocks(queries, keys, values, blocks, dropout=self.dropout)
        elif _blockwise.is_long(queries, keys) and is_inactive(self.dropout):
            pooled = _blockwise.attend(queries, keys, values, causal=True)
        else:
            weights = compute_weights(queries, keys, causal=True)
            pooled = npx.batch_dot(self.dropout(weights), values)
        return pooled.reshape(shape)

    def _repeat_heads(self, X: np.ndarray) -> np.ndarray:
        """Repeat each head of keys or values for all heads of queries that read it."""
        # `repeat` would fail for an empty array, and only in a later operation.
        batch, num_kv_heads, num_steps, size = X.shape
        num_heads = self.sizes.num_heads
        shape = batch, num_kv_heads, num_heads // num_kv_heads, num_steps, size
        repeated = np.broadcast_to(np.expand_dims(X, 2), shape)
        return repeated.reshape(batch, num_heads, num_steps, size)

    def _split(self, X: np.ndarray, positions: onp.ndarray, rope: bool = False) -> np.ndarray:
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size), and rotate by positions."""
        batch, num_steps, num_features = X.shape
        size = self.sizes.head_size
        X = X.reshape(batch, num_steps, num_features // size, size).swapaxes(1, 2)
        if not rope:
            return X
        table = encoding.rotations_at(positions, size)[:, :, None]
        cos, sin = np.array(table, dtype=X.dtype, ctx=X.ctx)
        x, y = X[..., ::2], X[..., 1::2]
        return np.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).reshape(X.shape)


generate = generation.make_generate(lambda array: np.array(array, dtype=array.dtype))
