"""Attention without its matrix of weights: a block of queries at a time, Rabe & Staats (2021).

On a CPU ``mx.fast.scaled_dot_product_attention`` forms the whole matrix. Here, what is kept for the gradients
of long input grows with the number of queries, not with queries times keys: each block's weights
are formed anew on the way back.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import mlx.core as mx

from d2l_compat.mlx._arrays import values as read

Example: TypeAlias = tuple[mx.array, mx.array, mx.array, mx.array | None]
BLOCK = 128  # queries, of one example: their weights stay in the cache
MIN_QUERIES = 2048  # with fewer the matrix is cheap, and kept for the gradients


def attend(queries: mx.array, keys: mx.array, values: mx.array, lens: mx.array | None) -> mx.array:
    """Softmax(Q K^T / sqrt(d)) V, over the first ``lens`` keys: shape (batch, queries, v).

    ``lens`` is (batch, queries or 1), and nowhere 0.
    """
    scaled = queries / math.sqrt(queries.shape[-1])
    if queries.shape[1] < MIN_QUERIES or _is_exportable:
        return _pool(scaled, keys, values, lens)
    inputs = [scaled, keys, values] if lens is None else [scaled, keys, values, lens]
    pooled: mx.array = _pool_long(*inputs)
    return pooled


def _pool(queries: mx.array, keys: mx.array, values: mx.array, lens: mx.array | None) -> mx.array:
    longest, lens = _seen(keys.shape[1], lens)
    scores = product_across(queries, keys[:, :longest])
    if lens is not None:
        scores = mx.where(within(lens, longest), scores, -math.inf)
    return product(softmax(scores), values[:, :longest])


def _seen(num_keys: int, lens: mx.array | None) -> tuple[int, mx.array | None]:
    """How many keys any query sees, and ``lens`` if they do not all see those."""
    known = None if lens is None else read(lens)
    if known is None:
        return num_keys, lens
    longest = int(known.max())
    return longest, None if known.min() == longest else lens


# Each block waits for what is ``done``: or MLX, which works ahead, would form the weights of many at a time.


def _all_blocks(*inputs: mx.array) -> mx.array:
    examples: list[mx.array] = []
    done: list[mx.array] = []
    for queries, keys, values, lens in _examples(*inputs):
        blocks = []
        for some in _rows(queries.shape[1]):
            part = after(queries[:, some], done)
            done = [_pool(part, keys, values, _of(lens, some))]
            blocks += done
        examples.append(mx.concatenate(blocks, axis=1))
    return mx.concatenate(examples)


_pool_long: Any = mx.custom_function(_all_blocks)


@_pool_long.vjp  # type: ignore[untyped-decorator]
def _(inputs: list[mx.array], slope: mx.array, output: mx.array) -> list[mx.array]:
    found: list[list[mx.array]] = [[], [], []]
    done: list[mx.array] = []
    for number, one in enumerate(_examples(*inputs)):
        gradients, done = _of_example(one, slope[number : number + 1], done)
        for all_of_them, gradient in zip(found, gradients, strict=True):
            all_of_them.append(gradient)
    # Of lengths there is no gradient.
    return [*map(mx.concatenate, found), *map(mx.zeros_like, inputs[3:])]


def _of_example(
    one: Example, slopes: mx.array, done: list[mx.array]
) -> tuple[list[mx.array], list[mx.array]]:
    """The gradients of an example's queries, keys and values; and those of its last block."""
    queries, keys, values, lens = one
    of_queries, of_keys, of_values = [], mx.zeros_like(keys), mx.zeros_like(values)
    for some in _rows(queries.shape[1]):
        part, slope = after(queries[:, some], done), after(slopes[:, some], done)
        pool = partial(_pool, lens=_of(lens, some))
        _, (of_part, more_keys, more_values) = mx.vjp(pool, [part, keys, values], [slope])
        of_queries.append(of_part)
        of_keys, of_values = of_keys + more_keys, of_values + more_values
        done = [of_part, of_keys, of_values]
    return [mx.concatenate(of_queries, axis=1), of_keys, of_values], done


def after(x: mx.array, done: list[mx.array]) -> mx.array:
    """``x``, which is there only when all is that is ``done``.

    So says ``mx.depends``, too, of which ``mx.vmap`` makes an error.
    """
    for each in done:
        x = x + mx.where(False, each[:, :1, :1], 0)
    return x


def _examples(
    queries: mx.array, keys: mx.array, values: mx.array, lens: mx.array | None = None
) -> Iterator[Example]:
    """One by one; by slices, since of ``mx.split`` ``mx.compile`` makes an error here."""
    for number in range(len(queries)):
        one = slice(number, number + 1)
        yield queries[one], keys[one], values[one], None if lens is None else lens[one]


def _rows(num_queries: int) -> Iterator[slice]:
    for start in range(0, num_queries, BLOCK):
        yield slice(start, start + BLOCK)


def _of(lens: mx.array | None, rows: slice) -> mx.array | None:
    return lens if lens is None or lens.shape[1] == 1 else lens[:, rows]


# The BLAS in MLX's wheels for Linux multiplies by a matrix that is only seen as transposed at half the speed
# of one that is: so what stands on the right is copied.


def product(x: mx.array, y: mx.array) -> mx.array:
    """X Y, (batch, rows, steps) times (batch, steps, columns)."""
    xy: mx.array = x @ y if _is_exportable else _product(x, y)
    return xy


def product_across(x: mx.array, y: mx.array) -> mx.array:
    """X Y^T, (batch, rows, features) times (batch, columns, features)."""
    xy: mx.array = x @ transposed(y) if _is_exportable else _product_across(x, y)
    return xy


_product: Any = mx.custom_function(lambda x, y: x @ y)
_product_across: Any = mx.custom_function(lambda x, y: x @ transposed(y))


def transposed(x: mx.array) -> mx.array:
    # By way of a flat array, which cannot be a view; `mx.contiguous` could not be exported.
    rows, columns = x.shape[1:]
    return mx.unflatten(x.swapaxes(1, 2).flatten(1), 1, (columns, rows))


@contextmanager
def exportable() -> Iterator[None]:
    """Within it attention is made of MLX's own operations alone, which are all that MLX writes down."""
    global _is_exportable
    before, _is_exportable = _is_exportable, True
    try:
        yield
    finally:
        _is_exportable = before


_is_exportable = False


@_product.vjp  # type: ignore[untyped-decorator]
def _(inputs: list[mx.array], slope: mx.array, output: mx.array) -> tuple[mx.array, mx.array]:
    x, y = inputs
    return product_across(slope, y), product(x.swapaxes(1, 2), slope)


@_product_across.vjp  # type: ignore[untyped-decorator]
def _(inputs: list[mx.array], slope: mx.array, output: mx.array) -> tuple[mx.array, mx.array]:
    x, y = inputs
    return product(slope, y), product(slope.swapaxes(1, 2), x)


def within(lens: mx.array, num_keys: int) -> mx.array:
    """True for the first ``lens`` keys: shape (..., keys)."""
    return mx.arange(num_keys) < lens[..., None]


def softmax(scores: mx.array) -> mx.array:
    """Over the last axis, as precise as the dtype."""
    if scores.dtype != mx.float64:
        return mx.softmax(scores, axis=-1, precise=True)
    # MLX's exp of a float64 is good to 6 digits; its power to all.
    largest = mx.stop_gradient(scores.max(axis=-1, keepdims=True))
    powers = mx.power(mx.array(math.e, mx.float64), scores - largest)
    return powers / powers.sum(axis=-1, keepdims=True)
