"""Causal linear attention: attention without a softmax, which a state of fixed size can compute token by token."""

from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct

from d2l_compat._shared import checks
from d2l_compat._shared.linear_attention import (
    CHUNK_SIZE,
    Decay,
    LinearSizes,
    check_state,
    smallest_total,
)
from d2l_compat.jax._arrays import Array, arrays, as_jax

__all__ = ["LinearAttention"]

Sums = tuple[jax.Array, jax.Array]


class LinearState(struct.PyTreeNode):
    """What a linear attention layer keeps of the tokens that it has read; its size does not depend on their number.

    It is immutable: a call with more tokens returns a new state. ``kv``, shape (batch, heads, features, features), is
    the sum of the products of keys and values, and ``k``, shape (batch, heads, features), the sum of the keys, both
    with decay. A layer makes a state with its ``make_state``. A state is a pytree of fixed shapes: a jitted step is
    compiled once for all chunks of a size.
    """

    kv: jax.Array
    k: jax.Array

    def reset(self) -> "LinearState":
        """Return a state without tokens."""
        return self.replace(kv=jnp.zeros_like(self.kv), k=jnp.zeros_like(self.k))

    @property
    def nbytes(self) -> int:
        """The size of both sums, in bytes."""
        return self.kv.nbytes + self.k.nbytes


