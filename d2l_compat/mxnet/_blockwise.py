"""Attention without the full matrix of weights, a block of queries at a time: Rabe & Staats (2021).

The memory for the gradients grows with the number of queries, not with queries times keys, since the backward pass
recomputes the weights. Keys that no query of a block sees are skipped. Blocks are computed with MXNet's older
``NDArray``, since slicing and multiplying matrices take less time with it.
"""

import atexit
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as onp
from mxnet import autograd, nd, np
from numpy.typing import NDArray

BLOCK = 512  # queries of one example, whose weights fit in the cache
MIN_QUERIES = 2048  # with fewer queries or keys the full matrix is faster; without gradients, with half as many


def _finish_gradients() -> None:
    """Wait until no thread of MXNet's needs Python any more.

    When the process forks or exits, MXNet ends the threads of functions, and then waits for all operations: forever, if
    among these is a function's gradient that has not begun. After its gradient a thread needs Python once more, to drop
    the function. If the process forked at that moment, it would wait for the thread, and the thread for Python.
    """
    global _has_new_functions
    nd.waitall()
    if _has_new_functions:
        time.sleep(0.1)
        _has_new_functions = False


_has_new_functions = False  # since the last wait
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_finish_gradients)
atexit.register(_finish_gradients)


def is_long(queries: np.ndarray, keys: np.ndarray) -> bool:
    """Return whether the full matrix of weights would be expensive."""
    min_length = MIN_QUERIES if autograd.is_recording() else MIN_QUERIES // 2
    is_large = min(queries.shape[1], keys.shape[1]) >= min_length
    return is_large and len(queries) > 0 and not _is_disabled


@contextmanager
def use_full_matrix() -> Iterator[None]:
    """In this context, compute attention of any length with MXNet's own operations, which can be counted."""
    global _is_disabled
    was_disabled = _is_disabled
    _is_disabled = True
    try:
        yield
    finally:
        _is_disabled = was_disabled


_is_disabled = False


def attend(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    lens: NDArray[Any] | None = None,
    causal: bool = False,
    score_bias: np.ndarray | None = None,
) -> np.ndarray:
    """Return softmax(Q K^T / sqrt(d) + bias) V over the visible keys, shape (batch, queries, v).

    ``lens`` is (batch,) or (batch, queries), and ``score_bias`` (queries, keys) or (batch, queries, keys). The result
    of a query that sees no key is zero.
    """
    scaled = queries / math.sqrt(queries.shape[2])  # cheaper than scaling the scores
    inputs = [scaled, keys, values]
    if score_bias is not None:
        inputs.append(score_bias.reshape(-1, *score_bias.shape[-2:]))
    num_visible = _count_visible(queries, keys, lens, causal)
    attention = _BlockwiseAttention([x.shape for x in inputs], num_visible)
    if not autograd.is_recording():
        return attention.pool([x.as_nd_ndarray() for x in inputs]).as_np_ndarray()
    # The gradients of a function's inputs are lost if they are to be accumulated (`grad_req="add"`), or follow an
    # input without one. Here, its only input is made by MXNet's own operations, which also split the gradient.
    # It has rows of several numbers, since MXNet joins single numbers at a tenth of the speed.
    width = math.gcd(*(x.shape[-1] for x in inputs))
    return attention(np.concatenate([x.reshape(-1, width) for x in inputs]))


def _count_visible(
    queries: np.ndarray, keys: np.ndarray, lens: NDArray[Any] | None, causal: bool
) -> NDArray[Any]:
    """Return how many keys each query sees, shape (batch, queries); a bias may hide some of these."""
    batch, num_queries, _ = queries.shape
    num_keys = keys.shape[1]
    counts: NDArray[Any] = onp.full((1, 1), num_keys)
    if lens is not None:
        counts = onp.minimum(lens if lens.ndim == 2 else lens[:, None], counts)
    if causal:
        counts = onp.minimum(counts, onp.arange(num_keys - num_queries + 1, num_keys + 1))
    return onp.broadcast_to(counts, (batch, num_queries))


class _Block(NamedTuple):
    """Some queries of one example, since products are the fastest if the matrices stay in the cache."""

    example: int
    rows: slice
    num_visible: NDArray[Any]  # keys that each query sees

    @property
    def num_keys(self) -> int:
        """The keys that any of the queries sees."""
        return int(self.num_visible.max())

    def make_view(self, buffer: nd.NDArray) -> nd.NDArray:
        """Return the start of the buffer as an array of shape (queries, keys)."""
        shape = len(self.num_visible), self.num_keys
        return buffer[: math.prod(shape)].reshape(shape)


