"""Attention without its matrix of weights: a block of queries at a time, Rabe & Staats (2021).

What is kept for the gradients grows with the number of queries, not with queries times keys:
each block's weights are formed anew on the way back.
"""

import math
from collections.abc import Callable

import tensorflow as tf
from tensorflow import Tensor

BLOCK = 256  # queries
MIN_QUERIES = 2048  # with fewer the matrix is cheap


def attend(queries: Tensor, keys: Tensor, values: Tensor, lens: Tensor | None) -> Tensor:
    """Softmax(Q K^T / sqrt(d)) V, over the first ``lens`` keys: shape (batch, queries, v).

    ``lens`` is (batch,), (batch, queries) or (1, queries). A query of length 0 pools zero.
    """

    def pool(
        queries: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Callable[[Tensor], list[Tensor]]]:
        # Or the tape keeps the weights of every block, though it has no use for them.
        q, k, v = (tf.stop_gradient(inputs) for inputs in (queries, keys, values))
        blocks = [tf.matmul(_weights(q, k, lens, block), v) for block in _blocks(q)]

        def gradients(upstream: Tensor) -> list[Tensor]:
            return _gradients(queries, keys, values, lens, upstream)

        return tf.concat(blocks, axis=1), gradients

    return tf.custom_gradient(pool)(queries, keys, values)


def _gradients(
    queries: Tensor, keys: Tensor, values: Tensor, lens: Tensor | None, upstream: Tensor
) -> list[Tensor]:
    """Of queries, keys and values, from those of what was pooled."""
    of_queries, of_keys, of_values = [], tf.zeros_like(keys), tf.zeros_like(values)
    for block in _blocks(queries):
        share, slope = _weights(queries, keys, lens, block), upstream[:, block]
        of_values += tf.matmul(share, slope, transpose_a=True)
        of_share = tf.matmul(slope, values, transpose_b=True)
        # The softmax's own: of a score, its share of how far it stands out.
        mean = tf.reduce_sum(share * of_share, axis=-1, keepdims=True)
        of_scores = share * (of_share - mean)
        of_queries.append(tf.matmul(of_scores, keys))
        of_keys += tf.matmul(of_scores, queries[:, block], transpose_a=True)
    scale = _scale(queries)
    return [tf.concat(of_queries, axis=1) * scale, of_keys * scale, of_values]


def _blocks(queries: Tensor) -> list[slice]:
    return [slice(i, i + BLOCK) for i in range(0, queries.shape[1], BLOCK)]


def _scale(queries: Tensor) -> float:
    return 1 / math.sqrt(queries.shape[-1])


def _weights(queries: Tensor, keys: Tensor, lens: Tensor | None, block: slice) -> Tensor:
    scores = tf.matmul(queries[:, block] * _scale(queries), keys, transpose_b=True)
    if lens is not None and lens.shape.rank == 2:
        return softmax(scores, lens[:, block])
    return softmax(scores, lens)


def softmax(scores: Tensor, lens: Tensor | None, score_bias: Tensor | None = None) -> Tensor:
    """Over the first ``lens`` scores, as in :func:`attend`; exactly 0 past them.

    So it is where ``score_bias``, which is added to the scores, is minus infinity.
    """
    valid = None
    if lens is not None:
        lens = tf.cast(lens, tf.int64)  # the one dtype that compares with all others
        per_query = lens if lens.shape.rank == 2 else lens[:, None]
        keys = tf.range(tf.shape(scores, tf.int64)[-1], dtype=tf.int64)
        valid = keys < per_query[:, :, None]
    if score_bias is not None:
        scores, is_seen = scores + score_bias, score_bias != -math.inf
        valid = is_seen if valid is None else valid & is_seen
    if valid is None:
        return tf.nn.softmax(scores, axis=-1)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    weights = tf.nn.softmax(tf.where(valid, scores, scores.dtype.min), axis=-1)
    if score_bias is None and tf.executing_eagerly() and tf.reduce_min(lens) > 0:
        return weights  # that are 0 there already
    return tf.where(valid, weights, tf.zeros((), scores.dtype))
