"""Scaled dot-product and multi-head attention, and the sinusoidal positional encoding.

The formulas are those of Vaswani et al. (2017), "Attention Is All You Need". One rule of
masking holds everywhere: a key past its ``valid_lens`` gets a weight of exactly zero. A query
with no valid key at all (a length of 0) therefore has only zero weights, its attention
pooling is the zero vector, and the gradients through it are zero; there is no NaN. (What the
padding holds must be finite all the same: zero times NaN is NaN.) The same goes for keys that a
causal mask hides, and for those whose ``score_bias`` is minus infinity.

The layers are Flax (linen) modules. NumPy arrays are taken wherever JAX's are. All shapes and
dtypes are checked, also under ``jit``, ``vmap`` and ``grad``; lengths and offsets are checked by
value where their values are known, which on a GPU means waiting for them.
"""

import math
from functools import lru_cache
from typing import Any, ClassVar, overload

import flax.linen as nn
import jax
import jax.numpy as jnp

from d2l_compat._shared import checks, encoding
from d2l_compat.jax import _blockwise
from d2l_compat.jax._arrays import Array, arrays, as_jax, check_training
from d2l_compat.jax._checked import CheckedModule

__all__ = [
    "DotProductAttention",
    "MultiHeadAttention",
    "PositionalEncoding",
    "masked_softmax",
    "transpose_output",
    "transpose_qkv",
]


def masked_softmax(X: Array, valid_lens: Array | None = None) -> jax.Array:
    """Softmax over the last axis of ``X``, over the first ``valid_lens`` entries alone.

    Parameters
    ----------
    X
        Scores, floating point, shape (batch, queries, keys).
    valid_lens
        Integers from 0 to the number of keys, shape (batch,), or (batch, queries) for a length of
        each query's own; None takes every key.

    Returns
    -------
    jax.Array
        Weights of X's shape and dtype. Past a length they are exactly 0; over a row they sum to
        1, or to 0 where the length is 0.

    Raises
    ------
    ValueError, TypeError
        For a wrong rank, shape, dtype or range.
    """
    X = as_jax(X)
    arrays.check_scores(X, valid_lens)
    return _blockwise.softmax(X, _per_query(valid_lens))


