"""Scaled dot-product and multi-head attention, and the sinusoidal positional encoding.

The formulas are those of Vaswani et al. (2017), "Attention Is All You Need". One rule of
masking applies everywhere: a key past its ``valid_lens`` gets a weight of exactly zero. A query
with no valid key at all (a length of 0) therefore has only zero weights, its attention
pooling is the zero vector, and the gradients through it are zero; there is no NaN. The values
in the padding must still be finite, since zero times NaN is NaN. Keys that a causal mask
hides, and keys whose ``score_bias`` is minus infinity, are treated like padding.

The layers are Keras layers: they can be part of models, are saved and loaded with them, and take
NumPy arrays wherever they take tensors. Shapes and dtypes are checked as far as they are known, also
while a graph is traced. Lengths and offsets are checked by value if their values are known, so a
call with ``valid_lens`` on a GPU waits for them.
"""

import math
from typing import Any, overload

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import checks, encoding, signatures
from d2l_compat._shared.weights import assignable
from d2l_compat._shared.windows import Blocks
from d2l_compat.tensorflow import _blockwise
from d2l_compat.tensorflow._arrays import Array, arrays, layer_inputs
from d2l_compat.tensorflow._dropout import Dropout
from d2l_compat.tensorflow._keras import convert_input, dynamic_shape, keras, prepare_inputs
from d2l_compat.tensorflow._position_table import PositionTable
from d2l_compat.tensorflow.windows import (
    choose_blocks,
    clip_window,
    join_queries,
    split_bias,
    split_keys,
    split_mask,
    split_queries,
    visible_keys,
)

__all__ = [
    "DotProductAttention",
    "MultiHeadAttention",
    "PositionalEncoding",
    "masked_softmax",
    "transpose_output",
    "transpose_qkv",
]

register = keras.saving.register_keras_serializable(package="d2l_compat")


def masked_softmax(X: Array, valid_lens: Array | None = None) -> Tensor:
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
    lens = None if valid_lens is None else tf.convert_to_tensor(valid_lens)
    return _blockwise.softmax(tf.convert_to_tensor(X), lens)


