"""Scaled dot-product and multi-head attention, and the sinusoidal positional encoding.

The formulas are those of Vaswani et al. (2017), "Attention Is All You Need". One rule of
masking applies everywhere: a key past its ``valid_lens`` gets a weight of exactly zero. A query
with no valid key at all (a length of 0) therefore has only zero weights, its attention
pooling is the zero vector, and the gradients through it are zero; there is no NaN. The values
in the padding must still be finite, since zero times NaN is NaN. Keys that a causal mask
hides, and keys whose ``score_bias`` is minus infinity, are treated like padding.

As everywhere in MLX, a call computes nothing yet: its result is computed when it is read. Only
lengths and offsets are computed at once, to check their values; in ``mx.compile`` and ``mx.vmap``
they have no values, and only their shapes and dtypes are checked.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from numpy.typing import NDArray

from d2l_compat._shared import checks, encoding, layers
from d2l_compat._shared.weights import AssignableWeights, assignable, select_assigned
from d2l_compat._shared.windows import Blocks, choose_blocks
from d2l_compat.mlx import _blockwise
from d2l_compat.mlx._arrays import arrays
from d2l_compat.mlx._dropout import Dropout
from d2l_compat.mlx._lazy import linear
from d2l_compat.mlx.windows import (
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


def masked_softmax(X: mx.array, valid_lens: mx.array | None = None) -> mx.array:
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
    mx.array
        Weights of X's shape and dtype. Past the valid length they are exactly 0; each row sums to 1, or
        to 0 if its length is 0.

    Raises
    ------
    ValueError, TypeError
        For a wrong rank, shape, dtype or range.

    """
    arrays.check_scores(X, valid_lens)
    return _masked_softmax(X, valid_lens)


@dataclass(frozen=True)
class _Call:
    """The arguments of a call. MLX would treat a tuple as part of the layer's state."""

    queries: mx.array
    keys: mx.array
    lens: mx.array | None
    score_bias: mx.array | None
    window: int | None


class DotProductAttention(AssignableWeights, nn.Module):
    """Scaled dot-product attention: softmax(Q K^T / sqrt(d)) V.

    On a GPU it uses ``mx.fast.scaled_dot_product_attention``, a fused kernel. On a CPU, where that
    function computes the whole matrix of weights, long input is processed by blocks of queries. In
    training with dropout, and with a ``score_bias``, the whole matrix is computed.
    With a ``window``, long input is always processed by blocks, of keys as well.
    ``attention_weights`` computes the matrix when read, from the last call's queries and keys.
    """

    def __init__(self, dropout: float) -> None:
        """Create the layer; ``dropout``, from 0 to 1, is the share of weights dropped in training.

        Raises ValueError or TypeError for any other value.
        """
        checks.check_dropout(dropout)
        super().__init__()
        self.dropout = Dropout(dropout)
        self._last: _Call | None = None

    def __call__(
        self,
        queries: mx.array,
        keys: mx.array,
        values: mx.array,
        valid_lens: mx.array | None = None,
        *,
        causal: bool = False,
        score_bias: mx.array | None = None,
        window: int | None = None,
    ) -> mx.array:
        """Return the attention pooling of ``values``.

        Shapes: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v),
        all of one floating-point dtype; ``valid_lens`` as in :func:`masked_softmax`. With
        ``causal`` the last query sees every key, the one before it all but the last, and so on.
        ``score_bias``, shape (queries, keys) or (batch, queries, keys), of the same dtype, is added
        to the scores; a key whose bias is minus infinity is hidden. With a ``window``, a query sees
        only as many keys, those that end with its own: the mask is causal, and the cost grows with
        queries * window. The masks may be combined: a query sees the keys that none of them hides.
        Returns (batch, queries, v). Raises ValueError or TypeError for input that does not fit.
        """
        arrays.check_dot_product(queries, keys, values)
        arrays.check_valid_lens(valid_lens, queries, keys)
        window = arrays.check_causal(causal, queries, keys, window)
        causal = causal or window is not None
        arrays.check_score_bias(score_bias, queries, keys)
        lens = _combine_lens(valid_lens, causal, queries, keys)
        self._last = _Call(queries, keys, lens, score_bias, window)
        num_queries, num_keys = queries.shape[1], keys.shape[1]
        if blocks := choose_blocks(num_queries, num_keys, window):
            return attend_in_blocks(
                queries, keys, values, blocks, valid_lens, score_bias, dropout=self.dropout
            )
        has_bias = score_bias is not None or (window is not None and window < num_keys)
        if has_bias or (self.training and self.dropout.p):
            return self.dropout(self.attention_weights) @ values
        return _pool(queries, keys, values, lens)

    @assignable
    def attention_weights(self) -> mx.array:
        """Weights of the last call, before dropout, shape (batch, queries, keys).

        They are computed from the arguments of that call, which must not have been changed in
        place since. After a call inside ``mx.compile`` or ``mx.vmap`` they cannot be read. Raises
        AttributeError before the first call.
        """
        if self._last is None:
            raise AttributeError(checks.NOT_CALLED)
        queries, keys = self._last.queries, self._last.keys
        score_bias = hide_outside(self._last.score_bias, queries, keys, self._last.window)
        return _weights(queries, keys, self._last.lens, score_bias)

    def __getstate__(self) -> dict[str, Any]:
        # A copied or loaded layer has not been called yet.
        return {**self.__dict__, "_last": select_assigned(self._last)}


