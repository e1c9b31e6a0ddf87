"""Scaled dot-product and multi-head attention, and the sinusoidal positional encoding.

The formulas are those of Vaswani et al. (2017), "Attention Is All You Need". One rule of
masking applies everywhere: a key past its ``valid_lens`` gets a weight of exactly zero. A query
with no valid key at all (a length of 0) therefore has only zero weights, its attention
pooling is the zero vector, and the gradients through it are zero; there is no NaN. The values
in the padding must still be finite, since zero times NaN is NaN. Keys that a causal mask
hides, and keys whose ``score_bias`` is minus infinity, are treated like padding.

Lengths are checked by value, so a call with ``valid_lens`` on a GPU waits for them. In a program
traced by ``paddle.jit.to_static`` there are no values yet, and the check is skipped.
"""

from typing import Any, cast

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import Tensor, nn
from paddle.nn import functional as F

from d2l_compat._shared import checks, encoding, layers
from d2l_compat._shared.weights import AssignableWeights, assignable, select_assigned
from d2l_compat._shared.windows import Blocks
from d2l_compat.paddle import _blockwise
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle._position_table import PositionTable
from d2l_compat.paddle.windows import (
    choose_blocks,
    hide_outside,
    join_queries,
    split_bias,
    split_keys,
    split_mask,
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


def masked_softmax(X: Tensor, valid_lens: Tensor | None = None) -> Tensor:
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
    Tensor
        Weights of X's shape and dtype, exactly 0 past the valid length. Each row sums to 1, or to 0 if
        its length is 0.

    Raises
    ------
    ValueError, TypeError
        For a wrong rank, shape, dtype or range.

    """
    arrays.check_scores(X, valid_lens)
    return _blockwise.softmax(X, _blockwise.valid_keys(valid_lens, X.shape[2]))


class DotProductAttention(AssignableWeights, nn.Layer):
    """Scaled dot-product attention: softmax(Q K^T / sqrt(d)) V.

    It has no second derivatives, since Paddle's softmax has none.
    """

    def __init__(self, dropout: float) -> None:
        """Create the layer; ``dropout`` is the share of weights dropped in training, from 0 to 1.

        Raises ValueError or TypeError for any other value.
        """
        checks.check_dropout(dropout)
        super().__init__()
        self.dropout = nn.Dropout(float(dropout))
        # The weights, or for long inputs the tensors from which they are computed on access. In a
        # tuple, since a layer registers a tensor attribute as a buffer.
        self._last: tuple[Any, ...] = ()

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        causal: bool = False,  # not keyword-only: a traced program gets no keyword-only tensors
        score_bias: Tensor | None = None,
        window: int | None = None,
    ) -> Tensor:
        """Return the attention pooling of ``values``.

        Shapes: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v),
        all of one floating-point dtype; ``valid_lens`` as in :func:`masked_softmax`. With
        ``causal`` the last query sees every key, the one before it all but the last, and so on.
        ``score_bias``, shape (queries, keys) or (batch, queries, keys), of the same dtype, is added to
        the scores; a key whose bias is minus infinity is hidden. With a ``window``, a query sees only as many
        keys, those that end with its own: the mask is causal, and the cost grows with queries * window. The
        masks may be combined: a query sees the keys that none of them hides. Returns (batch, queries, v).
        Raises ValueError or TypeError for input that does not fit.
        """
        arrays.check_dot_product(queries, keys, values)
        arrays.check_valid_lens(valid_lens, queries, keys)
        window = arrays.check_causal(causal, queries, keys, window)
        arrays.check_score_bias(score_bias, queries, keys)
        lens = _combine_lens(valid_lens, causal or window is not None, queries, keys)
        dropout = self.dropout.p if self.training else 0.0
        blocks = choose_blocks(queries, keys, window)
        is_eager = paddle.in_dynamic_mode()  # a traced program has no weights to show
        has_only_lens = score_bias is None and (window is None or window >= keys.shape[1])
        is_long = queries.shape[1] >= _blockwise.MIN_QUERIES
        if blocks is not None:
            pooled = attend_in_blocks(
                queries, keys, values, blocks, valid_lens, score_bias, dropout=dropout
            )
            if is_eager:
                self._last = queries, keys, lens, score_bias, window
        elif is_eager and is_long and has_only_lens and not dropout:
            pooled = _blockwise.attend(queries, keys, values, lens)
            self._last = queries, keys, lens
        else:
            weights = _weights(queries, keys, lens, score_bias, window)
            pooled = paddle.bmm(self.dropout(weights), values)
            if is_eager:
                self._last = (weights,)
        return zero_without_keys(pooled, keys)

    @assignable
    def attention_weights(self) -> Tensor:
        """Weights of the last eager call, before dropout, shape (batch, queries, keys).

        Running a traced program does not change them. Raises AttributeError before the first call.
        """
        if not self._last:
            raise AttributeError(checks.NOT_CALLED)
        return self._last[0] if len(self._last) == 1 else _weights(*self._last)

    def __getstate__(self) -> dict[str, Any]:
        # A copied or saved layer has not been called yet.
        return {**super().__getstate__(), "_last": select_assigned(self._last)}


def _combine_lens(
    valid_lens: Tensor | None, causal: bool, queries: Tensor, keys: Tensor
) -> Tensor | None:
    """Combine ``valid_lens`` and a causal mask into lengths as in :func:`masked_softmax`.

    Lengths that are the same for all examples have the shape (1, queries).
    """
    if not causal:
        return valid_lens
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    causal_lens = paddle.arange(1, num_queries + 1, dtype="int64") + (num_keys - num_queries)
    if valid_lens is None:
        return causal_lens.unsqueeze(0)
    lens = valid_lens.astype("int64")
    return paddle.minimum(lens if lens.ndim == 2 else lens.unsqueeze(1), causal_lens)


def _weights(
    queries: Tensor,
    keys: Tensor,
    lens: Tensor | None,
    score_bias: Tensor | None = None,
    window: int | None = None,
) -> Tensor:
    is_visible = _blockwise.valid_keys(lens, keys.shape[1])
    is_visible = hide_outside(is_visible, queries, keys, window)
    return _blockwise.compute_weights(queries, keys, is_visible, score_bias)


def attend_causally(
    queries: Tensor, keys: Tensor, values: Tensor, *, dropout: float = 0.0
) -> Tensor:
    """Compute attention with a causal mask; shapes as in :class:`DotProductAttention`."""
    lens = _combine_lens(None, True, queries, keys)
    if queries.shape[1] >= _blockwise.MIN_QUERIES and not dropout:
        return _blockwise.attend(queries, keys, values, lens)
    return paddle.bmm(F.dropout(_weights(queries, keys, lens), dropout), values)


def attend_in_blocks(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    blocks: Blocks,
    valid_lens: Tensor | None = None,
    score_bias: Tensor | None = None,
    *,
    dropout: float = 0.0,
) -> Tensor:
    """Compute attention within a window; shapes as in :class:`DotProductAttention`."""
    bias = None if score_bias is None else split_bias(score_bias, blocks)
    weights = _blockwise.compute_weights(
        split_queries(queries, blocks),
        split_keys(keys, blocks),
        split_mask(valid_lens, blocks),
        bias,
    )
    pooled = paddle.matmul(F.dropout(weights, dropout), split_keys(values, blocks))
    return join_queries(pooled, blocks)


class MultiHeadAttention(AssignableWeights, layers.MultiHeadAttention, nn.Layer):
    """Multi-head attention, Vaswani et al. (2017), section 3.2.2, with both of D2L's signatures.

    ``MultiHeadAttention(num_hiddens, num_heads, dropout, bias=False)`` takes the sizes of queries,
    keys and values from its first input; ``MultiHeadAttention(key_size, query_size, value_size,
    num_hiddens, num_heads, dropout, bias=False)`` specifies them. ``num_hiddens`` is divided among
    the heads: each works in num_hiddens / num_heads dimensions, its slice of the projections
    ``W_q``, ``W_k``, ``W_v``; ``W_o`` mixes the heads' results.

    With the short signature, an optimizer may be given the parameters before the first call. Load
    weights, or trace the layer, only after that call.

    It has no second derivatives, since Paddle's softmax and flatten have none.
    """

    def _make_layers(
        self,
        num_hiddens: int,
        *,
        dropout: float,
        bias: bool,
        key_size: int | None = None,
        query_size: int | None = None,
        value_size: int | None = None,
    ) -> None:
        self.attention = DotProductAttention(dropout)
        self.W_q = linear(query_size, num_hiddens, bias)
        self.W_k = linear(key_size, num_hiddens, bias)
        self.W_v = linear(value_size, num_hiddens, bias)
        self.W_o = linear(num_hiddens, num_hiddens, bias)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        causal: bool = False,
        score_bias: Tensor | None = None,
        window: int | None = None,
    ) -> Tensor:
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
        # and before projections could take their sizes from invalid input.
        arrays.check_valid_lens(valid_lens, queries, keys)
        window = arrays.check_causal(causal, queries, keys, window)
        arrays.check_score_bias(score_bias, queries, keys, self.num_heads)
        if valid_lens is not None:
            valid_lens = valid_lens.astype("int64").repeat_interleave(self.num_heads, axis=0)
        projected = self.W_q(queries)
        masks: dict[str, Any] = {"causal": True} if causal else {}
        if window is not None:
            masks["window"] = window
        if score_bias is not None:
            # Autocast may give the scores another dtype.
            bias_per_head = self._bias_per_head(score_bias, queries.shape[0])
            masks["score_bias"] = bias_per_head.astype(projected.dtype)
        self._last = None  # forget weights that were assigned
        pooled = self.attention(
            self.transpose_qkv(projected),
            self.transpose_qkv(self.W_k(keys)),
            self.transpose_qkv(self.W_v(values)),
            valid_lens,
            **masks,  # only those in use: a custom attention layer may support none
        )
        return self.W_o(self.transpose_output(pooled))

    @assignable
    def attention_weights(self) -> Tensor:
        """Weights of the last eager call, before dropout, shape (batch, heads, queries, keys).

        Running a traced program does not change them. Raises AttributeError before the first call.
        """
        weights = self.attention.attention_weights
        return weights.unflatten(0, [weights.shape[0] // self.num_heads, self.num_heads])

    def _bias_per_head(self, score_bias: Tensor, batch: int) -> Tensor:
        """Reshape the bias to (queries, keys) or (batch * heads, queries, keys)."""
        if score_bias.ndim == 2:
            return score_bias
        return score_bias.expand([batch, self.num_heads, -1, -1]).flatten(0, 1)

    def transpose_qkv(self, X: Tensor) -> Tensor:
        """Reshape (batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads)."""
        return _split_heads(X, self.num_heads)

    def transpose_output(self, X: Tensor) -> Tensor:
        """Reshape (batch * heads, steps, num_hiddens / heads) back to (batch, steps, num_hiddens)."""
        return _merge_heads(X, self.num_heads)


def transpose_qkv(X: Tensor, num_heads: int) -> Tensor:
    """Reshape (batch, steps, num_hiddens) to (batch * num_heads, steps, num_hiddens / num_heads).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide num_hiddens.
    """
    return _split_heads(X, num_heads)


def transpose_output(X: Tensor, num_heads: int) -> Tensor:
    """Reshape (batch * num_heads, steps, num_hiddens / num_heads) back to (batch, steps, num_hiddens).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide the batch.
    """
    return _merge_heads(X, num_heads)


# The methods call these: in a traced method, Paddle takes a function of the same name for the method.
# Einsum copies several times faster than Paddle copies a transposed view.


def _split_heads(X: Tensor, num_heads: int) -> Tensor:
    num_heads = arrays.check_head_split(X, num_heads)
    size = X.shape[2] // num_heads
    by_head = X.reshape([X.shape[0], X.shape[1], num_heads, size])
    return cast("Tensor", paddle.einsum("bshd->bhsd", by_head)).flatten(0, 1)


def _merge_heads(X: Tensor, num_heads: int) -> Tensor:
    num_heads = arrays.check_head_merge(X, num_heads)
    batch = X.shape[0] // num_heads
    by_head = X.reshape([batch, num_heads, X.shape[1], X.shape[2]])
    return cast("Tensor", paddle.einsum("bhsd->bshd", by_head)).flatten(2)


class PositionalEncoding(PositionTable):
    """The sinusoidal positional encoding of Vaswani et al. (2017), section 3.5, added to the input.

    ``P``, shape (1, max_len, num_hiddens): at position i, column 2j is sin(i / 10000^(2j/d))
    and column 2j + 1 the cosine of the same angle, in radians; an odd d = ``num_hiddens`` has
    one cosine fewer. It follows the layer's device and dtype, is not trained, and is not part
    of ``state_dict``, so that weights load into a layer with another ``max_len``.
    """

    def __init__(self, num_hiddens: int, dropout: float, max_len: int = 1000) -> None:
        """Create the table for ``max_len`` positions, from 0 to max_len - 1.

        Raises ValueError or TypeError for sizes below 1 or a dropout that is not from 0 to 1.
        """
        super().__init__()
        sizes = checks.encoding_sizes(num_hiddens, dropout, max_len)
        self.num_hiddens, self.max_len = sizes
        self.dropout = nn.Dropout(float(dropout))
        self.create_table()

    def forward(self, X: Tensor, offset: int = 0) -> Tensor:
        """Return ``X`` plus the encoding of the positions offset, offset + 1, and so on.

        ``X`` is floating point, shape (batch, steps, num_hiddens); the result has its shape and
        dtype. ``offset`` lets a decoder that goes token by token continue where it stopped.
        Raises ValueError or TypeError if ``X`` does not fit, or ``offset`` is not an integer
        of at least 0 or goes past ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        return self.dropout(X + self.P[:, offset : offset + X.shape[1]].astype(X.dtype))

    def exact_table(self) -> NDArray[np.float64]:
        return encoding.sinusoids(self.max_len, self.num_hiddens)[None]


