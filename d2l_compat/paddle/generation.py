"""Causal self-attention with a cache of keys and values, and generation token by token."""

from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn
from paddle.nn import functional as F

from d2l_compat._shared import cache, checks, encoding, generation
from d2l_compat._shared.cache import Sizes, new_positions, start_lengths
from d2l_compat._shared.generation import next_token_probs
from d2l_compat._shared.windows import causal_blocks
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle.attention import attend_causally, attend_in_blocks, linear

__all__ = ["CausalSelfAttention", "KVCache", "generate", "next_token_probs"]


class KVCache(cache.KVCache):
    __doc__ = cache.KVCache.__doc__
    arrays = arrays
    keys: Tensor
    values: Tensor

    def _zeros(self, shape: tuple[int, ...], **options: Any) -> Tensor:
        return paddle.zeros(shape, **options)

    def _itemsize(self) -> int:
        return self.keys.element_size()

    def _write(self, keys: Tensor, values: Tensor, start: int, end: int) -> None:
        self.keys[:, :, start:end] = keys.detach()
        self.values[:, :, start:end] = values.detach()

    def _concat(self, old: Tensor, new: Tensor) -> Tensor:
        return paddle.concat([old, new.detach()], axis=2)

    def _take(self, both: Tensor, sources: np.ndarray) -> Tensor:
        index = paddle.to_tensor(sources[:, None, :, None], place=both.place)
        return paddle.take_along_axis(both, index, axis=2)


class CausalSelfAttention(nn.Layer):
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
        self.sizes, self.dropout = sizes, dropout
        self.W_q = linear(sizes.num_hiddens, sizes.num_hiddens, bias)
        self.W_k = linear(sizes.num_hiddens, sizes.kv_size, bias)
        self.W_v = linear(sizes.num_hiddens, sizes.kv_size, bias)
        self.W_o = linear(sizes.num_hiddens, sizes.num_hiddens, bias)

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
            device=weight.place,
        )

    def forward(
        self, X: Tensor, valid_lens: Tensor | None = None, cache: KVCache | None = None
    ) -> Tensor:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, integers of shape (batch,), counts the real tokens of each example; padding comes
        after them, and what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each
        text: they also see the cached ones, and are added to them. The results are those of one call with all
        tokens. Raises ValueError or TypeError for input that does not fit; the cache is then left as it was.
        """
        arrays.check_texts(X, valid_lens, self.W_q)
        batch, num_steps, _ = X.shape
        lens = np.full(batch, num_steps) if valid_lens is None else valid_lens.numpy()
        positions = new_positions(start_lengths(cache, batch, self.sizes), lens, num_steps)
        queries = self._split(self.W_q(X), positions, rope=self.sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=self.sizes.rope)
        values = self._split(self.W_v(X), positions)
        dropout = self.dropout if self.training else 0.0
        if cache is None:
            pooled = self._attend(queries, keys, values, dropout)
            return self.W_o(pooled.transpose([0, 2, 1, 3]).flatten(2))
        keys, values, key_positions = cache.append(keys, values, valid_lens)
        is_visible = self.sizes.visible_keys(positions, key_positions)[:, None]
        # Paddle turns a mask of bools into infinities, which FLAGS_check_nan_inf would reject.
        bias = np.where(is_visible, 0, paddle.finfo(queries.dtype).min)
        pooled = F.scaled_dot_product_attention(  # shapes (batch, steps, heads, head_size)
            queries.transpose([0, 2, 1, 3]),
            keys.transpose([0, 2, 1, 3]),
            values.transpose([0, 2, 1, 3]),
            attn_mask=paddle.to_tensor(bias, queries.dtype, X.place),
            dropout_p=dropout,
            enable_gqa=True,
        )
        return self.W_o(pooled.flatten(2))

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
        """Attend without a cache; padding comes last, so that the causal mask hides it."""
        sizes, steps = self.sizes, queries.shape[2]
        queries = queries.flatten(0, 1)
        keys, values = (
            X.repeat_interleave(sizes.num_heads // sizes.num_kv_heads, axis=1).flatten(0, 1)
            for X in (keys, values)
        )
        blocks = causal_blocks(steps, sizes.window, sizes.num_sinks)
        if blocks is None:
            pooled = attend_causally(queries, keys, values, dropout=dropout)
        else:
            pooled = attend_in_blocks(queries, keys, values, blocks, dropout=dropout)
        return pooled.unflatten(0, [-1, sizes.num_heads])

    def _split(self, X: Tensor, positions: np.ndarray, rope: bool = False) -> Tensor:
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size), and rotate by positions."""
        X = X.unflatten(-1, [-1, self.sizes.head_size]).transpose([0, 2, 1, 3])
        if not rope:
            return X
        table = encoding.rotations_at(positions, self.sizes.head_size)[:, :, None]
        cos, sin = paddle.to_tensor(table, X.dtype, X.place).unbind(0)
        x, y = X[..., ::2], X[..., 1::2]
        return paddle.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).flatten(-2)


generate = generation.make_generate(paddle.to_tensor)
