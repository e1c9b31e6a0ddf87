"""Scaled dot-product and multi-head attention, and the sinusoidal positional encoding.

The formulas are those of Vaswani et al. (2017), "Attention Is All You Need". One rule of
masking applies everywhere: a key past its ``valid_lens`` gets a weight of exactly zero. A query
with no valid key at all (a length of 0) therefore has only zero weights, its attention
pooling is the zero vector, and the gradients through it are zero; there is no NaN. The values
in the padding must still be finite, since zero times NaN is NaN. Keys that a causal mask
hides, and keys whose ``score_bias`` is minus infinity, are treated like padding.

Lengths are checked by value, so a call with ``valid_lens`` on a GPU waits for them once, and
twice in a layer that has yet to infer its input sizes.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from d2l_compat._shared import checks, encoding, layers
from d2l_compat._shared.weights import assignable, select_assigned
from d2l_compat._shared.windows import Blocks, choose_blocks
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch._position_table import PositionTable
from d2l_compat.torch.windows import (
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
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    return _softmax(X, _valid_keys(valid_lens, X.shape[2], X.device))


class DotProductAttention(nn.Module):
    """Scaled dot-product attention, softmax(Q K^T / sqrt(d)) V.

    It calls PyTorch's ``scaled_dot_product_attention``, whose fused kernels do not form the matrix of weights, except
    on a CPU in training with dropout. ``attention_weights`` computes the matrix on access, from the same queries and
    keys. Fused kernels support neither second derivatives nor forward-mode differentiation. For these, call the layer
    within ``torch.nn.attention.sdpa_kernel(SDPBackend.MATH)``.
    """

    def __init__(self, dropout: float) -> None:
        """Create the layer; ``dropout`` is the share of weights dropped in training, from 0 to 1.

        Raises ValueError or TypeError for any other value.
        """
        checks.check_dropout(dropout)
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self._last: tuple[Tensor, Tensor, Tensor | None, Tensor | None, int | None] | None = None

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        *,
        causal: bool = False,
        score_bias: Tensor | None = None,
        window: int | None = None,
    ) -> Tensor:
        """Return the attention pooling of ``values``.

        Shapes: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v),
        all of one floating-point dtype; ``valid_lens`` as in :func:`masked_softmax`. With
        ``causal`` the last query sees every key, the one before it all but the last, and so on.
        ``score_bias``, shape (queries, keys) or (batch, queries, keys), of the same dtype, is added to
        the scores; a key whose bias is minus infinity is hidden. If the batch consists of each example's heads in
        turn, the bias may be (1, heads, queries, keys), for all examples. With a ``window``, a query sees only as
        many keys, those that end with its own: the mask is causal, and the cost grows with queries * window. The
        masks may be combined: a query sees the keys that none of them hides. Returns (batch, queries, v).
        Raises ValueError or TypeError for input that does not fit.
        """
        arrays.check_dot_product(queries, keys, values)
        arrays.check_valid_lens(valid_lens, queries, keys)
        window = arrays.check_causal(causal, queries, keys, window)
        causal = causal or window is not None
        heads = _count_heads(score_bias, len(queries))
        if heads:
            arrays.check_score_bias(score_bias, queries[:1], keys, heads)
        else:
            arrays.check_score_bias(score_bias, queries, keys)
        if score_bias is not None and heads and (valid_lens is not None or window is not None):
            score_bias, heads = _repeat_bias(score_bias, len(queries) // heads), 0
        lens = _combine_lens(valid_lens, causal, queries, keys)
        self._last = queries, keys, lens, score_bias, window
        dropout = self.dropout.p if self.training else 0.0
        if blocks := choose_blocks(queries.shape[1], keys.shape[1], window):
            return attend_in_blocks(
                queries, keys, values, blocks, valid_lens, score_bias, dropout=dropout
            )
        score_bias = hide_outside(score_bias, queries, keys, window)
        mask, empty, is_causal = None, None, False
        has_other_mask = valid_lens is not None or score_bias is not None
        if causal and not has_other_mask and queries.shape[1] == keys.shape[1]:
            # The kernels' own mask is the fastest, but right only for as many queries as keys.
            is_causal = True
        else:
            is_visible = None if lens is None else _valid_keys(lens, keys.shape[1], keys.device)
            mask, empty = _kernel_mask(is_visible, score_bias)
        if not heads:  # the kernels need this axis
            heads = 1
            mask, empty = (each if each is None else each.unsqueeze(-3) for each in (mask, empty))
        pooled = F.scaled_dot_product_attention(
            queries.unflatten(0, (-1, heads)),
            keys.unflatten(0, (-1, heads)),
            values.unflatten(0, (-1, heads)),
            attn_mask=mask,
            dropout_p=dropout,
            is_causal=is_causal,
        )
        return (pooled if empty is None else pooled.masked_fill(empty, 0)).flatten(0, 1)

    @assignable
    def attention_weights(self) -> Tensor:
        """Weights of the last call, before dropout, shape (batch, queries, keys).

        They are computed here from the tensors of that call, which must not have been changed in
        place since. Raises AttributeError before the first call.
        """
        if self._last is None:
            raise AttributeError(checks.NOT_CALLED)
        queries, keys, lens, score_bias, window = self._last
        if score_bias is not None and score_bias.ndim == 4:
            score_bias = _repeat_bias(score_bias, len(queries) // score_bias.shape[1])
        score_bias = hide_outside(score_bias, queries, keys, window)
        scores = queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[-1])
        if score_bias is not None:
            scores = scores + score_bias
        return _softmax(scores, _visible_keys(lens, score_bias, queries, keys))

    def __getstate__(self) -> dict[str, Any]:
        # A copied or saved layer has not been called yet.
        return {**self.__dict__, "_last": select_assigned(self._last)}


class MultiHeadAttention(layers.MultiHeadAttention, nn.Module):
    """Multi-head attention, Vaswani et al. (2017), section 3.2.2, with both of D2L's signatures.

    ``MultiHeadAttention(num_hiddens, num_heads, dropout, bias=False)`` takes the sizes of queries,
    keys and values from its first input; ``MultiHeadAttention(key_size, query_size, value_size,
    num_hiddens, num_heads, dropout, bias=False)`` specifies them. ``num_hiddens`` is divided among
    the heads: each works in num_hiddens / num_heads dimensions, its slice of the projections
    ``W_q``, ``W_k``, ``W_v``; ``W_o`` mixes the heads' results.
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
        # As in D2L, the short signature leaves this size, too, to the first call.
        self.W_o = linear(query_size and num_hiddens, num_hiddens, bias)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        *,
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
        has_sizes = [
            arrays.check_projection("queries", queries, self.W_q),
            arrays.check_projection("keys", keys, self.W_k),
            arrays.check_projection("values", values, self.W_v),
        ]
        # Check masks before they are repeated for the heads, so that messages show the given shapes.
        # If projections have yet to take their sizes from the input, check the lengths' range first, too.
        arrays.check_valid_lens(valid_lens, queries, keys, in_range=not all(has_sizes))
        window = arrays.check_causal(causal, queries, keys, window)
        arrays.check_score_bias(score_bias, queries, keys, self.num_heads)
        if valid_lens is not None:
            valid_lens = valid_lens.repeat_interleave(self.num_heads, dim=0)
        projected = self.W_q(queries)
        masks: dict[str, Any] = {"causal": True} if causal else {}
        if window is not None:
            masks["window"] = window
        if score_bias is not None:
            # Autocast may give the scores another dtype.
            masks["score_bias"] = self._bias_per_head(score_bias, len(queries)).to(projected.dtype)
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
        """Weights of the last call, before dropout, shape (batch, heads, queries, keys).

        Raises AttributeError before the first call.
        """
        weights = self.attention.attention_weights
        batch = weights.shape[0] // self.num_heads
        return weights.unflatten(0, (batch, self.num_heads))

    def _bias_per_head(self, score_bias: Tensor, batch: int) -> Tensor:
        """Return the bias in a shape that the attention layer takes; a copy for each example costs time and memory."""
        if score_bias.ndim == 2:
            return score_bias
        if score_bias.ndim == 3 and type(self.attention) is DotProductAttention:
            return score_bias[None]
        return _repeat_bias(score_bias, batch)

    def transpose_qkv(self, X: Tensor) -> Tensor:
        """Reshape (batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads)."""
        return transpose_qkv(X, self.num_heads)

    def transpose_output(self, X: Tensor) -> Tensor:
        """Reshape (batch * heads, steps, num_hiddens / heads) back to (batch, steps, num_hiddens)."""
        return transpose_output(X, self.num_heads)


