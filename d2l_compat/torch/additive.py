"""Additive attention, for queries and keys of different sizes: Bahdanau et al. (2015)."""

from typing import Any

import torch
from torch import Tensor, nn

from d2l_compat._shared import checks, layers
from d2l_compat._shared.weights import assignable, select_assigned
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch.attention import linear, masked_softmax

__all__ = ["AdditiveAttention"]


class AdditiveAttention(layers.AdditiveAttention, nn.Module):
    """Additive attention, with scores w_v^T tanh(W_q q + W_k k).

    ``AdditiveAttention(num_hiddens, dropout)`` takes the sizes of queries and keys from its first
    input; ``AdditiveAttention(key_size, query_size, num_hiddens, dropout)`` specifies them.
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
        self.w_v = linear(query_size and num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)
        self._last: Tensor | None = None

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
        features = self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1)
        scores = self.w_v(torch.tanh(features)).squeeze(-1)
        self._last = masked_softmax(scores, valid_lens)
        return self.dropout(self._last) @ values

    @assignable
    def attention_weights(self) -> Tensor:
        """Weights of the last call, before dropout, shape (batch, queries, keys).

        Raises AttributeError before the first call.
        """
        if self._last is None:
            raise AttributeError(checks.NOT_CALLED)
        return self._last

    def __getstate__(self) -> dict[str, Any]:
        # A copied or saved layer has not been called yet.
        return {**self.__dict__, "_last": select_assigned(self._last)}
