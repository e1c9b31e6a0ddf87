"""Splitting queries, keys and masks into the blocks of attention within a window."""

import math
from typing import Any

import numpy as onp
from mxnet import nd, np
from numpy.typing import NDArray

from d2l_compat._shared.windows import Blocks, visible_keys


def split_queries(X: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Reshape (batch, queries, features) to (batch * blocks, size, features)."""
    X = _pad_front(X, blocks.query_padding)
    return X.reshape(len(X) * blocks.count, blocks.size, X.shape[2])


def join_queries(X: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Reverse :func:`split_queries`."""
    batch = len(X) // blocks.count
    return X.reshape(batch, blocks.count * blocks.size, X.shape[2])[:, blocks.query_padding :]


def split_keys(X: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Gather each block's keys or values: the sinks, the block before, its own; (batch * blocks, keys, features)."""
    batch, _, num_features = X.shape
    sinks = X[:, : blocks.num_sinks]
    X = _pad_front(X, blocks.key_padding)
    X = X.reshape(batch, blocks.count + 1, blocks.size, num_features)
    parts = [X[:, :-1], X[:, 1:]]
    if blocks.num_sinks:
        shape = batch, blocks.count, blocks.num_sinks, num_features
        parts.insert(0, np.broadcast_to(np.expand_dims(sinks, 1), shape))
    num_keys = blocks.num_sinks + 2 * blocks.size
    return np.concatenate(parts, axis=2).reshape(batch * blocks.count, num_keys, num_features)


def split_bias(score_bias: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Gather each block's part of (batch or 1, queries, keys), as (batch or 1, blocks, size, 2 * size)."""
    size = blocks.size
    padded = _pad_front(score_bias, blocks.query_padding).swapaxes(1, 2)
    padded = _pad_front(padded, blocks.key_padding).swapaxes(1, 2)
    # Slicing the whole bias in the loop would make a gradient of its size for each block.
    rows = split_evenly(padded, blocks.count, axis=1)
    parts = [row[:, :, i * size : (i + 2) * size] for i, row in enumerate(rows)]
    return np.stack(parts, axis=1)


def split_mask(valid_lens: NDArray[Any] | None, blocks: Blocks) -> NDArray[onp.bool_]:
    """Return which keys each query sees; shape (batch or 1, blocks, size, keys)."""
    is_visible = blocks.is_visible[None]
    if valid_lens is None:
        return is_visible
    lens = valid_lens[:, None, None, None]
    if valid_lens.ndim == 2:
        padded = onp.pad(valid_lens, [(0, 0), (blocks.query_padding, 0)])
        lens = padded.reshape(-1, blocks.count, blocks.size, 1)
    return is_visible & (blocks.key_positions < lens)


def block_bias(
    queries: np.ndarray,
    blocks: Blocks,
    valid_lens: NDArray[Any] | None = None,
    score_bias: np.ndarray | None = None,
) -> np.ndarray:
    """Return the blocks' scores' bias, minus infinity for hidden keys; shape (batch * blocks, size, keys)."""
    bias = _hide(onp.logical_not(split_mask(valid_lens, blocks)), queries)
    if score_bias is not None:
        bias = bias + split_bias(score_bias.reshape(-1, *score_bias.shape[-2:]), blocks)
    shape = len(queries), *bias.shape[1:]
    return np.broadcast_to(bias, shape).reshape(shape[0] * shape[1], *shape[2:])


def hide_outside(
    score_bias: np.ndarray | None, queries: np.ndarray, keys: np.ndarray, window: int | None
) -> np.ndarray | None:
    """Return the bias with minus infinity for keys that end before the window; None if there is neither."""
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    if window is None or window >= num_keys:
        return score_bias
    is_outside = onp.logical_not(visible_keys(num_queries, num_keys, window))
    band = _hide(is_outside, queries)
    return band if score_bias is None else score_bias + band


def split_evenly(X: np.ndarray, count: int, axis: int) -> list[np.ndarray]:
    """Split an array into ``count`` equal parts, in time that does not depend on their number."""
    if count == 1:
        return [X]
    # For each element, `np.split` searches a list of all parts.
    parts = nd.split(X.as_nd_ndarray(), num_outputs=count, axis=axis)
    return [part.as_np_ndarray() for part in parts]


def _hide(is_hidden: NDArray[onp.bool_], like: np.ndarray) -> np.ndarray:
    """Return minus infinity where a key is hidden, and 0 elsewhere, with the dtype and the device of ``like``."""
    return np.array(onp.where(is_hidden, -math.inf, 0), dtype=like.dtype, ctx=like.ctx)


def _pad_front(X: np.ndarray, num_rows: int) -> np.ndarray:
    """Add rows of zeros before (batch, rows, features); if the number is negative, remove rows."""
    if num_rows <= 0:
        return X[:, -num_rows:]
    zeros = np.zeros((len(X), num_rows, X.shape[2]), dtype=X.dtype, ctx=X.ctx)
    return np.concatenate([zeros, X], axis=1)
