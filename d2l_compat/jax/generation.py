"""Causal self-attention with a cache of keys and values, and generation token by token."""

import math
from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct

from d2l_compat._shared import checks, encoding, generation
from d2l_compat._shared.cache import (
    Sizes,
    Slots,
    check_append,
    check_room,
    make_slots,
    new_positions,
    start_lengths,
)
from d2l_compat._shared.generation import next_token_probs
from d2l_compat._shared.windows import choose_blocks
from d2l_compat.jax import _blockwise
from d2l_compat.jax._arrays import Array, arrays, as_jax, check_training
from d2l_compat.jax.windows import attend_in_blocks

__all__ = ["CausalSelfAttention", "KVCache", "generate", "next_token_probs"]


class KVCache(struct.PyTreeNode):
    """Keys and values of the tokens that an attention layer has read, for a batch of texts.

    It is immutable: what adds tokens returns a new cache. ``keys`` and ``values`` have the shape (batch, kv heads,
    slots, features). ``lengths``, int32 of shape (batch,), counts the tokens that each text has so far. With a
    ``window`` there are ``num_sinks`` + ``window`` slots: the first ``num_sinks`` tokens stay, and each new one
    replaces the oldest of the others. A layer makes a cache that fits with its ``make_cache``.

    A cache is a pytree of fixed shapes: a jitted step is compiled once for all chunks of a size, and updates the cache
    in place if it is donated. Under ``jit`` the lengths are not known, so tokens past the end raise no error: they are
    counted, but not stored, and a layer's result for them is NaN.
    """

    keys: jax.Array
    values: jax.Array
    lengths: jax.Array
    slots: Slots = struct.field(pytree_node=False)

    @classmethod
    def create(
        cls,
        batch_size: int,
        num_kv_heads: int,
        head_size: int,
        max_len: int,
        *,
        window: int | None = None,
        num_sinks: int = 0,
        dtype: Any = jnp.float32,
    ) -> "KVCache":
        """Return an empty cache for texts of up to ``max_len`` tokens; with a ``window``, texts may have any length.

        Raises ValueError or TypeError for sizes that are not integers of at least 1 (``num_sinks``: of at least 0).
        """
        slots = make_slots(max_len, window, num_sinks)
        batch_size = checks.size("batch_size", batch_size)
        num_kv_heads = checks.size("num_kv_heads", num_kv_heads)
        head_size = checks.size("head_size", head_size)
        keys, values = jnp.zeros((2, batch_size, num_kv_heads, slots.size, head_size), dtype)
        return cls(keys, values, jnp.zeros(batch_size, jnp.int32), slots)

    def reset(self) -> "KVCache":
        """Return a cache without tokens, which shares the arrays."""
        return self.replace(lengths=jnp.zeros_like(self.lengths))

    @property
    def nbytes(self) -> int:
        """The size of keys and values, in bytes."""
        return self.keys.nbytes + self.values.nbytes

    def append(
        self, keys: jax.Array, values: jax.Array, valid_lens: jax.Array | None = None
    ) -> tuple["KVCache", jax.Array, jax.Array, jax.Array]:
        """Add the keys and values of new tokens, shape (batch, kv heads, steps, features).

        Of each text only the first ``valid_lens``, integers of shape (batch,), are real; the others are padding.
        Returns the new cache, then keys, values and their positions, shape (batch, keys), of old and new tokens
        together: a query finds even those that later tokens of its own chunk replace. A position of -1 means that
        there is no token. Raises ValueError or TypeError if they do not fit.
        """
        lens = check_append(self, keys, values, valid_lens, arrays)
        batch, _, num_steps, _ = keys.shape
        lens = jnp.full(batch, num_steps) if lens is None else lens
        lens = jnp.asarray(lens, jnp.int32)  # whatever their dtype is, that of lengths stays
        new_lengths = self.lengths + lens
        if not isinstance(new_lengths, jax.core.Tracer):
            check_room(self.slots, new_lengths)
        positions = new_positions(self.lengths, lens, num_steps, jnp)
        targets = self.slots.targets(positions, new_lengths, jnp)
        rows = jnp.arange(batch)[:, None]

        def write(old: jax.Array, new: jax.Array) -> jax.Array:
            # A token that is not kept has no slot: its index is past the end.
            return old.at[rows, :, targets].set(new.swapaxes(1, 2), mode="drop")

        cache = self.replace(
            keys=write(self.keys, keys), values=write(self.values, values), lengths=new_lengths
        )
        if num_steps == 1 or not self.slots.is_rolling:
            return cache, cache.keys, cache.values, self.slots.held_positions(new_lengths, jnp)
        # A query also sees tokens that later ones of its own chunk replace.
        all_keys = jnp.concatenate([self.keys, keys], axis=2)
        all_values = jnp.concatenate([self.values, values], axis=2)
        held = self.slots.held_positions(self.lengths, jnp)
        return cache, all_keys, all_values, jnp.concatenate([held, positions], axis=1)


