"""Attention by blocks of queries, without the whole matrix of weights: Rabe & Staats (2021).

On a CPU ``mx.fast.scaled_dot_product_attention`` computes the whole matrix. Here, for long input, the
memory for gradients grows with the number of queries, not with queries times keys: each block's
weights are computed again in the backward pass.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

import mlx.core as mx

from d2l_compat.mlx._arrays import read_values

# The queries, keys, values and lengths of one example, as a batch of size 1.
Example: TypeAlias = tuple[mx.array, mx.array, mx.array, mx.array | None]
BLOCK = 128  # queries of one example, whose weights fit in the cache
MIN_QUERIES = 2048  # with fewer the matrix is cheap, and is stored for the gradients


def attend(queries: mx.array, keys: mx.array, values: mx.array, lens: mx.array | None) -> mx.array:
    """Compute softmax(Q K^T / sqrt(d)) V over the first ``lens`` keys, shape (batch, queries, v).

    ``lens`` is (batch, queries or 1), all at least 1.
    """
    scaled = queries / math.sqrt(queries.shape[-1])
    if queries.shape[1] < MIN_QUERIES or _is_exportable:
        return _pool(scaled, keys, values, lens)
    inputs = [scaled, keys, values] if lens is None else [scaled, keys, values, lens]
    pooled: mx.array = _pool_by_blocks(*inputs)
    return pooled


def _pool(queries: mx.array, keys: mx.array, values: mx.array, lens: mx.array | None) -> mx.array:
    num_visible, lens = _visible_keys(keys.shape[1], lens)
    scores = matmul_transposed(queries, keys[:, :num_visible])
    if lens is not None:
        scores = mx.where(make_lens_mask(lens, num_visible), scores, -math.inf)
    return matmul(softmax(scores), values[:, :num_visible])


def _visible_keys(num_keys: int, lens: mx.array | None) -> tuple[int, mx.array | None]:
    """Return the largest number of keys that a query sees, and ``lens``, or None if all see that many."""
    values = None if lens is None else read_values(lens)
    if values is None:
        return num_keys, lens
    longest = min(int(values.max()), num_keys)
    return longest, None if values.min() >= longest else lens


# Each block depends on the previous block's result. Otherwise MLX, which schedules work ahead, would
# keep the weights of many blocks at the same time.


def _forward_by_blocks(*inputs: mx.array) -> mx.array:
    examples: list[mx.array] = []
    previous: list[mx.array] = []
    for queries, keys, values, lens in _split_batch(*inputs):
        blocks = []
        for rows in _block_rows(queries.shape[1]):
            block_queries = depend_on(previous, queries[:, rows])
            pooled = _pool(block_queries, keys, values, _select_lens(lens, rows))
            blocks.append(pooled)
            previous = [pooled]
        examples.append(mx.concatenate(blocks, axis=1))
    return mx.concatenate(examples)


_pool_by_blocks: Any = mx.custom_function(_forward_by_blocks)


@_pool_by_blocks.vjp  # type: ignore[untyped-decorator]
def _(inputs: list[mx.array], cotangent: mx.array, output: mx.array) -> list[mx.array]:
    query_gradients: list[mx.array] = []
    key_gradients: list[mx.array] = []
    value_gradients: list[mx.array] = []
    previous: list[mx.array] = []
    for i, example in enumerate(_split_batch(*inputs)):
        gradients, previous = _backward_by_blocks(example, cotangent[i : i + 1], previous)
        query_gradients.append(gradients[0])
        key_gradients.append(gradients[1])
        value_gradients.append(gradients[2])
    all_gradients = [query_gradients, key_gradients, value_gradients]
    # The gradient of lengths is zero.
    return [*map(mx.concatenate, all_gradients), *map(mx.zeros_like, inputs[3:])]


def _backward_by_blocks(
    example: Example, cotangent: mx.array, previous: list[mx.array]
) -> tuple[list[mx.array], list[mx.array]]:
    """Return the gradients of an example's queries, keys and values, and its last block's results."""
    queries, keys, values, lens = example
    query_gradients = []
    key_gradient = mx.zeros_like(keys)
    value_gradient = mx.zeros_like(values)
    for rows in _block_rows(queries.shape[1]):
        block_queries = depend_on(previous, queries[:, rows])
        block_cotangent = depend_on(previous, cotangent[:, rows])
        pool = partial(_pool, lens=_select_lens(lens, rows))
        _, gradients = mx.vjp(pool, [block_queries, keys, values], [block_cotangent])
        query_gradients.append(gradients[0])
        key_gradient = key_gradient + gradients[1]
        value_gradient = value_gradient + gradients[2]
        previous = [gradients[0], key_gradient, value_gradient]
    return [mx.concatenate(query_gradients, axis=1), key_gradient, value_gradient], previous


def depend_on(previous: list[mx.array], x: mx.array) -> mx.array:
    """Return ``x``, which is then computed only after the arrays in ``previous``.

    ``mx.depends`` does the same, but fails in ``mx.vmap``.
    """
    for array in previous:
        x = x + mx.where(False, array[:, :1, :1], 0)
    return x


def _split_batch(
    queries: mx.array, keys: mx.array, values: mx.array, lens: mx.array | None = None
) -> Iterator[Example]:
    """Yield the examples of a batch, by slicing: ``mx.split`` fails here in ``mx.compile``."""
    for i in range(len(queries)):
        row = slice(i, i + 1)
        yield queries[row], keys[row], values[row], None if lens is None else lens[row]


def _block_rows(num_queries: int) -> Iterator[slice]:
    for start in range(0, num_queries, BLOCK):
        yield slice(start, start + BLOCK)


def _select_lens(lens: mx.array | None, rows: slice) -> mx.array | None:
    return lens if lens is None or lens.shape[1] == 1 else lens[:, rows]


# The BLAS in MLX's wheels for Linux multiplies by a transposed view at half the speed of a contiguous
# matrix, so the right-hand factor is copied.


def matmul(x: mx.array, y: mx.array) -> mx.array:
    """Compute X Y for (..., rows, steps) and (..., steps, columns)."""
    product: mx.array = x @ y if _is_exportable else _matmul(x, y)
    return product


def matmul_transposed(x: mx.array, y: mx.array) -> mx.array:
    """Compute X Y^T for (..., rows, features) and (..., columns, features)."""
    product: mx.array = x @ transpose(y) if _is_exportable else _matmul_transposed(x, y)
    return product


_matmul: Any = mx.custom_function(lambda x, y: x @ y)
_matmul_transposed: Any = mx.custom_function(lambda x, y: x @ transpose(y))


def transpose(x: mx.array) -> mx.array:
    # Flattening makes a copy instead of a view; `mx.contiguous` could not be exported.
    rows, columns = x.shape[-2:]
    return mx.unflatten(x.swapaxes(-2, -1).flatten(-2), -1, (columns, rows))


@contextmanager
def use_exportable_operations() -> Iterator[None]:
    """In this context, compute attention with MLX's own operations only, as exporting needs."""
    global _is_exportable
    was_exportable = _is_exportable
    _is_exportable = True
    try:
        yield
    finally:
        _is_exportable = was_exportable


