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


def valid_keys(lens: Tensor | None, num_keys: int) -> Tensor | None:
    """Return which keys are among the first ``lens``, as in :func:`attend`; (batch or 1, queries or 1, keys)."""
    if lens is None:
        return None
    lens = lens.astype("int64")  # some integer dtypes cannot be compared with int64
    per_query = lens if lens.ndim == 2 else lens.unsqueeze(1)
    return paddle.arange(num_keys) < per_query.unsqueeze(2)


def softmax(scores: Tensor, is_visible: Tensor | None, score_bias: Tensor | None = None) -> Tensor:
    """Return the softmax over the visible scores; exactly 0 for all others.

    ``score_bias`` is added to the scores; where it is minus infinity, the result is exactly 0 too.
    """
    if score_bias is not None:
        scores = scores + score_bias
        is_finite = score_bias != -math.inf
        is_visible = is_finite if is_visible is None else is_visible & is_finite
    if is_visible is None:
        return F.softmax(scores, axis=-1)
    # The lowest finite score, not -inf: in a row without a visible key, softmax of -inf is NaN.
    finite = scores.masked_fill(~is_visible, paddle.finfo(scores.dtype).min)
    return F.softmax(finite, axis=-1).masked_fill(~is_visible, 0)


def compute_weights(
    queries: Tensor, keys: Tensor, is_visible: Tensor | None, score_bias: Tensor | None = None
) -> Tensor:
    """Return softmax(Q K^T / sqrt(d)) over the visible keys; queries and keys are (..., steps, d)."""
    scaled = queries / math.sqrt(queries.shape[-1])  # cheaper than scaling the scores
    scores = paddle.matmul(scaled, keys, transpose_y=True)
    return softmax(scores, is_visible, score_bias)


class _BlockwiseAttention(PyLayer):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, lens: Any) -> Tensor:
        pooled = paddle.zeros([*queries.shape[:2], values.shape[2]], values.dtype)
        queries = queries / math.sqrt(queries.shape[2])  # cheaper than scaling the scores
        ctx.blocks = list(_blocks(queries, keys, lens))
        for rows, columns, block_lens in ctx.blocks:
            weights = _weights(queries[rows], keys[columns], block_lens)
            pooled[rows] = paddle.matmul(weights, values[columns])
        # A copy: the result holds the saved tensors, and must not be one of them.
        ctx.save_for_backward(queries, keys, values, pooled.clone())
        return pooled

    @staticmethod
    def backward(ctx: Any, grad_pooled: Tensor) -> tuple[Tensor, ...]:
        queries, keys, values, pooled = ctx.saved_tensor()
        means = (grad_pooled * pooled).sum(axis=-1, keepdim=True)
        grad_queries = paddle.zeros_like(queries)
        grad_keys = paddle.zeros_like(keys)
        grad_values = paddle.zeros_like(values)
        for rows, columns, block_lens in ctx.blocks:
            weights = _weights(queries[rows], keys[columns], block_lens)
            grad_block = grad_pooled[rows]
            grad_values[columns] += paddle.matmul(weights, grad_block, transpose_x=True)
            grad_weights = paddle.matmul(grad_block, values[columns], transpose_y=True)
            # Through the softmax: weight * (gradient - its weighted mean).
            grad_scores = grad_weights.subtract_(means[rows]).multiply_(weights)
            grad_queries[rows] = paddle.matmul(grad_scores, keys[columns])
            grad_keys[columns] += paddle.matmul(grad_scores, queries[rows], transpose_x=True)
        return grad_queries / math.sqrt(queries.shape[2]), grad_keys, grad_values


Index = tuple[slice, slice]  # examples and steps


def _blocks(
    queries: Tensor, keys: Tensor, lens: Tensor | None
) -> Iterator[tuple[Index, Index, NDArray[Any] | None]]:
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
            yield rows, columns, None if is_uniform else block_lens


def _weights(queries: Tensor, keys: Tensor, lens: NDArray[Any] | None) -> Tensor:
    """Return the weights of scaled queries, computed in place: large new tensors are slow."""
    scores = paddle.matmul(queries, keys, transpose_y=True)
    if lens is None:
        return F.softmax_(scores)
    # All queries see the keys before the shortest length, so only the others need a mask.
    shortest, num_keys = int(lens.min()), keys.shape[1]
    is_hidden = paddle.to_tensor(np.arange(shortest, num_keys) >= lens[..., None])
    lowest = paddle.finfo(scores.dtype).min
    scores[:, :, shortest:] = scores[:, :, shortest:].masked_fill(is_hidden, lowest)
    weights = F.softmax_(scores)
    # A hidden key has a weight of 0, unless all keys of the query are hidden.
    return weights if shortest else weights.masked_fill_(is_hidden, 0)
