"""Causal linear attention: attention without a softmax, which a state of fixed size can compute token by token."""

from typing import Any

import numpy as onp
from mxnet import np, npx
from mxnet.gluon import nn

from d2l_compat._shared import checks, linear_attention
from d2l_compat._shared.linear_attention import (
    CHUNK_SIZE,
    Decay,
    LinearSizes,
    check_state,
    smallest_total,
)
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet.attention import dense
from d2l_compat.mxnet.windows import split_evenly

__all__ = ["LinearAttention"]


class LinearState(linear_attention.LinearState):
    __doc__ = linear_attention.LinearState.__doc__

    @property
    def nbytes(self) -> int:
        """The size of both sums, in bytes."""
        return sum(int(x.size) * onp.dtype(x.dtype).itemsize for x in (self.kv, self.k))


class LinearAttention(nn.Block):
    """Causal linear attention, Katharopoulos et al. (2020), with several heads and a decay.

    The weight of key j for query i is a^(i - j) f(q_i) . f(k_j), divided by the sum of the weights, where f(x) = elu(x)
    + 1 is positive, and a is the head's ``decay``: 1 keeps all of the past. Since there is no softmax, what a query
    needs of the past is a sum that each token adds to: time grows with the length, and not with its square.
    """

    def __init__(
        self, num_hiddens: int, num_heads: int, use_bias: bool = False, *, decay: Decay = 1.0
    ) -> None:
        """Create the projections W_q, W_k, W_v and W_o; ``decay`` is above 0 and at most 1, one number or one per head.

        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        checks.check_flag("use_bias", use_bias)
        super().__init__()
        self.sizes = LinearSizes.check(num_hiddens, num_heads, decay)
        self.W_q = dense(num_hiddens, num_hiddens, use_bias)
        self.W_k = dense(num_hiddens, num_hiddens, use_bias)
        self.W_v = dense(num_hiddens, num_hiddens, use_bias)
        self.W_o = dense(num_hiddens, num_hiddens, use_bias)

    def make_state(self, batch_size: int) -> LinearState:
        """Return a state of zeros for ``batch_size`` texts, with the dtype and the device of the weights."""
        batch_size = checks.size("batch_size", batch_size)
        weight = self.W_k.weight
        return LinearState(*self._zeros(batch_size, dtype=weight.dtype, ctx=weight.list_ctx()[0]))

    def __call__(
        self,
        X: np.ndarray,
        state: LinearState | None = None,
        chunk_size: int | None = CHUNK_SIZE,
    ) -> np.ndarray:
        return super().__call__(X, state, chunk_size)

    def forward(
        self,
        X: np.ndarray,
        state: LinearState | None = None,
        chunk_size: int | None = CHUNK_SIZE,
    ) -> np.ndarray:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        The text is read in chunks of ``chunk_size`` tokens, whose weights form a matrix: None reads all at once, in
        parallel, and 1 token by token, as a recurrent network does. The results are the same. With a ``state``,
        ``X`` has the next tokens of each text: they also see earlier ones, and are added to the state. Raises
        ValueError or TypeError for input that does not fit; the state is then left as it was.
        """
        arrays.check_texts(X, None, self.W_q)
        lengths = self.sizes.chunk_lengths(X.shape[1], chunk_size)
        if state is not None:
            check_state(state, len(X), self.sizes)
        if not len(X):  # MXNet cannot sum an empty array
            return self.W_o(X)
        queries = npx.leaky_relu(self._split_heads(self.W_q(X)), act_type="elu", slope=1.0) + 1
        keys = npx.leaky_relu(self._split_heads(self.W_k(X)), act_type="elu", slope=1.0) + 1
        values = self._split_heads(self.W_v(X))
        if state is None:
            kv, k = self._zeros(len(X), dtype=X.dtype, ctx=X.ctx)
        else:
            kv, k = state.kv, state.k
        powers = {length: self._powers(length, X) for length in {*lengths}}
        outputs = []
        # Slicing in the loop would make the backward pass quadratic: each slice has a gradient of full size.
        chunks = (_split_chunks(x, lengths) for x in (queries, keys, values))
        for length, *chunk in zip(lengths, *chunks, strict=True):
            output, kv, k = _attend(chunk, kv, k, powers[length])
            outputs.append(output)
        if state is not None:
            state.kv, state.k = kv.detach(), k.detach()
        output = np.concatenate(outputs, axis=2).swapaxes(1, 2).reshape(X.shape)
        return self.W_o(output)

    def _zeros(self, batch_size: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return both sums of a state before the first token."""
        shape = batch_size, self.sizes.num_heads, self.sizes.head_size
        return np.zeros((*shape, shape[-1]), **options), np.zeros(shape, **options)

    def _powers(self, num_steps: int, like: np.ndarray) -> list[np.ndarray]:
        """Return the powers of the decay within a chunk, from the state, to the state, and over the whole chunk."""
        powers = self.sizes.powers(num_steps)
        tables = powers.within, powers.from_state, powers.to_state, powers.whole
        return [np.array(x, dtype=like.dtype, ctx=like.ctx) for x in tables]

    def _split_heads(self, X: np.ndarray) -> np.ndarray:
        """Reshape (batch, steps, num_hiddens) to (batch, heads, steps, features)."""
        batch, num_steps, _ = X.shape
        sizes = self.sizes
        return X.reshape(batch, num_steps, sizes.num_heads, sizes.head_size).swapaxes(1, 2)


def _split_chunks(X: np.ndarray, lengths: list[int]) -> list[np.ndarray]:
    """Split (batch, heads, steps, features) into chunks; only the last may be shorter than the others."""
    num_full = lengths.count(lengths[0])
    end = num_full * lengths[0]
    chunks = split_evenly(X[:, :, :end], num_full, axis=2)
    return chunks if num_full == len(lengths) else [*chunks, X[:, :, end:]]


def _attend(
    chunk: list[np.ndarray], kv: np.ndarray, k: np.ndarray, powers: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pooling of a chunk of queries, keys and values, (batch, heads, steps, features), and new sums."""
    queries, keys, values = chunk
    within, from_state, to_state, whole = powers
    weights = npx.batch_dot(queries, keys, transpose_b=True) * within
    decayed_queries = queries * np.expand_dims(from_state, -1)
    pooled = npx.batch_dot(weights, values) + npx.batch_dot(decayed_queries, kv)
    total = weights.sum(axis=-1, keepdims=True)
    total = total + npx.batch_dot(decayed_queries, np.expand_dims(k, -1))
    decayed_keys = keys * np.expand_dims(to_state, -1)
    added = npx.batch_dot(decayed_keys, values, transpose_a=True)
    kv = kv * np.expand_dims(whole, -1) + added
    k = k * whole + decayed_keys.sum(axis=2)
    # Far below 0, all weights may be 0, or so small that the gradient would overflow.
    is_small = total < smallest_total(onp.finfo(total.dtype).tiny)
    # With a plain number, `np.where` swaps the gradients of its two branches (apache/mxnet#17893).
    total = np.where(is_small, np.ones_like(total), total)
    return pooled / total, kv, k
