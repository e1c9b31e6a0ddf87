"""Scaled dot-product and multi-head attention, and the sinusoidal positional encoding.

The formulas are those of Vaswani et al. (2017), "Attention Is All You Need". One rule of
masking applies everywhere: a key past its ``valid_lens`` gets a weight of exactly zero. A query
with no valid key at all (a length of 0) therefore has only zero weights, its attention
pooling is the zero vector, and the gradients through it are zero; there is no NaN. The values
in the padding must still be finite, since zero times NaN is NaN. Keys that a causal mask
hides, and keys whose ``score_bias`` is minus infinity, are treated like padding.

A tensor is an ``mxnet.np.ndarray`` here; MXNet's older ``NDArray`` is rejected. Dropout is active
while ``autograd`` is in training mode, as it is inside ``autograd.record()``.

MXNet converts every list to float32, so lengths may be whole numbers of a floating-point dtype.
Their values are checked, so a call with ``valid_lens`` waits for them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, overload

import numpy as onp
from mxnet import np, npx
from mxnet.gluon import nn
from numpy.typing import NDArray

from d2l_compat._shared import checks, encoding, signatures
from d2l_compat._shared.weights import assignable
from d2l_compat._shared.windows import Blocks, choose_blocks
from d2l_compat.mxnet import _blockwise
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet._dropout import Dropout, is_inactive
from d2l_compat.mxnet.windows import (
    block_bias,
    hide_outside,
    join_queries,
    split_keys,
    split_queries,
)

__all__ = [
    "DotProductAttention",
    "MultiHeadAttention",
    "PositionalEncoding",
    "masked_softmax",
    "transpose_output",
    "transpose_qkv",
]


def masked_softmax(X: np.ndarray, valid_lens: np.ndarray | None = None) -> np.ndarray:
    """Return the softmax over the first ``valid_lens`` entries of the last axis of ``X``.

    Parameters
    ----------
    X
        Scores, floating point, shape (batch, queries, keys).
    valid_lens
        Whole numbers of at least 0, of an integer or floating-point dtype, shape (batch,), or (batch,
        queries) for a separate length for each query; beyond the number of keys they, and None, mean
        all keys.

    Returns
    -------
    np.ndarray
        Weights of X's shape and dtype, exactly 0 past the valid length. Each row sums to 1, or to 0 if
        its length is 0.

    Raises
    ------
    ValueError, TypeError
        For a wrong rank, shape, dtype or range.

    """
    return _softmax(X, arrays.check_scores(X, valid_lens))


class DotProductAttention(nn.Block):
    """Scaled dot-product attention, softmax(Q K^T / sqrt(d)) V."""

    def __init__(self, dropout: float) -> None:
        """Create the layer; ``dropout`` is the share of weights dropped in training, from 0 to 1.

        Raises ValueError or TypeError for any other value.
        """
        checks.check_dropout(dropout)
        super().__init__()
        self.dropout = Dropout(dropout)
        self._last: np.ndarray | Callable[[], np.ndarray] | None = None

    def __call__(
        self,
        queries: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        valid_lens: np.ndarray | None = None,
        *,
        causal: bool = False,
        score_bias: np.ndarray | None = None,
        window: int | None = None,
    ) -> np.ndarray:
        # Gluon's `__call__` takes positional arguments only. Pass only the masks in use: a custom
        # `forward` may support none.
        masks = _masks_in_use(causal, score_bias, window)
        return super().__call__(queries, keys, values, valid_lens, *masks)

    def forward(
        self,
        queries: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        valid_lens: np.ndarray | None = None,
        causal: bool = False,
        score_bias: np.ndarray | None = None,
        window: int | None = None,
    ) -> np.ndarray:
        """Return the attention pooling of ``values``.

        Shapes: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v),
        all of one floating-point dtype; ``valid_lens`` as in :func:`masked_softmax`. With
        ``causal`` the last query sees every key, the one before it all but the last, and so on.
        ``score_bias``, shape (queries, keys) or (batch, queries, keys), of the same dtype, is added
        to the scores; a key whose bias is minus infinity is hidden. With a ``window``, a query sees only
        as many keys, those that end with its own: the mask is causal, and the cost grows with queries *
        window. The masks may be combined: a query sees the keys that none of them hides. Returns
        (batch, queries, v). Raises ValueError or TypeError for input that does not fit.
        """
        arrays.check_dot_product(queries, keys, values)
        lens = arrays.check_valid_lens(valid_lens, queries, keys)
        window = arrays.check_causal(causal, queries, keys, window)
        causal = causal or window is not None
        arrays.check_score_bias(score_bias, queries, keys)
        compute = partial(compute_weights, queries, keys, lens, causal, score_bias, window)
        if blocks := choose_blocks(queries.shape[1], keys.shape[1], window):
            self._last = compute
            return attend_in_blocks(
                queries, keys, values, blocks, lens, score_bias, dropout=self.dropout
            )
        if _blockwise.is_long(queries, keys) and is_inactive(self.dropout):
            self._last = compute
            bias = hide_outside(score_bias, queries, keys, window)
            return _blockwise.attend(queries, keys, values, lens, causal, bias)
        self._last = compute()
        return npx.batch_dot(self.dropout(self._last), values)

    @assignable
    def attention_weights(self) -> np.ndarray:
        """Weights of the last call, before dropout, shape (batch, queries, keys).

        For long input, they are computed when this is read, except those of a call with dropout and without
        a window. Raises AttributeError before the first call.
        """
        if self._last is None:
            raise AttributeError(checks.NOT_CALLED)
        return self._last() if callable(self._last) else self._last


class MultiHeadAttention(nn.Block):
    """Multi-head attention, Vaswani et al. (2017), section 3.2.2, with both of D2L's signatures.

    ``MultiHeadAttention(num_hiddens, num_heads, dropout, use_bias=False)`` takes the sizes of
    queries, keys and values from its first input;
    ``MultiHeadAttention(key_size, query_size, value_size, num_hiddens, num_heads, dropout,
    use_bias=False)`` specifies them. ``num_hiddens`` is divided among the heads: each works in
    num_hiddens / num_heads dimensions, its slice of the projections ``W_q``, ``W_k``, ``W_v``;
    ``W_o`` mixes the heads' results.
    """

    @overload
    def __init__(
        self, num_hiddens: int, num_heads: int, dropout: float, use_bias: bool = False
    ) -> None: ...
    @overload
    def __init__(
        self,
        key_size: int,
        query_size: int,
        value_size: int,
        num_hiddens: int,
        num_heads: int,
        dropout: float,
        use_bias: bool = False,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(
        self,
        *,
        num_hiddens: int,
        num_heads: int,
        dropout: float,
        use_bias: bool,
        key_size: int | None = None,
        query_size: int | None = None,
        value_size: int | None = None,
    ) -> None:
        """Create the layer; ``dropout`` is the share of weights dropped in training, from 0 to 1.

        Raises ValueError if num_hiddens is not a multiple of num_heads, and ValueError or TypeError
        for arguments of the wrong type or range.
        """
        checks.check_heads(num_hiddens, num_heads)
        super().__init__()
        self.num_hiddens, self.num_heads = num_hiddens, num_heads
        self.attention = DotProductAttention(dropout)
        self.W_q = dense(query_size, num_hiddens, use_bias)
        self.W_k = dense(key_size, num_hiddens, use_bias)
        self.W_v = dense(value_size, num_hiddens, use_bias)
        # As in D2L, the short signature leaves this size, too, to the first call.
        self.W_o = dense(query_size and num_hiddens, num_hiddens, use_bias)

    def __call__(
        self,
        queries: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        valid_lens: np.ndarray | None = None,
        *,
        causal: bool = False,
        score_bias: np.ndarray | None = None,
        window: int | None = None,
    ) -> np.ndarray:
        masks = _masks_in_use(causal, score_bias, window)
        return super().__call__(queries, keys, values, valid_lens, *masks)

    def forward(
        self,
        queries: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        valid_lens: np.ndarray | None = None,
        causal: bool = False,
        score_bias: np.ndarray | None = None,
        window: int | None = None,
    ) -> np.ndarray:
        """Return the attention pooling of ``values`` by all heads, projected by ``W_o``.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, value_size); ``valid_lens`` as in :func:`masked_softmax`, ``causal``, ``window`` and
        ``score_bias`` as in :class:`DotProductAttention`, but ``score_bias`` of shape (queries, keys), (heads,
        queries, keys) or (batch, heads, queries, keys). Returns (batch, queries, num_hiddens).
        Raises ValueError or TypeError for input that does not fit.
        """
        arrays.check_attention(queries, keys, values)
        arrays.check_projection("queries", queries, self.W_q)
        arrays.check_projection("keys", keys, self.W_k)
        arrays.check_projection("values", values, self.W_v)
        # Check masks before they are repeated for the heads, so that messages show the given shapes,
        # and before the projections, so that these do not take their sizes from invalid input.
        arrays.check_valid_lens(valid_lens, queries, keys)
        window = arrays.check_causal(causal, queries, keys, window)
        arrays.check_score_bias(score_bias, queries, keys, self.num_heads)
        batch = len(queries)
        if valid_lens is not None:
            lens = np.expand_dims(valid_lens, 1)
            valid_lens = self._repeat_per_head(lens, batch, lens.shape[2:])
        masks: dict[str, Any] = {"causal": True} if causal else {}
        if score_bias is not None:
            if score_bias.ndim > 2:
                score_bias = self._repeat_per_head(score_bias, batch, score_bias.shape[-2:])
            masks["score_bias"] = score_bias
        if window is not None:
            masks["window"] = window
        self._last = None  # forget weights that were assigned
        pooled = self.attention(
            self.transpose_qkv(self.W_q(queries)),
            self.transpose_qkv(self.W_k(keys)),
            self.transpose_qkv(self.W_v(values)),
            valid_lens,
            **masks,  # only those in use: a custom attention layer may support none
        )
        return self.W_o(self.transpose_output(pooled))

    @assignable
    def attention_weights(self) -> np.ndarray:
        """Weights of the last call, before dropout, shape (batch, heads, queries, keys).

        Raises AttributeError before the first call.
        """
        weights = self.attention.attention_weights
        batch = weights.shape[0] // self.num_heads
        return weights.reshape(batch, self.num_heads, *weights.shape[1:])

    def _repeat_per_head(self, x: np.ndarray, batch: int, shape: tuple[int, ...]) -> np.ndarray:
        """Broadcast ``x`` to (batch, heads, *shape), and reshape it to (batch * heads, *shape)."""
        # `repeat` would fail for an empty array, and only in a later operation.
        repeated = np.broadcast_to(x, (batch, self.num_heads, *shape))
        return repeated.reshape(batch * self.num_heads, *shape)

    def transpose_qkv(self, X: np.ndarray) -> np.ndarray:
        """Reshape (batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads)."""
        return transpose_qkv(X, self.num_heads)

    def transpose_output(self, X: np.ndarray) -> np.ndarray:
        """Reshape (batch * heads, steps, num_hiddens / heads) back to (batch, steps, num_hiddens)."""
        return transpose_output(X, self.num_heads)


def transpose_qkv(X: np.ndarray, num_heads: int) -> np.ndarray:
    """Reshape (batch, steps, num_hiddens) to (batch * num_heads, steps, num_hiddens / num_heads).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide num_hiddens.
    """
    num_heads = arrays.check_head_split(X, num_heads)
    batch, steps, num_hiddens = X.shape
    size = num_hiddens // num_heads
    X = X.reshape(batch, steps, num_heads, size).swapaxes(1, 2)
    return X.reshape(batch * num_heads, steps, size)


def transpose_output(X: np.ndarray, num_heads: int) -> np.ndarray:
    """Reshape (batch * num_heads, steps, num_hiddens / num_heads) back to (batch, steps, num_hiddens).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide the batch.
    """
    num_heads = arrays.check_head_merge(X, num_heads)
    products, steps, size = X.shape
    batch = products // num_heads
    X = X.reshape(batch, num_heads, steps, size).swapaxes(1, 2)
    return X.reshape(batch, steps, num_heads * size)


class PositionalEncoding(nn.Block):
    """The sinusoidal positional encoding of Vaswani et al. (2017), section 3.5, added to the input.

    ``P``, shape (1, max_len, num_hiddens): at position i, column 2j is sin(i / 10000^(2j/d))
    and column 2j + 1 the cosine of the same angle, in radians; an odd d = ``num_hiddens`` has
    one cosine fewer. It has the layer's dtype; a call copies it to the input's device. It is not a
    Parameter: neither trained nor saved, so weights load into a layer with another ``max_len``.
    """

    def __init__(self, num_hiddens: int, dropout: float, max_len: int = 1000) -> None:
        """Create the table for ``max_len`` positions, from 0 to max_len - 1.

        Raises ValueError or TypeError for sizes below 1 or a dropout that is not from 0 to 1.
        """
        super().__init__()
        sizes = checks.encoding_sizes(num_hiddens, dropout, max_len)
        self.num_hiddens, self.max_len = sizes
        self.dropout = Dropout(dropout)
        self.cast("float32")

    def cast(self, dtype: Any) -> None:
        """Change the dtype. ``P`` is computed again, since casting would keep the old rounding."""
        super().cast(dtype)
        table = encoding.sinusoids(self.max_len, self.num_hiddens)
        self.P = np.array(table[None], dtype=dtype)

    def __call__(self, X: np.ndarray, offset: int = 0) -> np.ndarray:
        return super().__call__(X, offset)

    def forward(self, X: np.ndarray, offset: int = 0) -> np.ndarray:
        """Return ``X`` plus the encoding of the positions offset, offset + 1, and so on.

        ``X`` is floating point, shape (batch, steps, num_hiddens); the result has its shape and
        dtype. ``offset`` lets a decoder that goes token by token continue where it stopped.
        Raises ValueError or TypeError if ``X`` does not fit, or ``offset`` is not an integer
        of at least 0 or goes past ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        P = self.P[:, offset : offset + X.shape[1]]
        return self.dropout(X + P.as_in_ctx(X.ctx).astype(X.dtype, copy=False))