@register
class DotProductAttention(keras.layers.Layer):
    """Scaled dot-product attention, softmax(Q K^T / sqrt(d)) V.

    It has no weights, and computes in the dtype of its inputs, not in the layer's.
    """

    def __init__(self, dropout: float, **kwargs: Any) -> None:
        """Create the layer; ``dropout`` is the share of weights dropped in training, from 0 to 1.

        ``kwargs`` are those of any Keras layer. Raises ValueError or TypeError if ``dropout`` is not from 0 to 1.
        """
        checks.check_dropout(dropout)
        super().__init__(autocast=False, **kwargs)
        self.dropout = Dropout(dropout, autocast=False)
        # The weights; for long inputs, the tensors from which they are computed on access.
        self._last: Any = None

    def __call__(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        valid_lens: Array | None = None,
        *,
        causal: bool = False,
        score_bias: Array | None = None,
        window: int | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Return the attention pooling of ``values``; ``training=True`` drops weights.

        Shapes: queries (batch, queries, d), keys (batch, keys, d), values (batch, keys, v),
        all of one floating-point dtype; ``valid_lens`` as in :func:`masked_softmax`. With
        ``causal`` the last query sees every key, the one before it all but the last, and so on.
        ``score_bias``, shape (queries, keys) or (batch, queries, keys), of the same dtype, is added to
        the scores; a key whose bias is minus infinity is hidden. With a ``window``, a query sees only as many
        keys, those that end with its own: the mask is causal, and the cost grows with queries * window, unless
        a graph is traced for any number of queries or keys. The masks may be combined: a query sees the keys
        that none of them hides. Returns (batch, queries, v). Raises ValueError or TypeError for input that does
        not fit.
        """
        # Check before `call`, since Keras casts its inputs and rewords its errors.
        layer_inputs.check_dot_product(queries, keys, values)
        valid_lens = layer_inputs.check_valid_lens(valid_lens, queries, keys)
        window = layer_inputs.check_causal(causal, queries, keys, window)
        layer_inputs.check_score_bias(score_bias, queries, keys)
        queries, keys, values = prepare_inputs(self, queries, keys, values)
        masks = _mask_arguments(causal, convert_input(self, score_bias), window)
        return super().__call__(queries, keys, values, valid_lens=valid_lens, **masks, **kwargs)

    def call(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        training: bool | None = None,
        *,
        causal: bool = False,
        score_bias: Tensor | None = None,
        window: int | None = None,
    ) -> Tensor:
        lens = combine_lens(valid_lens, causal or window is not None, queries, keys)
        if lens is not None:
            lens = tf.convert_to_tensor(lens)
        window = clip_window(window, keys)
        self._last = queries, keys, lens, score_bias, window
        if blocks := choose_blocks(queries, keys, window):
            return attend_in_blocks(
                queries,
                keys,
                values,
                blocks,
                valid_lens,
                score_bias,
                dropout=self.dropout,
                training=training,
            )
        has_other_mask = score_bias is not None or window is not None
        is_dropping = training and self.dropout.rate > 0
        if _blockwise.is_long(queries) and not (has_other_mask or is_dropping):
            return _blockwise.attend(queries, keys, values, lens)
        self._last = compute_weights(queries, keys, lens, score_bias, window)
        return tf.matmul(self.dropout(self._last, training=training), values)

    @assignable
    def attention_weights(self) -> Tensor:
        """Weights of the last call, before dropout, shape (batch, queries, keys).

        Eager calls set them, and calls that trace a graph, for ``tf.function`` or a model: those weights
        can be read only within that graph. Running a traced graph does not change them. Raises
        AttributeError before the first call, and outside the graph that the last call traced.
        """
        if isinstance(self._last, tuple):
            check_readable(self._last[0])
            return compute_weights(*self._last)
        return check_readable(self._last)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "dropout": self.dropout.rate}


def _mask_arguments(causal: bool, score_bias: Array | None, window: int | None) -> dict[str, Any]:
    """Return only the masks in use: a custom attention layer may support none."""
    masks: dict[str, Any] = {"causal": True} if causal else {}
    if score_bias is not None:
        masks["score_bias"] = score_bias
    if window is not None:
        masks["window"] = window
    return masks


def combine_lens(
    valid_lens: Tensor | None, causal: bool, queries: Tensor, keys: Tensor
) -> Tensor | None:
    """Combine ``valid_lens`` and a causal mask into lengths as in :func:`masked_softmax`.

    Lengths that are the same for all examples have the shape (1, queries).
    """
    if not causal:
        return valid_lens
    num_queries, num_keys = tf.shape(queries, tf.int64)[1], tf.shape(keys, tf.int64)[1]
    causal_lens = tf.range(1, num_queries + 1) + (num_keys - num_queries)
    if valid_lens is None:
        return causal_lens[tf.newaxis]
    lens = tf.cast(valid_lens, tf.int64)
    return tf.minimum(lens if lens.shape.rank == 2 else lens[:, tf.newaxis], causal_lens)


def compute_weights(
    queries: Tensor,
    keys: Tensor,
    lens: Tensor | None,
    score_bias: Tensor | None = None,
    window: int | None = None,
    num_sinks: int = 0,
) -> Tensor:
    """Return the full matrix of weights; ``lens`` as in :func:`combine_lens`."""
    is_visible = visible_keys(queries, keys, window, num_sinks)
    return _softmax_of_products(queries, keys, lens, score_bias, is_visible)


def attend_in_blocks(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    blocks: Blocks,
    valid_lens: Tensor | None = None,
    score_bias: Tensor | None = None,
    *,
    dropout: Dropout,
    training: bool | None,
) -> Tensor:
    """Compute attention within a window; shapes as in :class:`DotProductAttention`."""
    bias = None if score_bias is None else split_bias(score_bias, blocks)
    is_visible = split_mask(valid_lens, blocks)
    weights = _softmax_of_products(
        split_queries(queries, blocks), split_keys(keys, blocks), None, bias, is_visible
    )
    weights = dropout(weights, training=training)
    return join_queries(tf.matmul(weights, split_keys(values, blocks)), blocks)


def _softmax_of_products(
    queries: Tensor,
    keys: Tensor,
    lens: Tensor | None,
    score_bias: Tensor | None,
    is_visible: Tensor | None,
) -> Tensor:
    scaled = queries / math.sqrt(queries.shape[-1])  # cheaper than scaling the scores
    scores = tf.matmul(scaled, keys, transpose_b=True)
    return _blockwise.softmax(scores, lens, score_bias, is_visible)


class SizedLayer(keras.layers.Layer):
    """A layer that its first call builds; until then a user may put other layers in the place of its own.

    If its signature has its sizes, ``set_weights`` builds it, too.
    """

    SIZES: tuple[str, ...]  # the arguments that are the sizes of its inputs
    _arguments: dict[str, Any]

    def set_weights(self, weights: list[Any]) -> None:
        if not self.built and self.SIZES[0] in self._arguments:
            self.build(*((None, None, self._arguments[name]) for name in self.SIZES))
        super().set_weights(weights)


@register
class MultiHeadAttention(SizedLayer):
    """Multi-head attention, Vaswani et al. (2017), section 3.2.2, with both of D2L's signatures.

    ``MultiHeadAttention(num_hiddens, num_heads, dropout, bias=False)`` takes the sizes of
    queries, keys and values from its first input;
    ``MultiHeadAttention(key_size, query_size, value_size, num_hiddens, num_heads, dropout,
    bias=False)`` specifies them. ``num_hiddens`` is divided among the heads: each works in
    num_hiddens / num_heads dimensions, its slice of the projections ``W_q``, ``W_k``, ``W_v``;
    ``W_o`` mixes the heads' results. As with every Keras layer, ``name``, ``dtype`` and
    ``trainable`` are further arguments, and inputs are cast to the layer's dtype.
    """

    SIZES = "query_size", "key_size", "value_size"

    @overload
    def __init__(
        self,
        num_hiddens: int,
        num_heads: int,
        dropout: float,
        bias: bool = False,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
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
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Create the layer; ``dropout`` is the share of weights dropped in training, from 0 to 1.

        Raises ValueError if num_hiddens is not a multiple of num_heads, and ValueError or TypeError
        for arguments of the wrong type or range.
        """
        num_hiddens, num_heads = arguments["num_hiddens"], arguments["num_heads"]
        checks.check_heads(num_hiddens, num_heads)
        super().__init__(**pop_layer_arguments(arguments))
        self.num_hiddens, self.num_heads = num_hiddens, num_heads
        self.attention = DotProductAttention(arguments["dropout"], name="attention")

        def projection(name: str) -> keras.layers.Dense:
            return keras.layers.Dense(
                num_hiddens, use_bias=arguments["bias"], dtype=self.dtype_policy, name=name
            )

        self.W_q = projection("W_q")
        self.W_k = projection("W_k")
        self.W_v = projection("W_v")
        self.W_o = projection("W_o")
        self._arguments = arguments

    def build(self, queries_shape: Any, keys_shape: Any, values_shape: Any) -> None:
        build_dense(self.W_q, queries_shape)
        build_dense(self.W_k, keys_shape)
        build_dense(self.W_v, values_shape)
        if type(self.W_v) is keras.layers.Dense:
            build_dense(self.W_o, (None, None, self.W_v.units))
        self.built = True

    def __call__(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        valid_lens: Array | None = None,
        *,
        causal: bool = False,
        score_bias: Array | None = None,
        window: int | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Return the attention pooling of ``values`` by all heads, projected by ``W_o``.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, value_size), all of one floating-point dtype; ``valid_lens`` as in
        :func:`masked_softmax`, ``causal``, ``window`` and ``score_bias`` as in :class:`DotProductAttention`, but
        ``score_bias`` of shape (queries, keys), (heads, queries, keys) or (batch, heads, queries, keys).
        ``training=True`` drops attention weights. Returns (batch, queries, num_hiddens). Raises
        ValueError or TypeError for input that does not fit.
        """
        layer_inputs.check_attention(queries, keys, values)
        sizes = self._arguments.get
        layer_inputs.check_projection("queries", queries, self.W_q, sizes("query_size"))
        layer_inputs.check_projection("keys", keys, self.W_k, sizes("key_size"))
        layer_inputs.check_projection("values", values, self.W_v, sizes("value_size"))
        valid_lens = layer_inputs.check_valid_lens(valid_lens, queries, keys)
        window = layer_inputs.check_causal(causal, queries, keys, window)
        layer_inputs.check_score_bias(score_bias, queries, keys, self.num_heads)
        queries, keys, values = prepare_inputs(self, queries, keys, values)
        masks = _mask_arguments(causal, convert_input(self, score_bias), window)
        return super().__call__(queries, keys, values, valid_lens=valid_lens, **masks, **kwargs)

    def call(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        training: bool | None = None,
        *,
        causal: bool = False,
        score_bias: Tensor | None = None,
        window: int | None = None,
    ) -> Tensor:
        if valid_lens is not None:
            valid_lens = tf.repeat(valid_lens, self.num_heads, axis=0)
        if score_bias is not None:
            score_bias = self._bias_per_head(score_bias, dynamic_shape(queries)[0])
        self._last = None  # forget weights that were assigned
        pooled = self.attention(
            self.transpose_qkv(self.W_q(queries)),
            self.transpose_qkv(self.W_k(keys)),
            self.transpose_qkv(self.W_v(values)),
            valid_lens,
            training=training,
            **_mask_arguments(causal, score_bias, window),
        )
        return self.W_o(self.transpose_output(pooled))

    @assignable
    def attention_weights(self) -> Tensor:
        """Weights of the last call, before dropout, shape (batch, heads, queries, keys).

        ``DotProductAttention.attention_weights`` says which calls set them, and when AttributeError is raised.
        """
        weights = check_readable(self.attention.attention_weights)
        return _split_batch(weights, self.num_heads)

    def _bias_per_head(self, score_bias: Tensor, batch: int | Tensor) -> Tensor:
        """Reshape the bias to (queries, keys) or (batch * heads, queries, keys)."""
        if len(score_bias.shape) == 2:
            return score_bias
        if len(score_bias.shape) == 3:
            return tf.tile(score_bias, (batch, 1, 1))
        _, _, queries, keys = dynamic_shape(score_bias)
        return tf.reshape(score_bias, (batch * self.num_heads, queries, keys))

    def transpose_qkv(self, X: Tensor) -> Tensor:
        """Reshape (batch, steps, num_hiddens) to (batch * heads, steps, num_hiddens / heads)."""
        return transpose_qkv(X, self.num_heads)

    def transpose_output(self, X: Tensor) -> Tensor:
        """Reshape (batch * heads, steps, num_hiddens / heads) back to (batch, steps, num_hiddens)."""
        return transpose_output(X, self.num_heads)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._arguments}


def build_dense(layer: Any, shape: Any) -> None:
    """Build a linear layer for this input; a layer that a user put in its place is built by its own call."""
    if type(layer) is keras.layers.Dense and not layer.built:
        layer.build(shape)


def transpose_qkv(X: Array, num_heads: int) -> Tensor:
    """Reshape (batch, steps, num_hiddens) to (batch * num_heads, steps, num_hiddens / num_heads).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide num_hiddens.
    """
    num_heads = arrays.check_head_split(X, num_heads)
    batch, steps, num_hiddens = dynamic_shape(X)
    size = num_hiddens // num_heads
    X = tf.transpose(tf.reshape(X, (batch, steps, num_heads, size)), (0, 2, 1, 3))
    return tf.reshape(X, (batch * num_heads, steps, size))


def transpose_output(X: Array, num_heads: int) -> Tensor:
    """Reshape (batch * num_heads, steps, num_hiddens / num_heads) back to (batch, steps, num_hiddens).

    Raises ValueError or TypeError for a wrong rank, or if num_heads does not divide the batch.
    """
    num_heads = arrays.check_head_merge(X, num_heads)
    X = tf.transpose(_split_batch(X, num_heads), (0, 2, 1, 3))
    batch, steps, _, size = dynamic_shape(X)
    return tf.reshape(X, (batch, steps, num_heads * size))


def _split_batch(X: Array, num_heads: int) -> Tensor:
    """Reshape (batch * heads, ...) to (batch, heads, ...)."""
    merged_batch, *rest = dynamic_shape(X)
    return tf.reshape(X, (merged_batch // num_heads, num_heads, *rest))


@register
class PositionalEncoding(PositionTable):
    """The sinusoidal positional encoding of Vaswani et al. (2017), section 3.5, added to the input.

    ``P``, shape (1, max_len, num_hiddens): at position i, column 2j is sin(i / 10000^(2j/d))
    and column 2j + 1 the cosine of the same angle, in radians; an odd d = ``num_hiddens`` has
    one cosine fewer. It is a constant in the layer's compute dtype: neither trained nor saved, so
    the weights load into a model with another ``max_len``.
    """

    def __init__(
        self, num_hiddens: int, dropout: float, max_len: int = 1000, **kwargs: Any
    ) -> None:
        """Create the table for ``max_len`` positions, from 0 to max_len - 1.

        Raises ValueError or TypeError for sizes below 1 or a dropout that is not from 0 to 1.
        """
        sizes = checks.encoding_sizes(num_hiddens, dropout, max_len)
        super().__init__(**kwargs)
        self.num_hiddens, self.max_len = sizes
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)
        self.create_table(encoding.sinusoids(self.max_len, self.num_hiddens)[np.newaxis])

    def __call__(self, X: Array, offset: int = 0, **kwargs: Any) -> Tensor:
        """Return ``X`` plus the encoding of the positions offset, offset + 1, and so on.

        ``X`` is floating point, shape (batch, steps, num_hiddens), and as with every Keras layer
        is cast to the layer's dtype; the result has its shape. ``offset`` lets a decoder that
        goes token by token continue where it stopped. Raises ValueError or TypeError if ``X``
        does not fit, or ``offset`` is not an integer of at least 0 or goes past ``max_len``.
        """
        return super().__call__(X, offset, **kwargs)

    def call(self, X: Tensor, offset: int = 0, training: bool | None = None) -> Tensor:
        # Unlike Python's slices, `tf.slice` fails if it goes past the end.
        P = tf.slice(self._table, (0, offset, 0), (1, dynamic_shape(X)[1], self.num_hiddens))
        return self.dropout(X + P, training=training)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_hiddens": self.num_hiddens,
            "dropout": self.dropout.rate,
            "max_len": self.max_len,
        }


def pop_layer_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Remove and return the arguments that every Keras layer takes."""
    names = arguments.keys() & {"name", "dtype", "trainable"}
    return {name: arguments.pop(name) for name in names}


def check_readable(tensor: Tensor | None) -> Tensor:
    """Check that a tensor from a layer's last call can be read, and return it.

    Raises AttributeError before the first call, and outside the graph that the last call traced.
    """
    if tensor is None:
        raise AttributeError(checks.NOT_CALLED)
    current_graph = tf.compat.v1.get_default_graph()
    if tf.is_symbolic_tensor(tensor) and tensor.graph is not current_graph:
        raise AttributeError(
            "attention_weights: they are in the graph of the last call; "
            "read them there, or call the layer outside of a graph"
        )
    return tensor
