"""Attention by blocks of queries, without the whole matrix of weights: Rabe & Staats (2021).

The memory for gradients grows with the number of queries, not with queries times keys: each
block's weights are computed again in the backward pass.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from numpy.typing import NDArray

MIN_QUERIES = 512  # with fewer the matrix is cheap
# These block sizes are about the fastest of those tried on a CPU.
BLOCK = 256  # queries
EXAMPLES = 4  # examples at a time; in multi-head attention, heads of examples


def is_faster(queries: jax.Array) -> bool:
    """Return whether :func:`attend` is worthwhile: for long input, and under ``jit``, which compiles its loop once."""
    return isinstance(queries, jax.core.Tracer) and queries.shape[1] >= MIN_QUERIES


def attend(
    queries: jax.Array, keys: jax.Array, values: jax.Array, lens: jax.Array | NDArray[Any] | None
) -> jax.Array:
    """Compute softmax(Q K^T / sqrt(d)) V over the first ``lens`` keys, shape (batch, queries, v).

    ``lens`` is (batch,) or (batch, queries). The result of a query without a valid key is zero.
    """
    queries = queries / math.sqrt(queries.shape[-1])
    lens_per_query = bias = None
    if lens is not None and lens.ndim == 2:
        lens_per_query = jnp.asarray(lens)
    elif lens is not None:
        keys, values, bias = mask_padding(keys, values, jnp.asarray(lens))
    batch = queries, keys, values, bias, lens_per_query
    # At least 1: without jit, JAX 0.5 cannot scan an empty batch.
    batch_size = max(1, min(EXAMPLES, len(queries)))
    return jax.lax.map(lambda example: _attend_example(*example), batch, batch_size=batch_size)


def _attend_example(
    queries: jax.Array,
    keys: jax.Array,
    values: jax.Array,
    bias: jax.Array | None,
    lens: jax.Array | None,
) -> jax.Array:
    """Attend in one example, shape (queries, v); ``bias`` is (keys,), ``lens`` (queries,)."""
    num_queries = len(queries)
    num_blocks = -(-num_queries // BLOCK)
    block_size = -(-num_queries // num_blocks)

    def split(x: jax.Array) -> jax.Array:
        """Reshape (queries, ...) to (blocks, block size, ...), padded with zeros."""
        padding = [(0, num_blocks * block_size - num_queries), *[(0, 0)] * (x.ndim - 1)]
        return jnp.pad(x, padding).reshape(num_blocks, block_size, *x.shape[1:])

    @jax.checkpoint  # so that the weights are not stored
    def pool_block(block: tuple[jax.Array, jax.Array | None]) -> jax.Array:
        block_queries, block_lens = block
        scores = block_queries @ keys.T
        return softmax(scores if bias is None else scores + bias, block_lens) @ values

    pooled = jax.lax.map(pool_block, (split(queries), None if lens is None else split(lens)))
    return pooled.reshape(num_blocks * block_size, -1)[:num_queries]


def mask_padding(
    keys: jax.Array, values: jax.Array, lens: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Zero keys and values past the lengths; return them with a score bias that is -inf there.

    Adding a bias costs less than ``jnp.where`` on the scores. In an example without a valid key the
    bias is zero: its weights are then equal, and its values zero.
    """
    is_valid = jnp.arange(keys.shape[1]) < lens[:, None]
    bias = jnp.where(is_valid | (lens[:, None] == 0), 0, -jnp.inf).astype(keys.dtype)
    keys = jnp.where(is_valid[:, :, None], keys, 0)
    values = jnp.where(is_valid[:, :, None], values, 0)
    return keys, values, bias


def softmax(scores: jax.Array, lens: jax.Array | None, bias: jax.Array | None = None) -> jax.Array:
    """Compute the softmax over the first ``lens`` keys; weights past them are exactly 0.

    ``scores`` is (..., queries, keys), ``lens`` (..., queries or 1). ``bias``, which broadcasts to
    the shape of the scores, is added to them; if it is -inf, the weight is exactly 0 as well.
    """
    is_valid: jax.Array | bool = True
    if lens is not None:
        is_valid = jnp.arange(scores.shape[-1]) < lens[..., None]
    if bias is not None:
        scores = scores + bias
        is_valid &= bias != -jnp.inf
    if is_valid is True:
        return jax.nn.softmax(scores, axis=-1)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    finite = jnp.where(is_valid, scores, jnp.finfo(scores.dtype).min)
    return jnp.where(is_valid, jax.nn.softmax(finite, axis=-1), 0)