class DotProductAttention(nn.Module):
    """Scaled dot-product attention: softmax(Q K^T / sqrt(d)) V.

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
    ) -> tuple[jax.Array, jax.Array]:
        """Attention pooling of ``values``, and the weights before dropout.

        Shapes: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v),
        all of one floating-point dtype; ``valid_lens`` as in :func:`masked_softmax`. With
        ``causal``, which under ``jit`` is static, the last query sees every key, the one before it
        all but the last, and so on. ``score_bias``, shape (queries, keys) or (batch, queries, keys),
        of the same dtype, is added to the scores; a key whose bias is minus infinity is not seen.
        Each of the three may hide a key. Returns (batch, queries, v) and (batch, queries, keys).
        ``training`` needs a key named "dropout". Raises ValueError or TypeError for input that
        does not fit.
        """
        check_training(training)
        queries, keys, values = map(as_jax, (queries, keys, values))
        score_bias = None if score_bias is None else as_jax(score_bias)
        arrays.check_dot_product(queries, keys, values)
        arrays.check_valid_lens(valid_lens, queries, keys)
        arrays.check_causal(causal, queries, keys)
        arrays.check_score_bias(score_bias, queries, keys)
        lens = _lens(valid_lens, causal, queries, keys)
        scores = queries @ keys.swapaxes(1, 2) / math.sqrt(queries.shape[-1])
        weights = _blockwise.softmax(scores, _per_query(lens), score_bias)
        is_dropping = training and self.dropout > 0
        is_traced = isinstance(queries, jax.core.Tracer)
        is_long = queries.shape[1] >= _blockwise.MIN_QUERIES
        if is_traced and is_long and not is_dropping and score_bias is None:
            # Compiled, the weights are left out where nobody asks for them.
            return _blockwise.attend(queries, keys, values, lens), weights
        used = nn.Dropout(self.dropout)(weights, deterministic=not training)
        return used @ values, weights


class MultiHeadAttention(CheckedModule):
    """Multi-head attention, Vaswani et al. (2017), section 3.2.2, with both of D2L's signatures.

    ``MultiHeadAttention(num_hiddens, num_heads, dropout, bias=False)`` takes the sizes of
    queries, keys and values from its first input;
    ``MultiHeadAttention(key_size, query_size, value_size, num_hiddens, num_heads, dropout,
    bias=False)`` is given them. ``num_hiddens`` is shared out among the heads: each works in
    num_hiddens / num_heads dimensions, its slice of the projections ``W_q``, ``W_k``, ``W_v``;
    ``W_o`` mixes the heads' results. As Flax draws them, parameters are float32; the output has
    the wider dtype of these and the input.
    """

    num_hiddens: int
    num_heads: int
    dropout: float
    bias: bool = False
    # None: taken from the first input.
    key_size: int | None = None
    query_size: int | None = None
    value_size: int | None = None
    # What each head does; a class made of this one may say otherwise.
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
        """``dropout``, from 0 to 1, is the share of weights dropped in training.

        Raises ValueError where num_hiddens is not a multiple of num_heads, and ValueError or
        TypeError for arguments of a wrong range or kind.
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
    ) -> tuple[jax.Array, jax.Array]:
        """Attend, head by head; return the output, and the weights before dropout.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, value_size); ``valid_lens`` as in :func:`masked_softmax`, ``causal`` as in
        :class:`DotProductAttention`, and ``score_bias`` as there, of shape (queries, keys), (heads,
        queries, keys) or (batch, heads, queries, keys). Returns (batch, queries, num_hiddens) and
        (batch, heads, queries, keys). ``training`` needs a key named "dropout". Raises ValueError or
        TypeError for input that does not fit.
        """
        check_training(training)
        queries, keys, values = map(as_jax, (queries, keys, values))
        score_bias = None if score_bias is None else as_jax(score_bias)
        arrays.check_attention(queries, keys, values)
        arrays.check_projection("queries", queries, self.W_q, self.query_size)
        arrays.check_projection("keys", keys, self.W_k, self.key_size)
        arrays.check_projection("values", values, self.W_v, self.value_size)
        # Checked before the heads multiply them, so that a message speaks of what was given.
        arrays.check_valid_lens(valid_lens, queries, keys)
        arrays.check_causal(causal, queries, keys)
        arrays.check_score_bias(score_bias, queries, keys, self.num_heads)
        if valid_lens is not None:
            valid_lens = jnp.repeat(valid_lens, self.num_heads, axis=0)
        projected = self.W_q(queries)
        masks: dict[str, Any] = {"causal": True} if causal else {}
        if score_bias is not None:  # in the dtype that the weights may have widened
            of_heads = self._for_heads(score_bias, len(queries))
            masks["score_bias"] = of_heads.astype(projected.dtype)
        pooled, weights = self.attention(
            self.transpose_qkv(projected),
            self.transpose_qkv(self.W_k(keys)),
            self.transpose_qkv(self.W_v(values)),
            valid_lens,
            training,
            **masks,  # those asked for: a reader's own attention may know of none
        )
        output = self.W_o(self.transpose_output(pooled))
        return output, weights.reshape(len(queries), self.num_heads, *weights.shape[1:])

    def _for_heads(self, score_bias: jax.Array, batch: int) -> jax.Array:
        """In the order of the heads: (queries, keys), or (batch * heads, queries, keys)."""
        if score_bias.ndim == 2:
            return score_bias
        num_heads, each = self.num_heads, score_bias.shape[-2:]
        bias = jnp.broadcast_to(score_bias, (batch, num_heads, *each))
        return bias.reshape(batch * num_heads, *each)

    def transpose_qkv(self, X: jax.Array) -> jax.Array:
        """(batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads)."""
        return transpose_qkv(X, self.num_heads)

    def transpose_output(self, X: jax.Array) -> jax.Array:
        """(batch * heads, steps, num_hiddens / heads) back to (batch, steps, num_hiddens)."""
        return transpose_output(X, self.num_heads)


def transpose_qkv(X: Array, num_heads: int) -> jax.Array:
    """(batch, steps, num_hiddens) to (batch * num_heads, steps, num_hiddens / num_heads).

    Raises ValueError or TypeError for a wrong rank, or where the heads' shares are not equal.
    """
    X = as_jax(X)
    num_heads = arrays.check_head_split(X, num_heads)
    batch, steps, num_hiddens = X.shape
    size = num_hiddens // num_heads
    X = X.reshape(batch, steps, num_heads, size).swapaxes(1, 2)
    return X.reshape(batch * num_heads, steps, size)


