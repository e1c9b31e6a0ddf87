"""Attention within a window, and the splitting of queries, keys and masks into its blocks."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from d2l_compat._shared.windows import Blocks
from d2l_compat.jax import _blockwise
from d2l_compat.jax._arrays import Array


def attend_in_blocks(
    queries: jax.Array,
    keys: jax.Array,
    values: jax.Array,
    blocks: Blocks,
    valid_lens: Array | None = None,
    score_bias: jax.Array | None = None,
    *,
    drop: Callable[[jax.Array], jax.Array],
) -> jax.Array:
    """Compute attention within a window, with weights changed by ``drop``; shapes as in DotProductAttention."""
    split = split_queries(queries / math.sqrt(queries.shape[-1]), blocks)
    scores = split @ split_keys(keys, blocks).swapaxes(2, 3)
    bias: Any = 0 if score_bias is None else split_bias(score_bias, blocks)
    bias = jnp.where(split_mask(valid_lens, blocks), bias, -jnp.inf).astype(scores.dtype)
    weights = _blockwise.softmax(scores, None, bias)
    return join_queries(drop(weights) @ split_keys(values, blocks), blocks)


def split_queries(X: jax.Array, blocks: Blocks) -> jax.Array:
    """Reshape (batch, queries, features) to (batch, blocks, size, features)."""
    X = _pad_front(X, blocks.query_padding, axis=1)
    return X.reshape(len(X), blocks.count, blocks.size, X.shape[2])


def join_queries(X: jax.Array, blocks: Blocks) -> jax.Array:
    """Reverse :func:`split_queries`."""
    X = X.reshape(len(X), blocks.count * blocks.size, X.shape[3])
    return X[:, blocks.query_padding :]


def split_keys(X: jax.Array, blocks: Blocks) -> jax.Array:
    """Gather each block's keys or values: the sinks, the block before, its own; (batch, blocks, keys, features)."""
    batch, _, size = X.shape
    sinks = X[:, None, : blocks.num_sinks]
    sinks = jnp.broadcast_to(sinks, (batch, blocks.count, blocks.num_sinks, size))
    X = _pad_front(X, blocks.key_padding, axis=1)
    X = X.reshape(batch, blocks.count + 1, blocks.size, size)
    return jnp.concatenate([sinks, X[:, :-1], X[:, 1:]], axis=2)


def split_bias(score_bias: jax.Array, blocks: Blocks) -> jax.Array:
    """Gather each block's part of (..., queries, keys), as (..., blocks, size, 2 * size)."""
    size, count = blocks.size, blocks.count
    padded = _pad_front(score_bias, blocks.query_padding, axis=score_bias.ndim - 2)
    padded = _pad_front(padded, blocks.key_padding, axis=score_bias.ndim - 1)
    tiles = padded.reshape(*padded.shape[:-2], count, size, count + 1, size)
    block = np.arange(count)
    # One gather has one gradient of full size; a slice for each block would have as many. Since a slice separates the
    # two indices, their common axis comes first.
    parts = [tiles[..., block, :, block + i, :] for i in (0, 1)]
    return jnp.moveaxis(jnp.concatenate(parts, axis=-1), 0, -3)


def split_mask(valid_lens: Array | None, blocks: Blocks) -> jax.Array:
    """Return which keys each query sees; shape (batch or 1, blocks, size, keys).

    It equals ``blocks.is_visible``, but is computed when it is used: NumPy's result would be stored in compiled code.
    """
    keys = jnp.asarray(blocks.key_positions)[None]
    distances = jnp.asarray(blocks.query_positions) - keys
    in_window = (distances >= 0) & (distances < blocks.window) & (keys >= 0)
    is_sink = np.arange(keys.shape[-1]) < blocks.num_sinks
    is_visible = jnp.where(is_sink, distances >= blocks.window, in_window)
    if valid_lens is None:
        return is_visible
    lens = jnp.asarray(valid_lens).astype(keys.dtype)
    lens = split_queries(lens[..., None], blocks) if lens.ndim == 2 else lens[:, None, None, None]
    return is_visible & (keys < lens)


def hide_outside(
    score_bias: jax.Array | None, queries: jax.Array, keys: jax.Array, window: int | None
) -> jax.Array | None:
    """Return the bias with minus infinity for keys that end before the window; None if there is neither.

    The mask is computed by JAX, since ``jit`` can then remove it together with weights that are not used.
    """
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    if window is None or window >= num_keys:
        return score_bias
    distances = jnp.arange(num_keys - num_queries, num_keys)[:, None] - jnp.arange(num_keys)
    bias = jnp.zeros((), queries.dtype) if score_bias is None else score_bias
    return jnp.where(distances < window, bias, -jnp.inf)


def _pad_front(X: jax.Array, num: int, axis: int) -> jax.Array:
    """Add ``num`` zeros in front; if it is negative, remove as many entries."""
    padding = [(num if i == axis else 0, 0, 0) for i in range(X.ndim)]
    return jax.lax.pad(X, jnp.zeros((), X.dtype), padding)
