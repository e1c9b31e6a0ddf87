"""Attention without the full matrix of weights, one block of queries at a time: Rabe & Staats (2021).

The memory for the gradients grows with the number of queries, not with queries * keys: the backward
pass computes each block's weights again.
"""

import math
from collections.abc import Callable

import tensorflow as tf
from tensorflow import Tensor

BLOCK = 256  # queries
MIN_QUERIES = 2048  # for fewer the full matrix is cheap


def is_long(queries: Tensor) -> bool:
    """Return whether the full matrix of weights would be expensive."""
    return (queries.shape[1] or 0) >= MIN_QUERIES


def attend(queries: Tensor, keys: Tensor, values: Tensor, lens: Tensor | None) -> Tensor:
    """Return softmax(Q K^T / sqrt(d)) V over the first ``lens`` keys, shape (batch, queries, v).

    ``lens`` is (batch,), (batch, queries) or (1, queries). The result of a query without a valid key is zero.
    """

    def pool(
        queries: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], list[Tensor]]]:
        # Otherwise the tape keeps the weights of every block, although it does not need them.
        q, k, v = (tf.stop_gradient(inputs) for inputs in (queries, keys, values))
        blocks = [tf.matmul(_weights(q, k, lens, block), v) for block in _blocks(q)]

        def gradients(grad_pooled: Tensor) -> list[Tensor]:
            return _gradients(queries, keys, values, lens, grad_pooled)

        return tf.concat(blocks, axis=1), gradients

    return tf.custom_gradient(pool)(queries, keys, values)


def _gradients(
    queries: Tensor, keys: Tensor, values: Tensor, lens: Tensor | None, grad_pooled: Tensor
) -> list[Tensor]:
    """Compute the gradients of queries, keys and values from that of the output."""
    grad_query_blocks = []
    grad_keys = tf.zeros_like(keys)
    grad_values = tf.zeros_like(values)
    for block in _blocks(queries):
        weights = _weights(queries, keys, lens, block)
        grad_block = grad_pooled[:, block]
        grad_values += tf.matmul(weights, grad_block, transpose_a=True)
        grad_weights = tf.matmul(grad_block, values, transpose_b=True)
        # Through the softmax: weight * (gradient - its weighted mean).
        mean = tf.reduce_sum(weights * grad_weights, axis=-1, keepdims=True)
        grad_scores = weights * (grad_weights - mean)
        grad_query_blocks.append(tf.matmul(grad_scores, keys))
        grad_keys += tf.matmul(grad_scores, queries[:, block], transpose_a=True)
    scale = _scale(queries)
    grad_queries = tf.concat(grad_query_blocks, axis=1) * scale
    return [grad_queries, grad_keys * scale, grad_values]


def _blocks(queries: Tensor) -> list[slice]:
    return [slice(i, i + BLOCK) for i in range(0, queries.shape[1], BLOCK)]


def _scale(queries: Tensor) -> float:
    return 1 / math.sqrt(queries.shape[-1])


def _weights(queries: Tensor, keys: Tensor, lens: Tensor | None, block: slice) -> Tensor:
    scores = tf.matmul(queries[:, block] * _scale(queries), keys, transpose_b=True)
    if lens is not None and lens.shape.rank == 2:
        return softmax(scores, lens[:, block])
    return softmax(scores, lens)


def softmax(
    scores: Tensor,
    lens: Tensor | None,
    score_bias: Tensor | None = None,
    is_visible: Tensor | None = None,
) -> Tensor:
    """Return the softmax over the first ``lens`` scores, as in :func:`attend`; exactly 0 past them.

    ``score_bias`` is added to the scores; where it is minus infinity, or ``is_visible`` is False, the result is
    exactly 0 too.
    """
    valid = is_visible
    if lens is not None:
        lens = tf.cast(lens, tf.int64)  # the dtype of ``keys``: only equal dtypes can be compared
        per_query = lens if lens.shape.rank == 2 else lens[:, None]
        keys = tf.range(tf.shape(scores, tf.int64)[-1], dtype=tf.int64)
        is_in_text = keys < per_query[:, :, None]
        valid = is_in_text if valid is None else valid & is_in_text
    if score_bias is not None:
        scores = scores + score_bias
        is_finite = score_bias != -math.inf
        valid = is_finite if valid is None else valid & is_finite
    if valid is None:
        return tf.nn.softmax(scores, axis=-1)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    weights = tf.nn.softmax(tf.where(valid, scores, scores.dtype.min), axis=-1)
    has_only_lens = score_bias is None and is_visible is None
    if has_only_lens and tf.executing_eagerly() and tf.reduce_min(lens) > 0:
        return weights  # already 0 at invalid keys
    return tf.where(valid, weights, tf.zeros((), scores.dtype))