def transpose_qkv(X: Tensor, num_heads: int) -> Tensor:
    """Reshape (batch, steps, num_hiddens) to (batch * num_heads, steps, num_hiddens / num_heads).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide num_hiddens.
    """
    num_heads = arrays.check_head_split(X, num_heads)
    size = X.shape[2] // num_heads
    return X.unflatten(2, (num_heads, size)).transpose(1, 2).flatten(0, 1)


def transpose_output(X: Tensor, num_heads: int) -> Tensor:
    """Reshape (batch * num_heads, steps, num_hiddens / num_heads) back to (batch, steps, num_hiddens).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide the batch.
    """
    num_heads = arrays.check_head_merge(X, num_heads)
    batch = X.shape[0] // num_heads
    return X.unflatten(0, (batch, num_heads)).transpose(1, 2).flatten(2)


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
        self.dropout = nn.Dropout(dropout)
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
        return self.dropout(X + self.P[:, offset : offset + X.shape[1]].to(X.dtype))

    def exact_table(self) -> NDArray[np.float64]:
        return encoding.sinusoids(self.max_len, self.num_hiddens)[None]


def _valid_keys(valid_lens: Tensor, num_keys: int, device: torch.device) -> Tensor:
    """Return True for the keys within ``valid_lens``; shape (batch, queries or 1, keys)."""
    lens = valid_lens.to(device, torch.int64)  # some integer dtypes cannot be compared with int64
    per_query = lens if lens.ndim == 2 else lens[:, None]
    return torch.arange(num_keys, device=device) < per_query[:, :, None]


