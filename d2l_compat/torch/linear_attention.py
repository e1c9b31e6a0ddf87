"""Causal linear attention: attention without a softmax, which a state of fixed size can compute token by token."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from d2l_compat._shared import checks
from d2l_compat._shared.linear_attention import (
    CHUNK_SIZE,
    Decay,
    LinearSizes,
    LinearState,
    check_state,
    smallest_total,
)
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch.attention import linear

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
        """Return a state of zeros for ``batch_size`` texts, with the dtype and the device of the weights."""
        batch_size = checks.size("batch_size", batch_size)
        head_size = self.sizes.head_size
        shape = batch_size, self.sizes.num_heads, head_size
        weight = self.W_k.weight
        return LinearState(weight.new_zeros(*shape, head_size), weight.new_zeros(shape))

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
            check_state(state, len(X), self.sizes)
        queries = F.elu(self._split_heads(self.W_q(X))) + 1
        keys = F.elu(self._split_heads(self.W_k(X))) + 1
        values = self._split_heads(self.W_v(X))
        if state is None:
            kv = keys.new_zeros(*keys.shape[:2], keys.shape[3], values.shape[3])
            k = keys.new_zeros(*keys.shape[:2], keys.shape[3])
        else:
            kv, k = state.kv, state.k
        powers = {length: self._powers(length, keys) for length in {*lengths}}
        outputs = []
        # Slicing in the loop would make the backward pass quadratic: each slice has a gradient of full size.
        chunks = (x.split(lengths, dim=2) for x in (queries, keys, values))
        for length, *chunk in zip(lengths, *chunks, strict=True):
            output, kv, k = _attend(chunk, kv, k, powers[length])
            outputs.append(output)
        if state is not None:
            state.kv, state.k = kv.detach(), k.detach()
        output = torch.cat(outputs, dim=2).transpose(1, 2).flatten(2)
        return self.W_o(output)

    def _powers(self, num_steps: int, like: Tensor) -> list[Tensor]:
        """Return the powers of the decay within a chunk, from the state, to the state, and over the whole chunk."""
        powers = self.sizes.powers(num_steps)
        tables = powers.within, powers.from_state, powers.to_state, powers.whole
        return [torch.from_numpy(x).to(like) for x in tables]

    def _split_heads(self, X: Tensor) -> Tensor:
        """Reshape (batch, steps, num_hiddens) to (batch, heads, steps, features)."""
        return X.unflatten(2, (self.sizes.num_heads, -1)).transpose(1, 2)


def _attend(
    chunk: list[Tensor], kv: Tensor, k: Tensor, powers: list[Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the pooling of a chunk of queries, keys and values, (batch, heads, steps, features), and new sums."""
    queries, keys, values = chunk
    within, from_state, to_state, whole = powers
    weights = queries @ keys.transpose(2, 3) * within
    decayed_queries = queries * from_state[..., None]
    pooled = weights @ values + decayed_queries @ kv
    total = weights.sum(dim=-1, keepdim=True) + decayed_queries @ k[..., None]
    decayed_keys = keys * to_state[..., None]
    kv = kv * whole[..., None] + decayed_keys.transpose(2, 3) @ values
    k = k * whole + decayed_keys.sum(dim=2)
    # Far below 0, all weights may be 0, or so small that the gradient would overflow.
    is_small = total < smallest_total(torch.finfo(total.dtype).tiny)
    return pooled / total.masked_fill(is_small, 1), kv, k