def _masks_in_use(
    causal: bool, score_bias: np.ndarray | None, window: int | None
) -> tuple[Any, ...]:
    """Return the masks as positional arguments, without the last ones if these are not in use."""
    if window is not None:
        return causal, score_bias, window
    return () if causal is False and score_bias is None else (causal, score_bias)


def attend_in_blocks(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    blocks: Blocks,
    valid_lens: NDArray[Any] | None = None,
    score_bias: np.ndarray | None = None,
    *,
    dropout: Dropout,
) -> np.ndarray:
    """Compute attention within a window; shapes as in :class:`DotProductAttention`."""
    bias = block_bias(queries, blocks, valid_lens, score_bias)
    weights = compute_weights(
        split_queries(queries, blocks), split_keys(keys, blocks), score_bias=bias
    )
    return join_queries(npx.batch_dot(dropout(weights), split_keys(values, blocks)), blocks)


def compute_weights(
    queries: np.ndarray,
    keys: np.ndarray,
    lens: NDArray[Any] | None = None,
    causal: bool = False,
    score_bias: np.ndarray | None = None,
    window: int | None = None,
) -> np.ndarray:
    """Return the weights of all keys, shape (batch, queries, keys); a window comes with ``causal``."""
    scaled = queries / math.sqrt(queries.shape[-1])  # cheaper than scaling the scores
    scores = npx.batch_dot(scaled, keys, transpose_b=True)
    score_bias = hide_outside(score_bias, queries, keys, window)
    return _softmax(scores, _combine_lens(lens, scores) if causal else lens, score_bias)