class LinearAttention(nn.Module):
    """Causal linear attention, Katharopoulos et al. (2020), with several heads and a decay.

    The weight of key j for query i is a^(i - j) f(q_i) . f(k_j), divided by the sum of the weights, where f(x) = elu(x)
    + 1 is positive, and a is the head's ``decay``: 1 keeps all of the past. Since there is no softmax, what a query
    needs of the past is a sum that each token adds to: time grows with the length, and not with its square.

    The projections are W_q, W_k, W_v and W_o; ``decay`` is above 0 and at most 1, one number or one per head. Raises
    ValueError or TypeError for arguments of the wrong type or range.
    """

    num_hiddens: int
    num_heads: int
    bias: bool = False
    _: KW_ONLY
    decay: Decay = 1.0

    def __post_init__(self) -> None:
        checks.check_flag("bias", self.bias)
        self.sizes = LinearSizes.check(self.num_hiddens, self.num_heads, self.decay)
        if isinstance(self.decay, list):
            self.decay = tuple(self.decay)  # a layer can be hashed
        super().__post_init__()

    def setup(self) -> None:
        self.W_q = nn.Dense(self.sizes.num_hiddens, use_bias=self.bias)
        self.W_k = nn.Dense(self.sizes.num_hiddens, use_bias=self.bias)
        self.W_v = nn.Dense(self.sizes.num_hiddens, use_bias=self.bias)
        self.W_o = nn.Dense(self.sizes.num_hiddens, use_bias=self.bias)

    def make_state(self, batch_size: int, dtype: Any = jnp.float32) -> LinearState:
        """Return a state of zeros for ``batch_size`` texts.

        ``dtype`` is that of the layer's output. No parameters are needed.
        """
        batch_size = checks.size("batch_size", batch_size)
        shape = batch_size, self.sizes.num_heads, self.sizes.head_size
        kv = jnp.zeros((*shape, self.sizes.head_size), dtype)
        return LinearState(kv, jnp.zeros(shape, dtype))

    def __call__(
        self,
        X: Array,
        state: LinearState | None = None,
        chunk_size: int | None = CHUNK_SIZE,
    ) -> jax.Array | tuple[jax.Array, LinearState]:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        The text is read in chunks of ``chunk_size`` tokens, whose weights form a matrix: None reads all at once, in
        parallel, and 1 token by token, as a recurrent network does. The results are the same. Under ``jit`` it must be
        static. With a ``state``, ``X`` has the next tokens of each text: they also see earlier ones, and the new
        state, to which they are added, is returned as well. Raises ValueError or TypeError for input that does not fit.
        """
        X = as_jax(X)
        arrays.check_texts(X, None, self.W_q)
        lengths = self.sizes.chunk_lengths(X.shape[1], chunk_size)
        if state is not None:
            check_state(state, len(X), self.sizes, LinearState)
        queries = jax.nn.elu(self._split_heads(self.W_q(X))) + 1
        keys = jax.nn.elu(self._split_heads(self.W_k(X))) + 1
        values = self._split_heads(self.W_v(X))
        start = self.make_state(len(X), keys.dtype) if state is None else state
        arrays.check_floating("state, keys and values", start.kv, keys, values)
        chunks = queries, keys, values
        output, (kv, k) = _read(self.sizes, lengths[0], chunks, (start.kv, start.k))
        output = self.W_o(output.swapaxes(1, 2).reshape(*X.shape[:2], self.sizes.num_hiddens))
        return output if state is None else (output, LinearState(kv, k))

    def _split_heads(self, X: jax.Array) -> jax.Array:
        """Reshape (batch, steps, num_hiddens) to (batch, heads, steps, features)."""
        shape = *X.shape[:2], self.sizes.num_heads, self.sizes.head_size
        return X.reshape(shape).swapaxes(1, 2)


@partial(jax.jit, static_argnums=(0, 1))  # otherwise each call compiles the scan again
def _read(
    sizes: LinearSizes, chunk_size: int, texts: tuple[jax.Array, ...], sums: Sums
) -> tuple[jax.Array, Sums]:
    """Return the pooling of queries, keys and values, (batch, heads, steps, features), in chunks, and the new sums."""
    batch, num_heads, num_steps, head_size = texts[0].shape
    num_chunks = num_steps // chunk_size
    num_scanned = num_chunks * chunk_size
    shape = batch, num_heads, num_chunks, chunk_size, head_size
    # Slicing in the loop would make the backward pass quadratic: each slice has a gradient of full size.
    chunks = tuple(jnp.moveaxis(x[:, :, :num_scanned].reshape(shape), 2, 0) for x in texts)

    attend_in_chunk = partial(_attend, _powers(sizes.decay, chunk_size))
    sums, output = jax.lax.scan(attend_in_chunk, sums, chunks)
    output = jnp.moveaxis(output, 0, 2).reshape(batch, num_heads, num_scanned, head_size)
    if num_scanned == num_steps:
        return output, sums
    chunk = tuple(x[:, :, num_scanned:] for x in texts)
    sums, rest = _attend(_powers(sizes.decay, num_steps - num_scanned), sums, chunk)
    return jnp.concatenate([output, rest], axis=2), sums


def _powers(decay: tuple[float, ...], num_steps: int) -> tuple[jax.Array, ...]:
    """Compute the powers of the decay by JAX: NumPy's matrices would be stored in compiled code."""
    base = jnp.array(decay)[:, None]
    step = jnp.arange(num_steps)
    distance = step[:, None] - step
    within = jnp.where(distance >= 0, base[..., None] ** distance.clip(0), 0)
    return within, base ** (step + 1), base ** step[::-1], base**num_steps


def _attend(
    powers: tuple[jax.Array, ...], sums: Sums, chunk: tuple[jax.Array, ...]
) -> tuple[Sums, jax.Array]:
    """Return new sums and the pooling of a chunk of queries, keys and values, (batch, heads, steps, features)."""
    queries, keys, values = chunk
    kv, k = sums
    within, from_state, to_state, whole = (x.astype(queries.dtype) for x in powers)
    weights = queries @ keys.swapaxes(2, 3) * within
    decayed_queries = queries * from_state[..., None]
    pooled = weights @ values + decayed_queries @ kv
    total = weights.sum(axis=-1, keepdims=True) + decayed_queries @ k[..., None]
    decayed_keys = keys * to_state[..., None]
    kv = kv * whole[..., None] + decayed_keys.swapaxes(2, 3) @ values
    k = k * whole + decayed_keys.sum(axis=2)
    # Far below 0, all weights may be 0, or so small that the gradient would overflow.
    is_small = total < smallest_total(float(jnp.finfo(total.dtype).tiny))
    return (kv, k), pooled / jnp.where(is_small, 1, total)
