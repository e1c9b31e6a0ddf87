"""Attention without its matrix of weights: some queries at a time, Rabe & Staats (2021).

What is kept for the gradients grows with the number of queries, not with queries times keys:
weights are formed anew on the way back. Keys that no query of a block may see take no time.
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
MIN_QUERIES = 512  # with fewer the matrix is cheap


def attend(queries: Tensor, keys: Tensor, values: Tensor, lens: Tensor | None) -> Tensor:
    """Softmax(Q K^T / sqrt(d)) V, over the first ``lens`` keys: shape (batch, queries, v).

    ``lens`` is (batch,), (batch, queries) or (1, queries). A query of length 0 pools zero.
    """
    return _Pool.apply(queries, keys, values, lens)


def softmax(scores: Tensor, lens: Tensor | None, score_bias: Tensor | None = None) -> Tensor:
    """Over the first ``lens`` scores, as in :func:`attend`; exactly 0 past them.

    So it is where ``score_bias``, which is added to the scores, is minus infinity.
    """
    valid = None
    if lens is not None:
        lens = lens.astype("int64")  # the one dtype that compares with all others
        per_query = lens if lens.ndim == 2 else lens.unsqueeze(1)
        valid = paddle.arange(scores.shape[2]) < per_query.unsqueeze(2)
    if score_bias is not None:
        scores, is_seen = scores + score_bias, score_bias != -math.inf
        valid = is_seen if valid is None else valid & is_seen
    if valid is None:
        return F.softmax(scores, axis=-1)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    finite = scores.masked_fill(~valid, paddle.finfo(scores.dtype).min)
    return F.softmax(finite, axis=-1).masked_fill(~valid, 0)


class _Pool(PyLayer):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, lens: Any) -> Tensor:
        pooled = paddle.zeros([*queries.shape[:2], values.shape[2]], values.dtype)
        ctx.blocks = list(_blocks(queries, keys, lens))
        ctx.save_for_backward(queries, keys, values)
        for rows, seen, some in ctx.blocks:
            pooled[rows] = paddle.matmul(_weights(queries[rows], keys[seen], some), values[seen])
        return pooled

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, ...]:
        queries, keys, values = ctx.saved_tensor()
        gradients = tuple(paddle.zeros_like(inputs) for inputs in (queries, keys, values))
        of_queries, of_keys, of_values = gradients
        for rows, seen, some in ctx.blocks:
            share, part = _weights(queries[rows], keys[seen], some), slope[rows]
            of_values[seen] += paddle.matmul(share, part, transpose_x=True)
            of_share = paddle.matmul(part, values[seen], transpose_y=True)
            # The softmax's own: of a score, its share of how far it stands out.
            mean = (share * of_share).sum(axis=-1, keepdim=True)
            of_scores = of_share.subtract_(mean).multiply_(share)
            of_scores = of_scores.scale_(1 / math.sqrt(queries.shape[2]))
            of_queries[rows] = paddle.matmul(of_scores, keys[seen])
            of_keys[seen] += paddle.matmul(of_scores, queries[rows], transpose_x=True)
        return gradients


Place = tuple[slice, slice]  # examples and steps


def _blocks(
    queries: Tensor, keys: Tensor, lens: Tensor | None
) -> Iterator[tuple[Place, Place, Tensor | None]]:
    """Queries, the keys that any of them may see, and lengths if they do not all see those.

    One example at a time: a product of matrices that stay in the cache is the fastest.
    """
    batch, num_queries, num_keys = queries.shape[0], queries.shape[1], keys.shape[1]
    per_query = np.broadcast_to(num_keys, (batch, num_queries))
    if lens is not None:
        given: NDArray[Any] = lens.numpy()
        per_query = np.broadcast_to(given if given.ndim == 2 else given[:, None], per_query.shape)
    for i in range(batch):
        for start in range(0, num_queries, BLOCK):
            some = per_query[i : i + 1, start : start + BLOCK]
            if not some.any():
                continue  # they pool zero
            longest = some.max()
            rows = slice(i, i + 1), slice(start, start + BLOCK)
            seen = slice(i, i + 1), slice(0, int(longest))
            yield rows, seen, None if (some == longest).all() else paddle.to_tensor(some)


def _weights(queries: Tensor, keys: Tensor, lens: Tensor | None) -> Tensor:
    scaled = queries / math.sqrt(queries.shape[2])
    return softmax(paddle.matmul(scaled, keys, transpose_y=True), lens)