_is_exportable = False


@_matmul.vjp  # type: ignore[untyped-decorator]
def _(inputs: list[mx.array], cotangent: mx.array, output: mx.array) -> tuple[mx.array, mx.array]:
    x, y = inputs
    return matmul_transposed(cotangent, y), matmul(x.swapaxes(-2, -1), cotangent)


@_matmul_transposed.vjp  # type: ignore[untyped-decorator]
def _(inputs: list[mx.array], cotangent: mx.array, output: mx.array) -> tuple[mx.array, mx.array]:
    x, y = inputs
    return matmul(cotangent, y), matmul(cotangent.swapaxes(-2, -1), x)


def split_steps(x: mx.array, lengths: list[int]) -> list[mx.array]:
    """Split (batch, heads, steps, features) into parts of these lengths.

    The gradient is computed in linear time: ``mx.split`` into more than ten parts has that of slices, which has the
    full size for each part.
    """

    def split(x: mx.array) -> list[mx.array]:
        ends = accumulate(lengths)
        return [x[:, :, end - length : end] for end, length in zip(ends, lengths, strict=True)]

    if _is_exportable:
        return split(x)
    split_linearly: Any = mx.custom_function(split)

    @split_linearly.vjp  # type: ignore[untyped-decorator]
    def _(x: mx.array, cotangents: list[mx.array], outputs: list[mx.array]) -> mx.array:
        return mx.concatenate(cotangents, axis=2)

    parts: list[mx.array] = split_linearly(x)
    return parts


def make_lens_mask(lens: mx.array, num_keys: int) -> mx.array:
    """Return True for the first ``lens`` keys and False for the others, shape (..., keys)."""
    return mx.arange(num_keys) < lens[..., None]


def softmax(scores: mx.array) -> mx.array:
    """Compute the softmax over the last axis, with the full precision of the dtype."""
    if scores.dtype != mx.float64:
        return mx.softmax(scores, axis=-1, precise=True)
    largest = mx.stop_gradient(scores.max(axis=-1, keepdims=True))
    powers = exp(scores - largest)
    return powers / powers.sum(axis=-1, keepdims=True)


def exp(x: mx.array) -> mx.array:
    """Compute the exponential function, with the full precision of the dtype."""
    if x.dtype != mx.float64:
        return mx.exp(x)
    # MLX's exp of a float64 is correct to 6 digits only; its power function is correct to all.
    return mx.power(mx.array(math.e, mx.float64), x)
