"""Attention without the full matrix of weights, a block of queries at a time: Rabe & Staats (2021).

The memory for the gradients grows with the number of queries, not with queries times keys, since
the backward pass recomputes the weights. Keys that no query of a block sees are skipped.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import Tensor
from paddle.autograd import PyLayer
from paddle.nn import functional as F

BLOCK = 512  # queries
MIN_QUERIES = 512  # with fewer the full matrix is cheap


def attend(queries: Tensor, keys: Tensor, values: Tensor, lens: Tensor | None) -> Tensor:
    """Return softmax(Q K^T / sqrt(d)) V over the first ``lens`` keys, shape (batch, queries, v).

    ``lens`` is (batch,), (batch, queries) or (1, queries). The result of a query without a valid key is zero.
    """
    return _BlockwiseAttention.apply(queries, keys, values, lens)


def softmax(scores: Tensor, lens: Tensor | None, score_bias: Tensor | None = None) -> Tensor:
    """Return the softmax over the first ``lens`` scores, as in :func:`attend`; exactly 0 past them.

    ``score_bias`` is added to the scores; where it is minus infinity, the result is exactly 0 too.
    """
    valid = None
    if lens is not None:
        lens = lens.astype("int64")  # some integer dtypes cannot be compared with int64
        per_query = lens if lens.ndim == 2 else lens.unsqueeze(1)
        valid = paddle.arange(scores.shape[2]) < per_query.unsqueeze(2)
    if score_bias is not None:
        scores = scores + score_bias
        is_finite = score_bias != -math.inf
        valid = is_finite if valid is None else valid & is_finite
    if valid is None:
        return F.softmax(scores, axis=-1)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    finite = scores.masked_fill(~valid, paddle.finfo(scores.dtype).min)
    return F.softmax(finite, axis=-1).masked_fill(~valid, 0)


class _BlockwiseAttention(PyLayer):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, lens: Any) -> Tensor:
        pooled = paddle.zeros([*queries.shape[:2], values.shape[2]], values.dtype)
        ctx.blocks = list(_blocks(queries, keys, lens))
        ctx.save_for_backward(queries, keys, values)
        for rows, columns, block_lens in ctx.blocks:
            weights = _weights(queries[rows], keys[columns], block_lens)
            pooled[rows] = paddle.matmul(weights, values[columns])
        return pooled

    @staticmethod
    def backward(ctx: Any, grad_pooled: Tensor) -> tuple[Tensor, ...]:
        queries, keys, values = ctx.saved_tensor()
        grad_queries = paddle.zeros_like(queries)
        grad_keys = paddle.zeros_like(keys)
        grad_values = paddle.zeros_like(values)
        for rows, columns, block_lens in ctx.blocks:
            weights = _weights(queries[rows], keys[columns], block_lens)
            grad_block = grad_pooled[rows]
            grad_values[columns] += paddle.matmul(weights, grad_block, transpose_x=True)
            grad_weights = paddle.matmul(grad_block, values[columns], transpose_y=True)
            # Through the softmax: weight * (gradient - its weighted mean).
            mean = (weights * grad_weights).sum(axis=-1, keepdim=True)
            grad_scores = grad_weights.subtract_(mean).multiply_(weights)
            grad_scores = grad_scores.scale_(1 / math.sqrt(queries.shape[2]))
            grad_queries[rows] = paddle.matmul(grad_scores, keys[columns])
            grad_keys[columns] += paddle.matmul(grad_scores, queries[rows], transpose_x=True)
        return grad_queries, grad_keys, grad_values


Index = tuple[slice, slice]  # examples and steps


def _blocks(
    queries: Tensor, keys: Tensor, lens: Tensor | None
) -> Iterator[tuple[Index, Index, Tensor | None]]:
    """Yield each block's indices of queries and visible keys, and its lengths, or None if these are equal.

    A block lies within one example: products are the fastest if the matrices stay in the cache.
    """
    batch, num_queries, num_keys = queries.shape[0], queries.shape[1], keys.shape[1]
    per_query = np.broadcast_to(num_keys, (batch, num_queries))
    if lens is not None:
        lengths: NDArray[Any] = lens.numpy()
        if lengths.ndim == 1:
            lengths = lengths[:, None]
        per_query = np.broadcast_to(lengths, per_query.shape)
    for i in range(batch):
        for start in range(0, num_queries, BLOCK):
            block_lens = per_query[i : i + 1, start : start + BLOCK]
            if not block_lens.any():
                continue  # the result is zero
            longest = block_lens.max()
            rows = slice(i, i + 1), slice(start, start + BLOCK)
            columns = slice(i, i + 1), slice(0, int(longest))
            is_uniform = (block_lens == longest).all()
            yield rows, columns, None if is_uniform else paddle.to_tensor(block_lens)


def _weights(queries: Tensor, keys: Tensor, lens: Tensor | None) -> Tensor:
    scaled = queries / math.sqrt(queries.shape[2])
    return softmax(paddle.matmul(scaled, keys, transpose_y=True), lens)
