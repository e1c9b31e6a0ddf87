"""Attention without its matrix of weights: a block of queries at a time, Rabe & Staats (2021).

What is kept for the gradients grows with the number of queries, not with queries times keys:
each block's weights are formed anew on the way back.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from numpy.typing import NDArray

MIN_QUERIES = 512  # with fewer the matrix is cheap
# Taken at a time; of the sizes tried on a CPU, about the fastest.
BLOCK = 256  # queries
EXAMPLES = 4  # of the batch, which to multi-head attention are heads


def attend(
    queries: jax.Array, keys: jax.Array, values: jax.Array, lens: jax.Array | NDArray[Any] | None
) -> jax.Array:
    """Softmax(Q K^T / sqrt(d)) V, over the first ``lens`` keys: shape (batch, queries, v).

    ``lens`` is (batch,) or (batch, queries). A query of length 0 pools zero.
    """
    queries = queries / math.sqrt(queries.shape[-1])
    per_query = bias = None
    if lens is not None and lens.ndim == 2:
        per_query = jnp.asarray(lens)
    elif lens is not None:
        keys, values, bias = without_padding(keys, values, jnp.asarray(lens))
    batch = queries, keys, values, bias, per_query
    at_once = max(1, min(EXAMPLES, len(queries)))  # JAX 0.5 cannot scan no batch without jit
    return jax.lax.map(lambda example: _attend(*example), batch, batch_size=at_once)


def _attend(
    queries: jax.Array,
    keys: jax.Array,
    values: jax.Array,
    bias: jax.Array | None,
    lens: jax.Array | None,
) -> jax.Array:
    """One example's, (queries, v): ``bias`` is (keys,), ``lens`` (queries,)."""
    steps = len(queries)
    blocks = -(-steps // BLOCK)
    size = -(-steps // blocks)

    def split(x: jax.Array) -> jax.Array:
        """(steps, ...) to (blocks, size, ...), filled up with zeros."""
        padding = [(0, blocks * size - steps), *[(0, 0)] * (x.ndim - 1)]
        return jnp.pad(x, padding).reshape(blocks, size, *x.shape[1:])

    @jax.checkpoint  # which does not keep the weights
    def pool(block: tuple[jax.Array, jax.Array | None]) -> jax.Array:
        some, lens = block
        scores = some @ keys.T
        return softmax(scores if bias is None else scores + bias, lens) @ values

    pooled = jax.lax.map(pool, (split(queries), None if lens is None else split(lens)))
    return pooled.reshape(blocks * size, -1)[:steps]


def without_padding(
    keys: jax.Array, values: jax.Array, lens: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Keys and values, zero past their lengths, and what to add to the scores: there, -inf.

    Adding costs less than selecting. In an example without a valid key nothing is added: its
    weights are then equal, and pool zeros.
    """
    valid = jnp.arange(keys.shape[1]) < lens[:, None]
    bias = jnp.where(valid | (lens[:, None] == 0), 0, -jnp.inf).astype(keys.dtype)
    keys, values = (jnp.where(valid[:, :, None], x, 0) for x in (keys, values))
    return keys, values, bias


def softmax(
    scores: jax.Array, per_query: jax.Array | None, bias: jax.Array | None = None
) -> jax.Array:
    """Over the first ``per_query`` scores, (..., queries or 1); exactly 0 past them.

    ``bias``, (..., queries, keys), is added; where it is -inf the weight is exactly 0 as well.
    """
    valid: jax.Array | bool = True
    if per_query is not None:
        valid = jnp.arange(scores.shape[-1]) < per_query[..., None]
    if bias is not None:
        scores, valid = scores + bias, valid & (bias != -jnp.inf)
    if valid is True:
        return jax.nn.softmax(scores, axis=-1)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    finite = jnp.where(valid, scores, jnp.finfo(scores.dtype).min)
    return jnp.where(valid, jax.nn.softmax(finite, axis=-1), 0)
