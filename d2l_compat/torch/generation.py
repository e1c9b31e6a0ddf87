"""Causal self-attention with a cache of keys and values, and generation token by token."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from d2l_compat._shared import cache, checks, encoding, generation
from d2l_compat._shared.cache import Sizes, new_positions, start_lengths
from d2l_compat._shared.generation import next_token_probs
from d2l_compat._shared.windows import causal_blocks
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch.attention import attend_in_blocks, linear

__all__ = ["CausalSelfAttention", "KVCache", "generate", "next_token_probs"]


class KVCache(cache.KVCache):
    __doc__ = cache.KVCache.__doc__
    arrays = arrays
    keys: Tensor
    values: Tensor

    def _zeros(self, shape: tuple[int, ...], **options: Any) -> Tensor:
        return torch.zeros(shape, **options)

    def _itemsize(self) -> int:
        return self.keys.element_size()

    def _write(self, keys: Tensor, values: Tensor, start: int, end: int) -> None:
        self.keys[:, :, start:end] = keys.detach()
        self.values[:, :, start:end] = values.detach()

    def _concat(self, old: Tensor, new: Tensor) -> Tensor:
        return torch.cat([old, new.detach()], dim=2)

    def _take(self, both: Tensor, sources: np.ndarray) -> Tensor:
        index = torch.from_numpy(sources).to(both.device)
        return both.take_along_dim(index[:, None, :, None], dim=2)


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
            device=weight.device,
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
        lens = np.array([X.shape[1]] * len(X) if valid_lens is None else valid_lens.tolist())
        positions = new_positions(start_lengths(cache, len(X), self.sizes), lens, X.shape[1])
        queries = self._split(self.W_q(X), positions, rope=self.sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=self.sizes.rope)
        values = self._split(self.W_v(X), positions)
        dropout = self.dropout if self.training else 0.0
        if cache is None:
            pooled = self._attend(queries, keys, values, dropout)
        else:
            keys, values, key_positions = cache.append(keys, values, valid_lens)
            is_visible = torch.from_numpy(self.sizes.visible_keys(positions, key_positions))
            pooled = F.scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=is_visible[:, None].to(X.device),
                dropout_p=dropout,
                enable_gqa=True,
            )
        return self.W_o(pooled.transpose(1, 2).flatten(2))

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
        """Attend without a cache; padding comes last, so that the causal mask hides it."""
        sizes, steps = self.sizes, queries.shape[2]
        blocks = causal_blocks(steps, sizes.window, sizes.num_sinks)
        if blocks is None:
            return F.scaled_dot_product_attention(
                queries, keys, values, dropout_p=dropout, is_causal=True, enable_gqa=True
            )
        keys, values = (
            X.repeat_interleave(sizes.num_heads // sizes.num_kv_heads, dim=1).flatten(0, 1)
            for X in (keys, values)
        )
        pooled = attend_in_blocks(queries.flatten(0, 1), keys, values, blocks, dropout=dropout)
        return pooled.unflatten(0, (-1, sizes.num_heads))

    def _split(self, X: Tensor, positions: np.ndarray, rope: bool = False) -> Tensor:
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size), and rotate by positions."""
        X = X.unflatten(-1, (-1, self.sizes.head_size)).transpose(1, 2)
        if not rope:
            return X
        table = encoding.rotations_at(positions, self.sizes.head_size)[:, :, None]
        cos, sin = torch.from_numpy(table).to(X)
        x, y = X[..., ::2], X[..., 1::2]
        return torch.stack([x * cos - y * sin, x * sin + y * cos], dim=-1).flatten(-2)


generate = generation.make_generate(torch.from_numpy)