def _combine_lens(
    valid_lens: Tensor | None, causal: bool, queries: Tensor, keys: Tensor
) -> Tensor | None:
    """Combine ``valid_lens`` and a causal mask; lengths as in :func:`masked_softmax`, or (1, queries)."""
    if not causal:
        return valid_lens
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    causal_lens = torch.arange(num_keys - num_queries + 1, num_keys + 1, device=queries.device)
    if valid_lens is None:
        return causal_lens[None]
    lens = valid_lens.to(queries.device, torch.int64)
    return torch.minimum(lens if lens.ndim == 2 else lens[:, None], causal_lens)


def _visible_keys(
    lens: Tensor | None, score_bias: Tensor | None, queries: Tensor, keys: Tensor
) -> Tensor | None:
    """Return True for the visible keys; shape (batch, queries or 1, keys) or (queries, keys)."""
    valid = None if lens is None else _valid_keys(lens, keys.shape[1], queries.device)
    if score_bias is None:
        return valid
    is_finite = score_bias != -math.inf
    return is_finite if valid is None else valid & is_finite


def _count_heads(score_bias: Tensor | None, batch: int) -> int:
    """Return the heads of a bias of shape (1, heads, queries, keys) that fits the batch, or 0."""
    if not isinstance(score_bias, Tensor) or score_bias.ndim != 4:
        return 0
    heads = score_bias.shape[1]
    return heads if heads and batch % heads == 0 else 0


def _repeat_bias(score_bias: Tensor, batch: int) -> Tensor:
    """Return (heads, queries, keys), or that for each of ``batch`` examples, as (batch * heads, queries, keys)."""
    return score_bias.expand(batch, *score_bias.shape[-3:]).flatten(0, 1)


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
    mask, empty = _kernel_mask(split_mask(valid_lens, blocks, queries.device), bias)
    pooled = F.scaled_dot_product_attention(
        split_queries(queries, blocks),
        split_keys(keys, blocks),
        split_keys(values, blocks),
        attn_mask=mask,
        dropout_p=dropout,
    )
    return join_queries(pooled if empty is None else pooled.masked_fill(empty, 0), blocks)


def _kernel_mask(
    is_visible: Tensor | None, score_bias: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Return the mask for the kernels, and True for the queries that see no key.

    Kernels differ in their results for such a query. So the mask lets it see every key, and the
    caller replaces its result by zero.
    """
    if score_bias is not None:
        if is_visible is not None:
            score_bias = score_bias.masked_fill(~is_visible, -math.inf)
        empty = score_bias.amax(dim=-1, keepdim=True) == -math.inf
        return score_bias.masked_fill(empty, 0), empty
    if is_visible is not None:
        empty = ~is_visible.any(dim=-1, keepdim=True)
        return is_visible | empty, empty
    return None, None


def _softmax(scores: Tensor, valid: Tensor | None) -> Tensor:
    """Return the softmax over the valid scores of each row; exactly 0 for all others."""
    if valid is None:
        return F.softmax(scores, dim=-1)
    # The lowest finite score, not -inf: in a row without a valid key, softmax of -inf is NaN.
    finite = scores.masked_fill(~valid, torch.finfo(scores.dtype).min)
    return F.softmax(finite, dim=-1).masked_fill(~valid, 0)


def linear(inputs: int | None, outputs: int, bias: bool = True) -> nn.Linear:
    """Return a linear layer; if ``inputs`` is None, its first call sets the size."""
    if inputs is None:
        return nn.LazyLinear(outputs, bias=bias)
    return nn.Linear(inputs, outputs, bias=bias)
