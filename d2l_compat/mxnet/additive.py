"""Additive attention, for queries and keys of different sizes: Bahdanau et al. (2015)."""

from mxnet import np, npx
from mxnet.gluon import nn

from d2l_compat._shared import checks, layers
from d2l_compat._shared.weights import assignable
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet._dropout import Dropout
from d2l_compat.mxnet.attention import dense, masked_softmax

__all__ = ["AdditiveAttention"]


class AdditiveAttention(layers.AdditiveAttention, nn.Block):
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
        self.W_k = dense(key_size, num_hiddens, bias=False)
        self.W_q = dense(query_size, num_hiddens, bias=False)
        self.w_v = dense(query_size and num_hiddens, 1, bias=False)
        self.dropout = Dropout(dropout)
        self._last: np.ndarray | None = None

    def __call__(
        self,
        queries: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        valid_lens: np.ndarray | None = None,
    ) -> np.ndarray:
        return super().__call__(queries, keys, values, valid_lens)

    def forward(
        self,
        queries: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        valid_lens: np.ndarray | None = None,
    ) -> np.ndarray:
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
        features = np.expand_dims(self.W_q(queries), 2) + np.expand_dims(self.W_k(keys), 1)
        scores = self.w_v(np.tanh(features)).squeeze(-1)
        self._last = masked_softmax(scores, valid_lens)
        return npx.batch_dot(self.dropout(self._last), values)

    @assignable
    def attention_weights(self) -> np.ndarray:
        """Weights of the last call, before dropout, shape (batch, queries, keys).

        Raises AttributeError before the first call.
        """
        if self._last is None:
            raise AttributeError(checks.NOT_CALLED)
        return self._last