def transpose_output(X: Array, num_heads: int) -> jax.Array:
    """(batch * num_heads, steps, num_hiddens / num_heads) back to (batch, steps, num_hiddens).

    Raises ValueError or TypeError for a wrong rank, or where the batch is not a multiple of heads.
    """
    X = as_jax(X)
    num_heads = arrays.check_head_merge(X, num_heads)
    batch, steps, size = X.shape[0] // num_heads, *X.shape[1:]
    X = X.reshape(batch, num_heads, steps, size).swapaxes(1, 2)
    return X.reshape(batch, steps, num_heads * size)


class PositionalEncoding(nn.Module):
    """Adds the sinusoidal positional encoding of Vaswani et al. (2017), section 3.5.

    ``max_len`` is how many positions there are, from 0 to max_len - 1. The layer has no
    parameters: ``P`` is a constant, so that weights load into a model with another ``max_len``.
    It has no dtype of its own either: the encoding is added in the input's. Raises ValueError or
    TypeError for sizes below 1 or a dropout that is not from 0 to 1.
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

        That is float32, or float64 where ``jax_enable_x64`` is set, whatever the inputs' dtype.
        At position i, column 2j is sin(i / 10000^(2j/d)) and column 2j + 1 the cosine of the
        same angle, in radians; an odd d = ``num_hiddens`` has one cosine fewer.
        """
        return jnp.asarray(_sinusoids(self.max_len, self.num_hiddens)[None])

    @nn.compact
    def __call__(
        self, X: Array, training: bool = False, *, offset: int | jax.Array = 0
    ) -> jax.Array:
        """``X`` plus the encoding of the positions offset, offset + 1, ...

        ``X`` is floating point, shape (batch, steps, num_hiddens); the result has its shape and
        dtype. ``offset`` lets a decoder that goes token by token start where it left off.
        ``training`` needs a key named "dropout". ``P``, in the dtype of ``X``, is sown into
        "intermediates".

        Raises ValueError or TypeError where ``X`` does not fit, or ``offset`` is not an integer
        from 0 on or leads past ``max_len``. A traced ``offset`` has no value to check yet:
        positions that do not exist are then NaN.
        """
        check_training(training)
        X = as_jax(X)
        arrays.check_encoding(X, self.num_hiddens)
        P = jnp.asarray(_sinusoids(self.max_len, self.num_hiddens)[None], X.dtype)
        self.sow("intermediates", "P", P)
        total = X + _rows(P, offset, X.shape[1])
        return nn.Dropout(self.dropout)(total, deterministic=not training)


def _per_query(lens: Array | None) -> jax.Array | None:
    """Lengths of shape (batch, queries or 1)."""
    if lens is None:
        return None
    return jnp.asarray(lens) if lens.ndim == 2 else jnp.asarray(lens)[:, None]


def _lens(
    valid_lens: Array | None, causal: bool, queries: jax.Array, keys: jax.Array
) -> Array | None:
    """``valid_lens`` and a causal mask in one: lengths as in :func:`masked_softmax`."""
    if not causal:
        return valid_lens
    num_queries, num_keys = queries.shape[1], keys.shape[1]
    last = jnp.arange(num_keys - num_queries + 1, num_keys + 1)
    per_query = _per_query(valid_lens)
    if per_query is None:
        return jnp.broadcast_to(last, queries.shape[:2])
    return jnp.minimum(per_query.astype(last.dtype), last)


# A Flax layer is made anew in each `apply`; its table need not be.
_sinusoids = lru_cache(maxsize=8)(encoding.sinusoids)


def _rows(P: jax.Array, offset: int | jax.Array, steps: int) -> jax.Array:
    max_len = P.shape[1]
    if not isinstance(offset, jax.core.Tracer):
        offset = checks.integer("offset", offset, 0)
        checks.check_positions(offset, steps, max_len)
        return P[:, offset : offset + steps]
    if offset.shape or not jnp.issubdtype(offset.dtype, jnp.integer):
        raise TypeError(checks.fault("offset", offset.aval, "an integer of at least 0"))
    checks.check_positions(0, steps, max_len)
    # Unsigned, a negative position lies far past the end, and not counted from it.
    positions = (offset + jnp.arange(steps)).astype(jnp.uint32)
    return jnp.take(P, positions, axis=1, mode="fill", fill_value=jnp.nan)
