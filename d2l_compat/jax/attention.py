"""Scaled dot-product and multi-head attention, and the sinusoidal positional encoding.

The formulas are those of Vaswani et al. (2017), "Attention Is All You Need". One rule of
masking applies everywhere: a key past its ``valid_lens`` gets a weight of exactly zero. A query
with no valid key at all (a length of 0) therefore has only zero weights, its attention
pooling is the zero vector, and the gradients through it are zero; there is no NaN. The values
in the padding must still be finite, since zero times NaN is NaN. Keys that a causal mask
hides, and keys whose ``score_bias`` is minus infinity, are treated like padding.

The layers are Flax (linen) modules. NumPy arrays are accepted wherever JAX arrays are. All shapes
and dtypes are checked, also under ``jit``, ``vmap`` and ``grad``. The values of lengths and
offsets are checked unless they are traced; a call on a GPU waits for them.
"""

import math
from functools import lru_cache, partial
from typing import Any, ClassVar, overload

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat._shared import checks, encoding
from d2l_compat._shared.windows import choose_blocks
from d2l_compat.jax import _blockwise
from d2l_compat.jax._arrays import Array, arrays, as_jax, check_training
from d2l_compat.jax._checked import CheckedModule
from d2l_compat.jax.windows import attend_in_blocks, hide_outside

__all__ = [
    "DotProductAttention",
    "MultiHeadAttention",
    "PositionalEncoding",
    "masked_softmax",
    "transpose_output",
    "transpose_qkv",
]


def masked_softmax(X: Array, valid_lens: Array | None = None) -> jax.Array:
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
    jax.Array
        Weights of X's shape and dtype. Past the valid length they are exactly 0; each row sums to 1, or
        to 0 if its length is 0.

    Raises
    ------
    ValueError, TypeError
        For a wrong rank, shape, dtype or range.

    """
    X = as_jax(X)
    arrays.check_scores(X, valid_lens)
    return _blockwise.softmax(X, _lens_per_query(valid_lens))


class DotProductAttention(nn.Module):
    """Scaled dot-product attention, softmax(Q K^T / sqrt(d)) V.

    ``dropout``, from 0 to 1, is the share of weights dropped in training. Raises ValueError or
    TypeError for any other value.
    """

    dropout: float

    def __post_init__(self) -> None:
        checks.check_dropout(self.dropout)
        super().__post_init__()

    @nn.compact
    def __call__(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        valid_lens: Array | None = None,
        training: bool = False,
        *,
        causal: bool = False,
        score_bias: Array | None = None,
        window: int | None = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Return the attention pooling of ``values``, and the weights before dropout.

        Shapes: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v),
        all of one floating-point dtype; ``valid_lens`` as in :func:`masked_softmax`. With
        ``causal``, which must be static under ``jit``, the last query sees every key, the one
        before it all but the last, and so on. ``score_bias``, shape (queries, keys) or (batch,
        queries, keys), of the same dtype, is added to the scores; a key whose bias is minus
        infinity is hidden. With a ``window``, which must be static as well, a query sees only as many keys, those
        that end with its own: the mask is causal, and the cost grows with queries * window, if ``jit`` removes the
        weights because nothing uses them. The masks may be combined: a query sees the keys that none of
        them hides. Returns (batch, queries, v) and (batch, queries, keys). ``training`` needs a random key
        named "dropout". Raises ValueError or TypeError for input that does not fit.
        """
        check_training(training)
        queries, keys, values = map(as_jax, (queries, keys, values))
        score_bias = None if score_bias is None else as_jax(score_bias)
        arrays.check_dot_product(queries, keys, values)
        arrays.check_valid_lens(valid_lens, queries, keys)
        window = arrays.check_causal(causal, queries, keys, window)
        causal = causal or window is not None
        arrays.check_score_bias(score_bias, queries, keys)
        drop = partial(nn.Dropout(self.dropout), deterministic=not training)
        lens = _combine_lens(valid_lens, causal, queries, keys)
        scores = queries @ keys.swapaxes(1, 2) / math.sqrt(queries.shape[-1])
        bias = hide_outside(score_bias, queries, keys, window)
        # If the caller does not use the weights, the compiler removes their computation.
        weights = _blockwise.softmax(scores, _lens_per_query(lens), bias)
        if blocks := choose_blocks(queries.shape[1], keys.shape[1], window):
            inputs = queries, keys, values
            return attend_in_blocks(*inputs, blocks, valid_lens, score_bias, drop=drop), weights
        is_dropping = training and self.dropout > 0
        if _blockwise.is_faster(queries) and not is_dropping and bias is None:
            return _blockwise.attend(queries, keys, values, lens), weights
        return drop(weights) @ values, weights