def zero_without_keys(pooled: Tensor, keys: Tensor) -> Tensor:
    """Return ``pooled``, or zeros if there are no keys: Paddle's empty sum is uninitialized memory."""
    if paddle.in_dynamic_mode() and not keys.shape[1]:
        pooled = paddle.zeros_like(pooled)
    return pooled


def linear(inputs: int | None, outputs: int, bias: bool = True) -> nn.Linear:
    """Return a linear layer; if ``inputs`` is None, its first call sets the size."""
    if inputs is None:
        return _LazyLinear(outputs, bias)
    return nn.Linear(inputs, outputs, bias_attr=bias)


class _LazyLinear(nn.Linear):
    """A linear layer that takes its input size from its first input.

    Until then its weight has no rows. The weight is filled in place, so that an optimizer that
    already has it will train it.
    """

    def __init__(self, out_features: int, bias: bool) -> None:
        super().__init__(0, out_features, bias_attr=bias)

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = self.weight.shape
        if not rows:
            if not paddle.in_dynamic_mode():
                need = "call the layer once before it is traced"
                raise RuntimeError(f"sizes: there are none yet; {need}")
            initial = self.create_parameter([x.shape[-1], columns], dtype=self.weight.dtype)
            self.weight.data = initial.to(self.weight.place)
        return super().forward(x)


arrays.layer_types += (_LazyLinear,)
