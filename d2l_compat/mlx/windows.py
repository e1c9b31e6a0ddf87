"""Splitting queries, keys and masks into the blocks of attention within a window."""

import math

import mlx.core as mx

from d2l_compat._shared.windows import Blocks, visible_keys


def split_queries(X: mx.array, blocks: Blocks) -> mx.array:
    """Reshape (batch, queries, features) to (batch, blocks, size, features)."""
    X = pad_front(X, blocks.query_padding, axis=1)
    return mx.unflatten(X, 1, (blocks.count, blocks.size))


def join_queries(X: mx.array, blocks: Blocks) -> mx.array:
    """Reverse :func:`split_queries`."""
    return X.flatten(1, 2)[:, blocks.query_padding :]


def split_keys(X: mx.array, blocks: Blocks) -> mx.array:
    """Gather each block's keys or values: the sinks, the block before, its own; (batch, blocks, keys, features)."""
    batch, _, num_features = X.shape
    shape = batch, blocks.count, blocks.num_sinks, num_features
    sinks = mx.broadcast_to(X[:, None, : blocks.num_sinks], shape)
    X = pad_front(X, blocks.key_padding, axis=1)
    X = mx.unflatten(X, 1, (blocks.count + 1, blocks.size))
    return mx.concatenate([sinks, X[:, :-1], X[:, 1:]], axis=2)


def split_bias(score_bias: mx.array, blocks: Blocks) -> mx.array:
    """Gather each block's part of (..., queries, keys), as (..., blocks, size, 2 * size)."""
    padded = pad_front(score_bias, blocks.query_padding, axis=-2)
    padded = pad_front(padded, blocks.key_padding, axis=-1)
    tiles = mx.unflatten(padded, -1, (blocks.count + 1, blocks.size))
    tiles = mx.unflatten(tiles, -3, (blocks.count, blocks.size))
    # Block i of queries needs the blocks i and i + 1 of keys: two diagonals, along a new last axis.
    diagonals = [mx.diagonal(tiles, offset, axis1=-4, axis2=-2) for offset in (0, 1)]
    return mx.moveaxis(mx.concatenate(diagonals, axis=-2), -1, -3)


def split_mask(valid_lens: mx.array | None, blocks: Blocks) -> mx.array:
    """Return which keys each query sees; shape (batch or 1, blocks, size, keys)."""
    is_visible = mx.array(blocks.is_visible)[None]
    if valid_lens is None:
        return is_visible
    lens = valid_lens.astype(mx.int32)
    lens = split_queries(lens[..., None], blocks) if lens.ndim == 2 else lens[:, None, None, None]
    return mx.logical_and(is_visible, mx.array(blocks.key_positions) < lens)


def pad_front(X: mx.array, padding: int, axis: int) -> mx.array:
    """Add zeros before an axis; if ``padding`` is negative, remove as many entries."""
    if padding < 0:
        return mx.split(X, [-padding], axis)[1]
    widths = [(0, 0)] * X.ndim
    widths[axis] = padding, 0
    return mx.pad(X, widths)


def hide_outside(
    score_bias: mx.array | None, queries: mx.array, keys: mx.array, window: int | None
) -> mx.array | None:
    """Return the bias with minus infinity for keys that end before the window; None if there is neither."""
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    if window is None or window >= num_keys:
        return score_bias
    is_visible = mx.array(visible_keys(num_queries, num_keys, window))
    bias = mx.array(0, queries.dtype) if score_bias is None else score_bias
    return mx.where(is_visible, bias, -math.inf)