class _BlockwiseAttention(autograd.Function):
    """The attention pooling of one array: scaled queries, keys, values and maybe a bias, all flattened."""

    def __init__(self, shapes: list[tuple[int, ...]], num_visible: NDArray[Any]) -> None:
        """Create the function for parts of these shapes; it can be called once."""
        global _has_new_functions
        super().__init__()
        self.shapes, self.num_visible = shapes, num_visible
        _has_new_functions = True

    def forward(self, joined: np.ndarray) -> np.ndarray:
        self.joined = joined.as_nd_ndarray().detach()
        pooled = self.pool(self._split(self.joined))
        self.pooled = pooled  # not the returned array: its graph holds this function, and neither would be freed
        return pooled.as_np_ndarray()

    def pool(self, parts: list[nd.NDArray]) -> nd.NDArray:
        queries, keys, values, *bias = parts
        shape = *queries.shape[:2], values.shape[2]
        pooled = nd.zeros(shape, dtype=values.dtype, ctx=values.ctx)
        buffer = self._make_buffer(values)
        for block in self._blocks():
            i, rows, num_keys = block.example, block.rows, block.num_keys
            scores = block.make_view(buffer)
            weights = _weights(queries[i][rows], keys[i][:num_keys], block, bias, scores)
            nd.dot(weights, values[i][:num_keys], out=pooled[i][rows])
        return pooled

    def backward(self, grad_pooled: nd.NDArray) -> nd.NDArray:
        queries, keys, values, *bias = self._split(self.joined)
        gradient = nd.zeros_like(self.joined)
        grad_queries, grad_keys, grad_values, *grad_bias = self._split(gradient)
        ones = nd.ones((values.shape[2], 1), dtype=values.dtype, ctx=values.ctx)
        buffers = self._make_buffer(values), self._make_buffer(values)
        for block in self._blocks():
            i, rows, num_keys = block.example, block.rows, block.num_keys
            q, k, v = queries[i][rows], keys[i][:num_keys], values[i][:num_keys]
            scores, grad_scores = map(block.make_view, buffers)
            weights, g = _weights(q, k, block, bias, scores), grad_pooled[i][rows]
            # Through the softmax: weight * (gradient - its weighted mean).
            mean = nd.dot(g * self.pooled[i][rows], ones)
            nd.dot(g, v, transpose_b=True, out=grad_scores)
            nd.broadcast_sub(grad_scores, mean, out=grad_scores)
            grad_scores *= weights
            # These slices are views of the gradient.
            nd.dot(grad_scores, k, out=grad_queries[i][rows])
            grad_k, grad_v = grad_keys[i][:num_keys], grad_values[i][:num_keys]
            grad_k += nd.dot(grad_scores, q, transpose_a=True)
            grad_v += nd.dot(weights, g, transpose_a=True)
            for x in grad_bias:
                x[_bias_example(x, block)][rows][:, :num_keys] += grad_scores
        return gradient

    def _make_buffer(self, like: nd.NDArray) -> nd.NDArray:
        """Return memory for the scores of a block.

        All blocks share it, since MXNet would first compute the scores of many blocks, and keep them all.
        """
        (_, num_queries, _), (_, num_keys, _) = self.shapes[:2]
        size = min(BLOCK, num_queries) * num_keys
        return nd.empty(size, dtype=like.dtype, ctx=like.ctx)

    def _split(self, joined: nd.NDArray) -> list[nd.NDArray]:
        """Return views of the parts."""
        ends = accumulate(math.prod(shape) // joined.shape[1] for shape in self.shapes)
        bounds = pairwise([0, *ends])
        return [
            joined[start:end].reshape(shape)
            for (start, end), shape in zip(bounds, self.shapes, strict=True)
        ]

    def _blocks(self) -> Iterator[_Block]:
        """Yield the blocks in which a query sees a key; the result of the others is zero."""
        for i, counts in enumerate(self.num_visible):
            for start in range(0, len(counts), BLOCK):
                rows = slice(start, min(start + BLOCK, len(counts)))
                if counts[rows].any():
                    yield _Block(i, rows, counts[rows])


def _weights(
    queries: nd.NDArray,
    keys: nd.NDArray,
    block: _Block,
    bias: list[nd.NDArray],
    scores: nd.NDArray,
) -> nd.NDArray:
    """Compute the weights of scaled queries in the memory of ``scores``; of ``bias``, there is one or none."""
    nd.dot(queries, keys, transpose_b=True, out=scores)
    # Finite: in a row without a visible key, softmax of -inf is NaN.
    lowest = -6e4 if scores.dtype == onp.float16 else -3e38
    for x in bias:
        scores += x[_bias_example(x, block)][block.rows][:, : block.num_keys]
        view = scores.as_np_ndarray()  # the older function has no `out`
        np.maximum(view, lowest, out=view)
    shortest = block.num_visible.min()
    if shortest < block.num_keys:
        lengths = nd.array(block.num_visible, dtype="int32", ctx=scores.ctx)
        mask = {"use_sequence_length": True, "value": lowest, "axis": 1}
        nd.SequenceMask(scores, lengths, **mask, out=scores)
    # A row without a visible key has equal weights until these are hidden, too.
    is_visible = scores > lowest if bias or not shortest else None
    weights = nd.softmax(scores, axis=-1, out=scores)
    if is_visible is not None:
        weights *= is_visible
    return weights


def _bias_example(bias: nd.NDArray, block: _Block) -> int:
    return block.example if len(bias) > 1 else 0
