"""Additive attention, for queries and keys of different sizes: Bahdanau et al. (2015)."""

from typing import Any

import paddle
from paddle import Tensor, nn

from d2l_compat._shared import checks, layers
from d2l_compat._shared.weights import AssignableWeights, assignable, select_assigned
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle.attention import linear, masked_softmax, zero_without_keys

__all__ = ["AdditiveAttention"]


class AdditiveAttention(AssignableWeights, layers.AdditiveAttention, nn.Layer):
    """Additive attention, with scores w_v^T tanh(W_q q + W_k k).

    ``AdditiveAttention(num_hiddens, dropout)`` takes the sizes of queries and keys from its first
    input; ``AdditiveAttention(key_size, query_size, num_hiddens, dropout)`` specifies them.

    It has no second derivatives, since Paddle's softmax has none.
    """

    def _make_layers(
        self,
        *,
        num_hiddens: int,
        dropout: float,
        key_size: int | None = None,
        query_size: int | None = None,
    ) -> None:
        self.W_k = linear(key_size, num_hiddens, bias=False)
        self.W_q = linear(query_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias_attr=False)
        self.dropout = nn.Dropout(float(dropout))
        # In a tuple, since a layer registers a tensor attribute as a buffer.
        self._last: tuple[Tensor, ...] = ()

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return the attention pooling of ``values``.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, v), all of one floating-point dtype; ``valid_lens`` as in
        :func:`masked_softmax`. Returns (batch, queries, v). The memory grows with batch * queries *
        keys * num_hiddens. Raises ValueError or TypeError for input that does not fit.
        """
        arrays.check_attention(queries, keys, values)
        arrays.check_projection("queries", queries, self.W_q)
        arrays.check_projection("keys", keys, self.W_k)
        # Checked first, so that the projections do not take their sizes from invalid input.
        arrays.check_valid_lens(valid_lens, queries, keys)
        features = self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1)
        scores = self.w_v(paddle.tanh(features)).squeeze(-1)
        weights = masked_softmax(scores, valid_lens)
        pooled = paddle.bmm(self.dropout(weights), values)
        if paddle.in_dynamic_mode():  # a traced program has no weights to show
            self._last = (weights,)
        return zero_without_keys(pooled, keys)

    @assignable
    def attention_weights(self) -> Tensor:
        """Weights of the last eager call, before dropout, shape (batch, queries, keys).

        Running a traced program does not change them. Raises AttributeError before the first call.
        """
        if not self._last:
            raise AttributeError(checks.NOT_CALLED)
        return self._last[0]

    def __getstate__(self) -> dict[str, Any]:
        # A copied or saved layer has not been called yet.
        return {**super().__getstate__(), "_last": select_assigned(self._last)}
