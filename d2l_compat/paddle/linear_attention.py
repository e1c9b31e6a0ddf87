"""Causal linear attention: attention without a softmax, which a state of fixed size can compute token by token."""

import paddle
from paddle import Tensor, nn
from paddle.nn import functional as F

from d2l_compat._shared import checks, linear_attention
from d2l_compat._shared.linear_attention import (
    CHUNK_SIZE,
    Decay,
    LinearSizes,
    check_state,
    smallest_total,
)
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle.attention import linear

__all__ = ["LinearAttention"]


class LinearState(linear_attention.LinearState):
    __doc__ = linear_attention.LinearState.__doc__
    kv: Tensor
    k: Tensor

    @property
    def nbytes(self) -> int:
        """The size of both sums, in bytes."""
        return (self.kv.size + self.k.size) * self.kv.element_size()


class LinearAttention(nn.Layer):
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
        self.sizes = sizes = LinearSizes.check(num_hiddens, num_heads, decay)
        self.W_q = linear(sizes.num_hiddens, sizes.num_hiddens, bias)
        self.W_k = linear(sizes.num_hiddens, sizes.num_hiddens, bias)
        self.W_v = linear(sizes.num_hiddens, sizes.num_hiddens, bias)
        self.W_o = linear(sizes.num_hiddens, sizes.num_hiddens, bias)

    def make_state(self, batch_size: int) -> LinearState:
        """Return a state of zeros for ``batch_size`` texts, with the dtype and the device of the weights."""
        batch_size = checks.size("batch_size", batch_size)
        return LinearState(*self._zero_sums(batch_size, self.W_k.weight))

    def forward(
        self, X: Tensor, state: LinearState | None = None, chunk_size: int | None = CHUNK_SIZE
    ) -> Tensor:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        The text is read in chunks of ``chunk_size`` tokens, whose weights form a matrix: None reads all at once, in
        parallel, and 1 token by token, as a recurrent network does. The results are the same. With a ``state``,
        ``X`` has the next tokens of each text: they also see earlier ones, and are added to the state. Raises
        ValueError or TypeError for input that does not fit; the state is then left as it was.
        """
        arrays.check_texts(X, None, self.W_q)
        lengths = self.sizes.chunk_lengths(X.shape[1], chunk_size)
        if state is not None:
            check_state(state, X.shape[0], self.sizes, LinearState)
        queries = F.elu(self._split_heads(self.W_q(X))) + 1
        keys = F.elu(self._split_heads(self.W_k(X))) + 1
        values = self._split_heads(self.W_v(X))
        kv, k = self._zero_sums(X.shape[0], keys) if state is None else (state.kv, state.k)
        outputs = []
        # Slicing in the loop would make the backward pass quadratic: each slice has a gradient of full size.
        chunks = (paddle.split(x, lengths, axis=2) for x in (queries, keys, values))
        for chunk in zip(*chunks, strict=True):
            output, kv, k = self._attend(chunk, kv, k)
            outputs.append(output)
        if state is not None:
            state.kv, state.k = kv.detach(), k.detach()
        output = paddle.concat(outputs, axis=2).transpose([0, 2, 1, 3]).flatten(2)
        return self.W_o(output)

    def _zero_sums(self, batch_size: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return the sums before the first token, with the dtype and the device of a tensor."""
        shape = [batch_size, self.sizes.num_heads, self.sizes.head_size]
        kv = paddle.zeros([*shape, shape[-1]], like.dtype, device=like.place)
        return kv, paddle.zeros(shape, like.dtype, device=like.place)

    def _attend(
        self, chunk: tuple[Tensor, ...], kv: Tensor, k: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the pooling of a chunk of queries, keys and values, (batch, heads, steps, features), and new sums."""
        queries, keys, values = chunk
        powers = self.sizes.powers(queries.shape[2])
        within, from_state, to_state, whole = (
            paddle.to_tensor(x, queries.dtype, queries.place)
            for x in (powers.within, powers.from_state, powers.to_state, powers.whole)
        )
        weights = paddle.matmul(queries, keys, transpose_y=True) * within
        decayed_queries = queries * from_state.unsqueeze(2)
        pooled = paddle.matmul(weights, values) + paddle.matmul(decayed_queries, kv)
        total = weights.sum(axis=-1, keepdim=True) + paddle.matmul(decayed_queries, k.unsqueeze(3))
        decayed_keys = keys * to_state.unsqueeze(2)
        kv = kv * whole.unsqueeze(2) + paddle.matmul(decayed_keys, values, transpose_x=True)
        k = k * whole + decayed_keys.sum(axis=2)
        # Far below 0, all weights may be 0, or so small that the gradient would overflow.
        is_small = total < smallest_total(paddle.finfo(total.dtype).tiny)
        return pooled / total.masked_fill(is_small, 1), kv, k

    def _split_heads(self, X: Tensor) -> Tensor:
        """Reshape (batch, steps, num_hiddens) to (batch, heads, steps, features)."""
        return X.unflatten(2, [self.sizes.num_heads, -1]).transpose([0, 2, 1, 3])
