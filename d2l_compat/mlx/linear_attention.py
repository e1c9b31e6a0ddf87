"""Causal linear attention: attention without a softmax, which a state of fixed size can compute token by token."""

import mlx.core as mx
from mlx import nn

from d2l_compat._shared import checks
from d2l_compat._shared.linear_attention import (
    CHUNK_SIZE,
    Decay,
    LinearSizes,
    LinearState,
    check_state,
    smallest_total,
)
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._blockwise import exp, matmul, matmul_transposed, split_steps
from d2l_compat.mlx._lazy import linear
from d2l_compat.mlx.attention import round_to

__all__ = ["LinearAttention"]


class LinearAttention(nn.Module):
    """Causal linear attention, Katharopoulos et al. (2020), with several heads and a decay.

    The weight of key j for query i is a^(i - j) f(q_i) . f(k_j), divided by the sum of the weights, where f(x) = elu(x)
    + 1 is positive, and a is the head's ``decay``: 1 keeps all of the past. Since there is no softmax, what a query
    needs of the past is a sum that each token adds to: time grows with the length, and not with its square.
    """

    def __init__(
        self, num_hiddens: int, num_heads: int, bias: bool = False, *, decay: Decay = 1.0
    ) -> None:
        """Create the projections W_q, W_k, W_v and W_o; ``decay`` is above 0 and at most 1, one number or one per head.

        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        checks.check_flag("bias", bias)
        super().__init__()
        self.sizes = LinearSizes.check(num_hiddens, num_heads, decay)
        self.W_q = linear(num_hiddens, num_hiddens, bias)
        self.W_k = linear(num_hiddens, num_hiddens, bias)
        self.W_v = linear(num_hiddens, num_hiddens, bias)
        self.W_o = linear(num_hiddens, num_hiddens, bias)

    def make_state(self, batch_size: int) -> LinearState:
        """Return a state of zeros for ``batch_size`` texts, with the dtype of the weights."""
        batch_size = checks.size("batch_size", batch_size)
        return self._zero_state(batch_size, self.W_k.weight.dtype)

    def __call__(
        self, X: mx.array, state: LinearState | None = None, chunk_size: int | None = CHUNK_SIZE
    ) -> mx.array:
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
        queries = elu_plus_1(self._split_heads(self.W_q(X)))
        keys = elu_plus_1(self._split_heads(self.W_k(X)))
        values = self._split_heads(self.W_v(X))
        if state is None:
            state = self._zero_state(len(X), keys.dtype)
        kv, k = state.kv, state.k
        powers = {length: self._powers(length, keys.dtype) for length in {*lengths}}
        chunks = (split_steps(x, lengths) for x in (queries, keys, values))
        outputs = []
        for length, *chunk in zip(lengths, *chunks, strict=True):
            output, kv, k = _attend(chunk, kv, k, powers[length])
            outputs.append(output)
        state.kv, state.k = mx.stop_gradient(kv), mx.stop_gradient(k)
        output = mx.concatenate(outputs, axis=2).swapaxes(1, 2).flatten(2)
        return self.W_o(output)

    def _zero_state(self, batch_size: int, dtype: mx.Dtype) -> LinearState:
        head_size = self.sizes.head_size
        shape = batch_size, self.sizes.num_heads, head_size
        return LinearState(mx.zeros((*shape, head_size), dtype), mx.zeros(shape, dtype))

    def _powers(self, num_steps: int, dtype: mx.Dtype) -> list[mx.array]:
        """Return the decay's powers within a chunk, from the state, to the state, and over the whole chunk."""
        powers = self.sizes.powers(num_steps)
        tables = powers.within, powers.from_state, powers.to_state, powers.whole
        return [round_to(dtype, table) for table in tables]

    def _split_heads(self, X: mx.array) -> mx.array:
        """Reshape (batch, steps, num_hiddens) to (batch, heads, steps, features)."""
        return mx.unflatten(X, 2, (self.sizes.num_heads, -1)).swapaxes(1, 2)


def elu_plus_1(x: mx.array) -> mx.array:
    """Compute elu(x) + 1; unlike ``nn.elu``, with a finite gradient where exp(x) overflows."""
    return mx.where(x > 0, x + 1, exp(mx.minimum(x, 0)))


def _attend(
    chunk: list[mx.array], kv: mx.array, k: mx.array, powers: list[mx.array]
) -> tuple[mx.array, mx.array, mx.array]:
    """Return the pooling of a chunk of queries, keys and values, (batch, heads, steps, features), and new sums."""
    queries, keys, values = chunk
    within, from_state, to_state, whole = powers
    weights = matmul_transposed(queries, keys) * within
    decayed_queries = queries * from_state[..., None]
    pooled = matmul(weights, values) + matmul(decayed_queries, kv)
    total = weights.sum(axis=-1, keepdims=True) + matmul(decayed_queries, k[..., None])
    decayed_keys = keys * to_state[..., None]
    kv = kv * whole[..., None] + matmul(decayed_keys.swapaxes(2, 3), values)
    k = k * whole + decayed_keys.sum(axis=2)
    # Far below 0, all weights may be 0, or so small that the gradient would overflow.
    is_small = total < smallest_total(mx.finfo(total.dtype).smallest_normal)
    return pooled / mx.where(is_small, 1, total), kv, k