class MultiHeadAttention(AssignableWeights, layers.MultiHeadAttention, nn.Module):
    """Multi-head attention, Vaswani et al. (2017), section 3.2.2, with both of D2L's signatures.

    ``MultiHeadAttention(num_hiddens, num_heads, dropout, bias=False)`` infers the sizes of
    queries, keys and values from its first input, before which it has no parameters: call it once
    before you train, compile or load it. ``MultiHeadAttention(key_size, query_size, value_size,
    num_hiddens, num_heads, dropout, bias=False)`` fixes them. ``num_hiddens`` is divided among the
    heads: each works in num_hiddens / num_heads dimensions, its slice of the projections ``W_q``,
    ``W_k``, ``W_v``; ``W_o`` mixes the heads' results. MLX initializes parameters in float32; the
    output has the wider dtype of the parameters and the input.
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

    def __call__(
        self,
        queries: mx.array,
        keys: mx.array,
        values: mx.array,
        valid_lens: mx.array | None = None,
        *,
        causal: bool = False,
        score_bias: mx.array | None = None,
        window: int | None = None,
    ) -> mx.array:
        """Return the attention pooling of ``values`` by all heads, projected by ``W_o``.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, value_size); ``valid_lens`` as in :func:`masked_softmax`, ``causal``, ``window`` and
        ``score_bias`` as in :class:`DotProductAttention`, but ``score_bias`` of shape (queries, keys), (heads,
        queries, keys) or (batch, heads, queries, keys). Returns (batch, queries, num_hiddens).
        Raises ValueError or TypeError for input that does not fit.
        """
        arrays.check_attention(queries, keys, values)
        has_sizes = [
            arrays.check_projection("queries", queries, self.W_q),
            arrays.check_projection("keys", keys, self.W_k),
            arrays.check_projection("values", values, self.W_v),
        ]
        # Lengths are checked before they are repeated for the heads, so that messages show the caller's
        # shapes. Their range is checked before the projections infer sizes, if they do.
        arrays.check_valid_lens(valid_lens, queries, keys, in_range=not all(has_sizes))
        window = arrays.check_causal(causal, queries, keys, window)
        arrays.check_score_bias(score_bias, queries, keys, self.num_heads)
        if valid_lens is not None:
            valid_lens = mx.repeat(valid_lens, self.num_heads, axis=0)
        projected = self.W_q(queries)
        masks: dict[str, Any] = {"causal": True} if causal else {}
        if window is not None:
            masks["window"] = window
        if score_bias is not None:  # in the projections' dtype, which may be wider
            bias_per_head = self._bias_per_head(score_bias, len(queries))
            masks["score_bias"] = bias_per_head.astype(projected.dtype)
        self._last = None  # forget weights that were assigned
        pooled = self.attention(
            self.transpose_qkv(projected),
            self.transpose_qkv(self.W_k(keys)),
            self.transpose_qkv(self.W_v(values)),
            valid_lens,
            **masks,  # only those in use: a custom attention layer may accept none
        )
        return self.W_o(self.transpose_output(pooled))

    @assignable
    def attention_weights(self) -> mx.array:
        """Weights of the last call, before dropout, shape (batch, heads, queries, keys).

        Raises AttributeError before the first call.
        """
        weights = self.attention.attention_weights
        batch = weights.shape[0] // self.num_heads
        return mx.unflatten(weights, 0, (batch, self.num_heads))

    def _bias_per_head(self, score_bias: mx.array, batch: int) -> mx.array:
        """Reshape the bias to (queries, keys) or (batch * heads, queries, keys)."""
        if score_bias.ndim == 2:
            return score_bias
        shape = batch, self.num_heads, *score_bias.shape[-2:]
        return mx.broadcast_to(score_bias, shape).flatten(0, 1)

    def transpose_qkv(self, X: mx.array) -> mx.array:
        """Reshape (batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads)."""
        return transpose_qkv(X, self.num_heads)

    def transpose_output(self, X: mx.array) -> mx.array:
        """Reverse :meth:`transpose_qkv`, to (batch, steps, num_hiddens)."""
        return transpose_output(X, self.num_heads)


def transpose_qkv(X: mx.array, num_heads: int) -> mx.array:
    """Reshape (batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads).

    Raises ValueError or TypeError for a wrong rank, or if num_hiddens is not a multiple of heads.
    """
    num_heads = arrays.check_head_split(X, num_heads)
    head_size = X.shape[2] // num_heads
    return mx.unflatten(X, 2, (num_heads, head_size)).swapaxes(1, 2).flatten(0, 1)


def transpose_output(X: mx.array, num_heads: int) -> mx.array:
    """Reverse :func:`transpose_qkv`, to (batch, steps, num_hiddens).

    Raises ValueError or TypeError for a wrong rank, or if the batch is not a multiple of heads.
    """
    num_heads = arrays.check_head_merge(X, num_heads)
    batch = X.shape[0] // num_heads
    return mx.unflatten(X, 0, (batch, num_heads)).swapaxes(1, 2).flatten(2)


class PositionalEncoding(nn.Module):
    """The sinusoidal positional encoding of Vaswani et al. (2017), section 3.5.

    The layer has no parameters: ``P`` is a constant, neither trained nor saved, so that weights load
    into a model with another ``max_len``.
    """

    def __init__(self, num_hiddens: int, dropout: float, max_len: int = 1000) -> None:
        """Create the layer, with the positions 0 to ``max_len`` - 1.

        Raises ValueError or TypeError for sizes below 1 or a dropout that is not from 0 to 1.
        """
        super().__init__()
        sizes = checks.encoding_sizes(num_hiddens, dropout, max_len)
        self.num_hiddens, self.max_len = sizes
        self.dtype = "float32"  # by name: an mx.Dtype could not be copied with the layer
        self.dropout = Dropout(dropout)

    @property
    def P(self) -> mx.array:
        """The encoding, shape (1, max_len, num_hiddens), float32 or the dtype that was set.

        At position i, column 2j is sin(i / 10000^(2j/d)) and column 2j + 1 the cosine of the
        same angle, in radians; an odd d = ``num_hiddens`` has one cosine fewer.
        """
        return _table(self.max_len, self.num_hiddens, getattr(mx, self.dtype))

    def __call__(self, X: mx.array, offset: int = 0) -> mx.array:
        """Add the encoding of the positions offset, offset + 1, ... to ``X``.

        ``X`` is floating point, shape (batch, steps, num_hiddens); the result has its shape and
        dtype. With ``offset``, a decoder that generates token by token continues at its position.
        Raises ValueError or TypeError if ``X`` does not fit, if ``offset`` is not an integer of at
        least 0, or if a position reaches ``max_len``.
        """
        arrays.check_encoding(X, self.num_hiddens)
        arrays.check_positions(offset, X, self.max_len)
        start = int(offset)
        P = _table(self.max_len, self.num_hiddens, X.dtype)
        return self.dropout(X + P[:, start : start + X.shape[1]])

    def set_dtype(
        self, dtype: mx.Dtype, predicate: Callable[[mx.Dtype], bool] | None = None
    ) -> None:
        """Set the dtype of ``P``, which is computed again: a cast would keep the old rounding."""
        self.dtype = str(dtype).removeprefix("mlx.core.")


@lru_cache(maxsize=8)
def _table(max_len: int, num_hiddens: int, dtype: mx.Dtype) -> mx.array:
    return round_to(dtype, encoding.sinusoids(max_len, num_hiddens)[None])


def round_to(dtype: mx.Dtype, table: NDArray[np.float64]) -> mx.array:
    """Convert a table to ``dtype`` with one rounding, on the CPU: GPUs have no float64."""
    result = mx.array(table, mx.float64).astype(dtype, stream=mx.cpu)
    mx.eval(result)  # so that the programs that use it do not compute it again
    return result


def attend_in_blocks(
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    blocks: Blocks,
    valid_lens: mx.array | None = None,
    score_bias: mx.array | None = None,
    *,
    dropout: Dropout,
) -> mx.array:
    """Compute attention within a window; shapes as in :class:`DotProductAttention`."""
    scaled = split_queries(queries / math.sqrt(queries.shape[-1]), blocks)
    scores = _blockwise.matmul_transposed(scaled, split_keys(keys, blocks))
    bias = None if score_bias is None else split_bias(score_bias, blocks)
    weights = dropout(_visible_softmax(scores, split_mask(valid_lens, blocks), bias))
    return join_queries(_blockwise.matmul(weights, split_keys(values, blocks)), blocks)


def attend_causally(
    queries: mx.array, keys: mx.array, values: mx.array, *, dropout: Dropout
) -> mx.array:
    """Compute attention with a causal mask; shapes as in :class:`DotProductAttention`."""
    lens = _combine_lens(None, True, queries, keys)
    if dropout.training and dropout.p:
        return dropout(_weights(queries, keys, lens)) @ values
    if mx.default_device().type == mx.cpu:
        return _pool(queries, keys, values, lens)
    return _attend_fused(queries, keys, values, "causal")


def _weights(
    queries: mx.array, keys: mx.array, lens: mx.array | None, score_bias: mx.array | None = None
) -> mx.array:
    """Compute the attention weights, shape (batch, queries, keys)."""
    scores = (queries / math.sqrt(queries.shape[-1])) @ keys.swapaxes(1, 2)
    return _masked_softmax(scores, lens, score_bias)


def _masked_softmax(
    scores: mx.array, lens: mx.array | None, score_bias: mx.array | None = None
) -> mx.array:
    """Compute :func:`masked_softmax` of scores plus a bias, without the checks."""
    is_valid = None
    if lens is not None:
        is_valid = _blockwise.make_lens_mask(_lens_per_query(lens), scores.shape[2])
    return _visible_softmax(scores, is_valid, score_bias)


def _visible_softmax(
    scores: mx.array, is_valid: mx.array | None, score_bias: mx.array | None
) -> mx.array:
    """Compute the softmax of scores plus a bias over the keys that are valid and that the bias does not hide."""
    if not scores.size:
        return scores
    if score_bias is not None:
        scores = scores + score_bias
        is_seen = score_bias != -math.inf
        # Not `&`: in `mx.vmap`, MLX computes that wrongly if only one of its operands is mapped.
        is_valid = is_seen if is_valid is None else mx.logical_and(is_valid, is_seen)
    if is_valid is None:
        return _blockwise.softmax(scores)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    finite = mx.where(is_valid, scores, mx.finfo(scores.dtype).min)
    return mx.where(is_valid, _blockwise.softmax(finite), 0)


def _lens_per_query(lens: mx.array) -> mx.array:
    """Reshape lengths to (batch, queries or 1), in a dtype that can be compared with any other."""
    lens = lens.astype(mx.int32)
    return lens if lens.ndim == 2 else lens[:, None]


def _combine_lens(
    valid_lens: mx.array | None, causal: bool, queries: mx.array, keys: mx.array
) -> mx.array | None:
    """Combine ``valid_lens`` and a causal mask into lengths as in :func:`masked_softmax`."""
    if not causal:
        return valid_lens
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    causal_lens = mx.arange(num_keys - num_queries + 1, num_keys + 1)
    if valid_lens is None:
        return mx.broadcast_to(causal_lens, queries.shape[:2])
    return mx.minimum(_lens_per_query(valid_lens), causal_lens)


def _pool(
    queries: mx.array, keys: mx.array, values: mx.array, valid_lens: mx.array | None
) -> mx.array:
    """Compute the attention pooling without returning the weights."""
    if not (queries.size and keys.size and values.size):
        return mx.zeros((*queries.shape[:2], values.shape[2]), values.dtype)
    if valid_lens is None:
        return _attend(queries, keys, values, None)
    lens = _lens_per_query(valid_lens)
    is_empty = lens == 0
    # A query without a valid key attends to every key; zero then replaces its result.
    pooled = _attend(queries, keys, values, mx.where(is_empty, keys.shape[1], lens))
    return mx.where(is_empty[..., None], 0, pooled)


def _attend(queries: mx.array, keys: mx.array, values: mx.array, lens: mx.array | None) -> mx.array:
    if mx.default_device().type == mx.cpu:
        return _blockwise.attend(queries, keys, values, lens)
    mask = None if lens is None else _blockwise.make_lens_mask(lens, keys.shape[1])[:, None]
    return _attend_fused(queries, keys, values, mask)


def _attend_fused(
    queries: mx.array, keys: mx.array, values: mx.array, mask: mx.array | str | None
) -> mx.array:
    # The kernel expects an axis of heads: one here.
    pooled = mx.fast.scaled_dot_product_attention(
        queries[:, None],
        keys[:, None],
        values[:, None],
        scale=1 / math.sqrt(queries.shape[-1]),
        mask=mask,
    )
    return pooled.squeeze(1)