class CausalSelfAttention(nn.Module):
    """Self-attention in which a token sees itself and what came before it, with a cache for generating.

    ``num_kv_heads`` heads of keys and values, a divisor of ``num_heads``, serve the heads of queries: query head h
    reads key head h // (num_heads / num_kv_heads). With as many, this is multi-head attention; with fewer,
    grouped-query attention (Ainslie et al., 2023); with one, multi-query attention (Shazeer, 2019). With ``rope``,
    queries and keys are rotated by their positions (:class:`RotaryEncoding`, interleaved). With a ``window``, a token
    sees the last ``window`` tokens, itself among them, and the text's first ``num_sinks`` (Xiao et al., 2024).

    The projections are W_q, W_k, W_v and W_o; ``dropout`` is the share of weights dropped in training. Angles are
    computed in JAX's default precision: in float32, at position 10,000, they are rounded to about 0.0003 radians.
    Raises ValueError or TypeError for arguments of the wrong type or range.
    """

    num_hiddens: int
    num_heads: int
    dropout: float = 0.0
    bias: bool = False
    _: KW_ONLY
    num_kv_heads: int | None = None
    rope: bool = False
    window: int | None = None
    num_sinks: int = 0

    def __post_init__(self) -> None:
        checks.check_dropout(self.dropout)
        checks.check_flag("bias", self.bias)
        self.sizes = Sizes.check(
            self.num_hiddens,
            self.num_heads,
            self.num_kv_heads,
            self.window,
            self.num_sinks,
            self.rope,
        )
        super().__post_init__()

    def setup(self) -> None:
        self.W_q = nn.Dense(self.sizes.num_hiddens, use_bias=self.bias)
        self.W_k = nn.Dense(self.sizes.kv_size, use_bias=self.bias)
        self.W_v = nn.Dense(self.sizes.kv_size, use_bias=self.bias)
        self.W_o = nn.Dense(self.sizes.num_hiddens, use_bias=self.bias)
        self.drop = nn.Dropout(self.dropout)

    def make_cache(self, batch_size: int, max_len: int, dtype: Any = jnp.float32) -> KVCache:
        """Return an empty cache for ``batch_size`` texts of up to ``max_len`` tokens.

        With a window, texts may have any length. ``dtype`` is that of the layer's output. No parameters are needed.
        """
        sizes = self.sizes
        return KVCache.create(
            batch_size,
            sizes.num_kv_heads,
            sizes.head_size,
            max_len,
            window=sizes.window,
            num_sinks=sizes.num_sinks,
            dtype=dtype,
        )

    def __call__(
        self,
        X: Array,
        valid_lens: Array | None = None,
        training: bool = False,
        *,
        cache: KVCache | None = None,
    ) -> jax.Array | tuple[jax.Array, KVCache]:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, integers of shape (batch,), counts the real tokens of each example; padding comes
        after them, and what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each
        text: they also see the cached ones, and the new cache, to which they are added, is returned as well. The
        results are those of one call with all tokens. ``training`` needs a random key named "dropout".

        Raises ValueError or TypeError for input that does not fit. A traced cache has no lengths to check yet: results
        for tokens past its end are then NaN.
        """
        check_training(training)
        X = as_jax(X)
        arrays.check_texts(X, valid_lens, self.W_q)
        batch, num_steps, _ = X.shape
        lens = jnp.full(batch, num_steps) if valid_lens is None else jnp.asarray(valid_lens)
        lengths = start_lengths(cache, batch, self.sizes, KVCache)
        positions = new_positions(lengths, lens, num_steps, jnp)
        queries = self._split(self.W_q(X), positions, rope=self.sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=self.sizes.rope)
        values = self._split(self.W_v(X), positions)
        if cache is None:
            pooled = self._attend(queries, keys, values, training)
        else:
            cache, keys, values, key_positions = cache.append(keys, values, lens)
            is_visible = self.sizes.visible_keys(positions, key_positions)
            pooled = self._attend_visible(queries, keys, values, is_visible, training)
        output = self.W_o(pooled.swapaxes(1, 2).reshape(batch, num_steps, self.sizes.num_hiddens))
        if cache is None:
            return output
        if not cache.slots.is_rolling:
            is_stored = positions < cache.slots.size
            output = jnp.where(is_stored[:, :, None], output, jnp.nan)
        return output, cache

    def _attend(
        self, queries: jax.Array, keys: jax.Array, values: jax.Array, training: bool
    ) -> jax.Array:
        """Attend without a cache; padding comes last, so that the causal mask hides it."""
        sizes, steps = self.sizes, queries.shape[2]
        blocks = choose_blocks(steps, steps, sizes.window, sizes.num_sinks)
        is_dropping = training and self.dropout > 0
        is_blockwise = sizes.window is None and _blockwise.is_faster(queries[:, 0])
        if blocks is None and (is_dropping or not is_blockwise):
            positions = jnp.arange(steps)[None]
            is_visible = sizes.visible_keys(positions, positions)
            return self._attend_visible(queries, keys, values, is_visible, training)
        # Each head of queries gets its own copy of the keys and values that it reads.
        rows = len(queries) * sizes.num_heads
        flat_queries, flat_keys, flat_values = (
            jnp.repeat(X, sizes.num_heads // X.shape[1], axis=1).reshape(rows, *X.shape[2:])
            for X in (queries, keys, values)
        )
        if blocks is None:
            lens = jnp.broadcast_to(jnp.arange(1, steps + 1), (rows, steps))
            pooled = _blockwise.attend(flat_queries, flat_keys, flat_values, lens)
        else:
            drop = partial(self.drop, deterministic=not training)
            pooled = attend_in_blocks(flat_queries, flat_keys, flat_values, blocks, drop=drop)
        return pooled.reshape(queries.shape)

    def _attend_visible(
        self,
        queries: jax.Array,
        keys: jax.Array,
        values: jax.Array,
        is_visible: jax.Array,
        training: bool,
    ) -> jax.Array:
        """Attend with a mask of shape (batch or 1, queries, keys); each query sees at least one key."""
        # Heads of queries are grouped by the head of keys that they read.
        num_kv_heads = self.sizes.num_kv_heads
        group_size = self.sizes.num_heads // num_kv_heads
        grouped = queries.reshape(len(queries), num_kv_heads, group_size, *queries.shape[2:])
        scores = jnp.einsum("bhgqd,bhkd->bhgqk", grouped, keys) / math.sqrt(self.sizes.head_size)
        finite = jnp.where(is_visible[:, None, None], scores, jnp.finfo(scores.dtype).min)
        weights = self.drop(jax.nn.softmax(finite), deterministic=not training)
        return jnp.einsum("bhgqk,bhkd->bhgqd", weights, values).reshape(queries.shape)

    def _split(self, X: jax.Array, positions: jax.Array, rope: bool = False) -> jax.Array:
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size), and rotate by positions."""
        num_heads = X.shape[-1] // self.sizes.head_size
        X = X.reshape(*X.shape[:2], num_heads, self.sizes.head_size).swapaxes(1, 2)
        if not rope:
            return X
        table = encoding.rotations_at(positions, self.sizes.head_size, xp=jnp)
        cos, sin = table[:, :, None].astype(X.dtype)
        x, y = X[..., ::2], X[..., 1::2]
        return jnp.stack([x * cos - y * sin, x * sin + y * cos], -1).reshape(X.shape)


generate = generation.make_generate(jnp.asarray)
