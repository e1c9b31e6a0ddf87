"""Splitting queries, keys and masks into the blocks of attention within a window."""

from typing import Any

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import windows
from d2l_compat._shared.windows import Blocks
from d2l_compat.tensorflow._keras import dynamic_shape


def clip_window(window: int | None, keys: Tensor, num_sinks: int = 0) -> int | None:
    """Return the window, or None if the causal mask alone hides as many keys."""
    num_keys = keys.shape[1]
    is_whole = window is not None and num_keys is not None and window + num_sinks >= num_keys
    return None if is_whole else window


def choose_blocks(queries: Tensor, keys: Tensor, window: int | None, num_sinks: int = 0) -> Any:
    """Return the blocks, or None as in ``_shared``, or if a graph is traced for any number of queries or keys."""
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    if num_queries is None or num_keys is None:
        return None
    return windows.choose_blocks(num_queries, num_keys, window, num_sinks)


def split_queries(X: Tensor, blocks: Blocks) -> Tensor:
    """Reshape (batch, queries, features) to (batch, blocks, size, features)."""
    batch, _, features = dynamic_shape(X)
    X = tf.pad(X, [[0, 0], [blocks.query_padding, 0], [0, 0]])
    return tf.reshape(X, (batch, blocks.count, blocks.size, features))


def join_queries(X: Tensor, blocks: Blocks) -> Tensor:
    """Reverse :func:`split_queries`."""
    batch, _, _, features = dynamic_shape(X)
    X = tf.reshape(X, (batch, blocks.count * blocks.size, features))
    return X[:, blocks.query_padding :]


def split_keys(X: Tensor, blocks: Blocks) -> Tensor:
    """Gather each block's keys or values: the sinks, the block before, its own; (batch, blocks, keys, features)."""
    batch, _, features = dynamic_shape(X)
    sinks = tf.repeat(X[:, tf.newaxis, : blocks.num_sinks], blocks.count, axis=1)
    X = X[:, max(-blocks.key_padding, 0) :]
    X = tf.pad(X, [[0, 0], [max(blocks.key_padding, 0), 0], [0, 0]])
    X = tf.reshape(X, (batch, blocks.count + 1, blocks.size, features))
    return tf.concat([sinks, X[:, :-1], X[:, 1:]], axis=2)


def split_bias(score_bias: Tensor, blocks: Blocks) -> Tensor:
    """Gather each block's part of (..., queries, keys), as (..., blocks, size, 2 * size)."""
    score_bias = score_bias[..., max(-blocks.key_padding, 0) :]
    paddings = [[blocks.query_padding, 0], [max(blocks.key_padding, 0), 0]]
    other_axes = [[0, 0]] * (len(score_bias.shape) - 2)
    padded = tf.pad(score_bias, other_axes + paddings)
    # Slicing all rows for each block would give each slice a gradient of full size.
    rows = tf.split(padded, blocks.count, axis=-2)
    size = blocks.size
    parts = [row[..., i * size : (i + 2) * size] for i, row in enumerate(rows)]
    return tf.stack(parts, axis=-3)


def split_mask(valid_lens: Tensor | None, blocks: Blocks) -> Tensor:
    """Return which keys each query sees; shape (batch or 1, blocks, size, keys)."""
    is_visible = tf.constant(blocks.is_visible)[tf.newaxis]
    if valid_lens is None:
        return is_visible
    lens = tf.cast(valid_lens, tf.int64)
    if len(lens.shape) == 2:
        lens = split_queries(lens[..., tf.newaxis], blocks)
    else:
        lens = lens[:, tf.newaxis, tf.newaxis, tf.newaxis]
    return is_visible & (tf.constant(blocks.key_positions, tf.int64) < lens)


def visible_keys(
    queries: Tensor, keys: Tensor, window: int | None, num_sinks: int = 0
) -> Tensor | None:
    """Return which keys a window and its sinks leave to each query, besides later ones; shape (queries, keys)."""
    if window is None:
        return None
    num_queries, num_keys = tf.shape(queries)[1], tf.shape(keys)[1]
    query = tf.range(num_keys - num_queries, num_keys)[:, tf.newaxis]
    key = tf.range(num_keys)
    return (query - key < window) | (key < num_sinks)