class MultiHeadAttention(CheckedModule):
    """Multi-head attention, Vaswani et al. (2017), section 3.2.2, with both of D2L's signatures.

    ``MultiHeadAttention(num_hiddens, num_heads, dropout, bias=False)`` infers the sizes of
    queries, keys and values from its first input;
    ``MultiHeadAttention(key_size, query_size, value_size, num_hiddens, num_heads, dropout,
    bias=False)`` specifies them. ``num_hiddens`` is divided among the heads: each works in
    num_hiddens / num_heads dimensions, its slice of the projections ``W_q``, ``W_k``, ``W_v``;
    ``W_o`` mixes the heads' results. Flax initializes parameters in float32; the output has the
    wider dtype of the parameters and the input.
    """

    num_hiddens: int
    num_heads: int
    dropout: float
    bias: bool = False
    # None means inferred from the first input.
    key_size: int | None = None
    query_size: int | None = None
    value_size: int | None = None
    # A subclass may replace the attention of each head.
    Attention: ClassVar[type[DotProductAttention]] = DotProductAttention

    @overload
    def __init__(
        self,
        num_hiddens: int,
        num_heads: int,
        dropout: float,
        bias: bool = False,
        *,
        parent: Any = ...,
        name: str | None = None,
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
        bias: bool = False,
        *,
        parent: Any = ...,
        name: str | None = None,
    ) -> None: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create the layer; ``dropout``, from 0 to 1, is the share of weights dropped in training.

        Raises ValueError if num_hiddens is not a multiple of num_heads, and ValueError or
        TypeError for arguments of the wrong type or range.
        """
        super().__init__(*args, **kwargs)

    def __post_init__(self) -> None:
        checks.check_heads(self.num_hiddens, self.num_heads)
        super().__post_init__()

    def setup(self) -> None:
        self.attention = self.Attention(self.dropout)
        self.W_q = nn.Dense(self.num_hiddens, use_bias=self.bias)
        self.W_k = nn.Dense(self.num_hiddens, use_bias=self.bias)
        self.W_v = nn.Dense(self.num_hiddens, use_bias=self.bias)
        self.W_o = nn.Dense(self.num_hiddens, use_bias=self.bias)

    def __call__(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        valid_lens: Array | None = None,
        training: bool = False,
        *,
        causal: bool = False,
        score_bias: Array | None = None,
        window: int | None = None,
    ) -> tuple[jax.Array, jax.Array]:
        """Return the attention pooling of all heads, projected by ``W_o``, and the weights before dropout.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, value_size); ``valid_lens`` as in :func:`masked_softmax`, ``causal``, ``window`` and
        ``score_bias`` as in :class:`DotProductAttention`, but ``score_bias`` of shape (queries, keys), (heads,
        queries, keys) or (batch, heads, queries, keys). Returns (batch, queries, num_hiddens) and
        (batch, heads, queries, keys). ``training`` needs a random key named "dropout". Raises ValueError or
        TypeError for input that does not fit.
        """
        check_training(training)
        queries, keys, values = map(as_jax, (queries, keys, values))
        score_bias = None if score_bias is None else as_jax(score_bias)
        arrays.check_attention(queries, keys, values)
        arrays.check_projection("queries", queries, self.W_q, self.query_size)
        arrays.check_projection("keys", keys, self.W_k, self.key_size)
        arrays.check_projection("values", values, self.W_v, self.value_size)
        # Check masks before they are repeated for the heads, so that messages show the given shapes.
        arrays.check_valid_lens(valid_lens, queries, keys)
        window = arrays.check_causal(causal, queries, keys, window)
        arrays.check_score_bias(score_bias, queries, keys, self.num_heads)
        if valid_lens is not None:
            valid_lens = jnp.repeat(valid_lens, self.num_heads, axis=0)
        projected = self.W_q(queries)
        masks: dict[str, Any] = {"causal": True} if causal else {}
        if window is not None:
            masks["window"] = window
        if score_bias is not None:  # in the projections' dtype, which may be wider
            bias_per_head = self._bias_per_head(score_bias, len(queries))
            masks["score_bias"] = bias_per_head.astype(projected.dtype)
        pooled, weights = self.attention(
            self.transpose_qkv(projected),
            self.transpose_qkv(self.W_k(keys)),
            self.transpose_qkv(self.W_v(values)),
            valid_lens,
            training,
            **masks,  # only those in use: a custom attention layer may accept none
        )
        output = self.W_o(self.transpose_output(pooled))
        return output, weights.reshape(len(queries), self.num_heads, *weights.shape[1:])

    def _bias_per_head(self, score_bias: jax.Array, batch: int) -> jax.Array:
        """Reshape the bias to (queries, keys) or (batch * heads, queries, keys)."""
        if score_bias.ndim == 2:
            return score_bias
        scores_shape = score_bias.shape[-2:]
        bias = jnp.broadcast_to(score_bias, (batch, self.num_heads, *scores_shape))
        return bias.reshape(batch * self.num_heads, *scores_shape)

    def transpose_qkv(self, X: jax.Array) -> jax.Array:
        """Reshape (batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads)."""
        return transpose_qkv(X, self.num_heads)

    def transpose_output(self, X: jax.Array) -> jax.Array:
        """Reverse :meth:`transpose_qkv`, to (batch, steps, num_hiddens)."""
        return transpose_output(X, self.num_heads)


def transpose_qkv(X: Array, num_heads: int) -> jax.Array:
    """Reshape (batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide num_hiddens.
    """
    X = as_jax(X)
    num_heads = arrays.check_head_split(X, num_heads)
    batch, steps, num_hiddens = X.shape
    head_size = num_hiddens // num_heads
    X = X.reshape(batch, steps, num_heads, head_size).swapaxes(1, 2)
    return X.reshape(batch * num_heads, steps, head_size)


def transpose_output(X: Array, num_heads: int) -> jax.Array:
    """Reverse :func:`transpose_qkv`, to (batch, steps, num_hiddens).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide the batch.
    """
    X = as_jax(X)
    num_heads = arrays.check_head_merge(X, num_heads)
    rows, steps, head_size = X.shape
    batch = rows // num_heads
    X = X.reshape(batch, num_heads, steps, head_size).swapaxes(1, 2)
    return X.reshape(batch, steps, num_heads * head_size)


class PositionalEncoding(nn.Module):
    """The sinusoidal positional encoding of Vaswani et al. (2017), section 3.5.

    The positions are 0 to ``max_len`` - 1. The layer has no parameters: ``P`` is a constant, so
    that weights load into a model with another ``max_len``. The encoding is added in the dtype of
    the input. Raises ValueError or TypeError for sizes below 1 or a dropout that is not from 0 to 1.
    """

    num_hiddens: int
    dropout: float
    max_len: int = 1000

    def __post_init__(self) -> None:
        sizes = checks.encoding_sizes(self.num_hiddens, self.dropout, self.max_len)
        self.num_hiddens, self.max_len = sizes
        super().__post_init__()

    @property
    def P(self) -> jax.Array:
        """The encoding, shape (1, max_len, num_hiddens), in JAX's default precision.

        That is float32, or float64 if ``jax_enable_x64`` is set, whatever the inputs' dtype.
        At position i, column 2j is sin(i / 10000^(2j/d)) and column 2j + 1 the cosine of the
        same angle, in radians; an odd d = ``num_hiddens`` has one cosine fewer.
        """
        return jnp.asarray(_sinusoids(self.max_len, self.num_hiddens)[None])

    @nn.compact
    def __call__(
        self, X: Array, training: bool = False, *, offset: int | jax.Array = 0
    ) -> jax.Array:
        """Add the encoding of the positions offset, offset + 1, ... to ``X``.

        ``X`` is floating point, shape (batch, steps, num_hiddens); the result has its shape and
        dtype. With ``offset``, a decoder that generates token by token continues at its position.
        ``training`` needs a random key named "dropout". ``P``, in the dtype of ``X``, is sown into
        "intermediates".

        Raises ValueError or TypeError if ``X`` does not fit, if ``offset`` is not an integer of
        at least 0, or if a position reaches ``max_len``. A traced ``offset`` has no value to check
        yet: positions past the end are then NaN.
        """
        check_training(training)
        X = as_jax(X)
        arrays.check_encoding(X, self.num_hiddens)
        P = jnp.asarray(_sinusoids(self.max_len, self.num_hiddens)[None], X.dtype)
        self.sow("intermediates", "P", P)
        total = X + select_positions(P, offset, X.shape[1])
        return nn.Dropout(self.dropout)(total, deterministic=not training)


def _lens_per_query(lens: Array | None) -> jax.Array | None:
    """Reshape lengths to (batch, queries or 1)."""
    if lens is None:
        return None
    return jnp.asarray(lens) if lens.ndim == 2 else jnp.asarray(lens)[:, None]


def _combine_lens(
    valid_lens: Array | None, causal: bool, queries: jax.Array, keys: jax.Array
) -> Array | None:
    """Combine ``valid_lens`` and a causal mask into lengths as in :func:`masked_softmax`."""
    if not causal:
        return valid_lens
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    causal_lens = jnp.arange(num_keys - num_queries + 1, num_keys + 1)
    lens = _lens_per_query(valid_lens)
    if lens is None:
        return jnp.broadcast_to(causal_lens, queries.shape[:2])
    return jnp.minimum(lens.astype(causal_lens.dtype), causal_lens)


# The table is cached, since Flax creates the layer again in each `apply`.
_sinusoids = lru_cache(maxsize=8)(encoding.sinusoids)


def select_positions(P: jax.Array, offset: int | jax.Array, steps: int) -> jax.Array:
    """Return ``P``, (..., max_len, features), at the positions offset to offset + steps - 1.

    Positions past the end raise ValueError, or are NaN if ``offset`` is traced.
    """
    max_len = P.shape[1]
    if not isinstance(offset, jax.core.Tracer):
        offset = checks.integer("offset", offset, 0)
        checks.check_positions(offset, steps, max_len)
        return P[:, offset : offset + steps]
    if offset.shape or not jnp.issubdtype(offset.dtype, jnp.integer):
        raise TypeError(checks.message("offset", offset.aval, "an integer of at least 0"))
    checks.check_positions(0, steps, max_len)
    # As an unsigned integer, a negative position is far past the end and does not count back from it.
    positions = (offset + jnp.arange(steps)).astype(jnp.uint32)
    return jnp.take(P, positions, axis=1, mode="fill", fill_value=jnp.nan)
