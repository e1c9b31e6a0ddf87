"""Attention without its matrix of weights: a block of queries at a time, Rabe & Staats (2021).

What is kept for the gradients grows with the number of queries, not with queries times keys:
each block's weights are formed anew on the way back.
"""

import math
from typing import Any

import paddle
from paddle import Tensor
from paddle.autograd import PyLayer
from paddle.nn import functional as F

BLOCK = 128  # queries
FROM = 1024  # queries on, below which the matrix is cheap


def attend(queries: Tensor, keys: Tensor, values: Tensor, lens: Tensor | None) -> Tensor:
    """Softmax(Q K^T / sqrt(d)) V, over the first ``lens`` keys: shape (batch, queries, v).

    ``lens`` is (batch,) or (batch, queries). A query of length 0 pools zero.
    """
    return _Pool.apply(queries, keys, values, lens)


def softmax(scores: Tensor, lens: Tensor | None) -> Tensor:
    """Over the first ``lens`` scores, (batch,) or (batch, queries); exactly 0 past them."""
    if lens is None:
        return F.softmax(scores, axis=-1)
    lens = lens.astype("int64")  # the one dtype that compares with all others
    per_query = lens if lens.ndim == 2 else lens.unsqueeze(1)
    valid = paddle.arange(scores.shape[2]) < per_query.unsqueeze(2)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    finite = scores.masked_fill(~valid, paddle.finfo(scores.dtype).min)
    return F.softmax(finite, axis=-1).masked_fill(~valid, 0)


class _Pool(PyLayer):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, lens: Any) -> Tensor:
        ctx.save_for_backward(queries, keys, values)
        ctx.lens = lens
        parts = [
            paddle.matmul(_weights(queries, keys, lens, block), values)
            for block in _blocks(queries)
        ]
        return paddle.concat(parts, axis=1)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, values = ctx.saved_tensor()
        scale = 1 / math.sqrt(queries.shape[2])
        of_queries, of_keys, of_values = [], paddle.zeros_like(keys), paddle.zeros_like(values)
        for block in _blocks(queries):
            share, part = _weights(queries, keys, ctx.lens, block), slope[:, block]
            of_values += paddle.matmul(share, part, transpose_x=True)
            of_share = paddle.matmul(part, values, transpose_y=True)
            # The softmax's own: of a score, its share of how far it stands out.
            mean = (share * of_share).sum(axis=-1, keepdim=True)
            of_scores = share * (of_share - mean) * scale
            of_queries.append(paddle.matmul(of_scores, keys))
            of_keys += paddle.matmul(of_scores, queries[:, block], transpose_x=True)
        return paddle.concat(of_queries, axis=1), of_keys, of_values


def _blocks(queries: Tensor) -> list[slice]:
    return [slice(i, i + BLOCK) for i in range(0, queries.shape[1], BLOCK)]


def _weights(queries: Tensor, keys: Tensor, lens: Tensor | None, block: slice) -> Tensor:
    scaled = queries[:, block] / math.sqrt(queries.shape[2])
    is_per_query = lens is not None and lens.ndim == 2
    scores = paddle.matmul(scaled, keys, transpose_y=True)
    return softmax(scores, lens[:, block] if lens is not None and is_per_query else lens)
