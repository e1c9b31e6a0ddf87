"""Additive attention, for queries and keys of different sizes: Bahdanau et al. (2015)."""

from typing import Any, overload

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat.jax._arrays import Array, arrays, as_jax, check_training
from d2l_compat.jax._checked import CheckedModule
from d2l_compat.jax.attention import masked_softmax

__all__ = ["AdditiveAttention"]


class AdditiveAttention(CheckedModule):
    """Additive attention, with scores w_v^T tanh(W_q q + W_k k).

    ``AdditiveAttention(num_hiddens, dropout)`` infers the sizes of queries and keys from its first
    input; ``AdditiveAttention(key_size, query_size, num_hiddens, dropout)`` specifies them.
    """

    num_hiddens: int
    dropout: float
    # None means inferred from the first input.
    key_size: int | None = None
    query_size: int | None = None

    @overload
    def __init__(
        self, num_hiddens: int, dropout: float, *, parent: Any = ..., name: str | None = None
    ) -> None: ...
    @overload
    def __init__(
        self,
        key_size: int,
        query_size: int,
        num_hiddens: int,
        dropout: float,
        *,
        parent: Any = ...,
        name: str | None = None,
    ) -> None: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create the layer; ``dropout``, from 0 to 1, is the share of weights dropped in training.

        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        super().__init__(*args, **kwargs)

    def setup(self) -> None:
        self.W_q = nn.Dense(self.num_hiddens, use_bias=False)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=False)
        self.w_v = nn.Dense(1, use_bias=False)

    @nn.compact
    def __call__(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        valid_lens: Array | None = None,
        training: bool = False,
    ) -> tuple[jax.Array, jax.Array]:
        """Return the attention pooling of ``values``, and the weights before dropout.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, v), all of one floating-point dtype; ``valid_lens`` as in
        :func:`masked_softmax`. Returns (batch, queries, v) and (batch, queries, keys). The memory
        grows with batch * queries * keys * num_hiddens. ``training`` needs a random key named "dropout".
        Raises ValueError or TypeError for input that does not fit.
        """
        check_training(training)
        queries, keys, values = map(as_jax, (queries, keys, values))
        arrays.check_attention(queries, keys, values)
        arrays.check_projection("queries", queries, self.W_q, self.query_size)
        arrays.check_projection("keys", keys, self.W_k, self.key_size)
        features = self.W_q(queries)[:, :, None] + self.W_k(keys)[:, None]
        scores = self.w_v(jnp.tanh(features)).squeeze(-1)
        weights = masked_softmax(scores, valid_lens)
        dropped = nn.Dropout(self.dropout)(weights, deterministic=not training)
        return dropped @ values, weights