def _combine_lens(lens: NDArray[Any] | None, scores: np.ndarray) -> NDArray[Any] | np.ndarray:
    """Combine ``lens`` and a causal mask into a length for each query."""
    batch, num_queries, num_keys = scores.shape
    first, end = num_keys - num_queries + 1, num_keys + 1
    if lens is None:  # created on the device, since copying from the host would synchronize
        causal_lens = np.arange(first, end, dtype="int32", ctx=scores.ctx)
        return np.broadcast_to(causal_lens, (batch, num_queries))
    return onp.minimum(lens if lens.ndim == 2 else lens[:, None], onp.arange(first, end))


def _softmax(
    X: np.ndarray,
    lens: NDArray[Any] | np.ndarray | None,
    score_bias: np.ndarray | None = None,
) -> np.ndarray:
    """Return the softmax of scores plus bias over the visible keys of each row; exactly 0 elsewhere."""
    if lens is None and score_bias is None:
        return npx.softmax(X, axis=-1)
    if not X.size:  # MXNet's softmax would crash the process
        return X
    batch, _, num_keys = X.shape
    if lens is None:
        lens = onp.full(batch, num_keys)
    # One length per row, in an integer dtype that MXNet's softmax supports.
    if isinstance(lens, np.ndarray):
        length = lens
    else:
        per_query = onp.broadcast_to(lens if lens.ndim == 2 else lens[:, None], X.shape[:2])
        length = np.array(onp.minimum(per_query, num_keys), dtype="int32", ctx=X.ctx)
    if score_bias is not None:
        X = X + score_bias
        # MXNet's softmax returns NaN for a row of minus infinities, but zeros for a length of 0.
        is_valid = np.arange(num_keys, dtype="int32", ctx=X.ctx) < np.expand_dims(length, -1)
        is_visible = is_valid * (score_bias.detach() != -math.inf)
        length = length * is_visible.any(axis=-1)
    return npx.softmax(X, length=length, use_length=True, axis=-1)


def dense(inputs: int | None, outputs: int, bias: bool = True) -> nn.Dense:
    """Return a linear layer for the last axis; if ``inputs`` is None, its first call sets the size."""
    return nn.Dense(outputs, use_bias=bias, flatten=False, in_units=inputs or 0)
