"""Additive attention, for queries and keys of different sizes: Bahdanau et al. (2015)."""

from typing import Any, overload

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import signatures
from d2l_compat._shared.weights import assignable
from d2l_compat.tensorflow._arrays import Array, layer_inputs
from d2l_compat.tensorflow._dropout import Dropout
from d2l_compat.tensorflow._keras import keras, prepare_inputs
from d2l_compat.tensorflow.attention import (
    SizedLayer,
    build_dense,
    check_readable,
    masked_softmax,
    pop_layer_arguments,
    register,
)

__all__ = ["AdditiveAttention"]


@register
class AdditiveAttention(SizedLayer):
    """Additive attention, with scores w_v^T tanh(W_q q + W_k k).

    ``AdditiveAttention(num_hiddens, dropout)`` takes the sizes of queries and keys from its first
    input; ``AdditiveAttention(key_size, query_size, num_hiddens, dropout)`` specifies them. As with
    every Keras layer, ``name``, ``dtype`` and ``trainable`` are further arguments, and inputs are
    cast to the layer's dtype.
    """

    SIZES = "query_size", "key_size"

    @overload
    def __init__(
        self,
        num_hiddens: int,
        dropout: float,
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
        num_hiddens: int,
        dropout: float,
        *,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None: ...
    @signatures.parse_overloads
    def __init__(self, **arguments: Any) -> None:
        """Create the layer; ``dropout`` is the share of weights dropped in training, from 0 to 1.

        Raises ValueError or TypeError for arguments of the wrong type or range.
        """
        super().__init__(**pop_layer_arguments(arguments))

        def projection(outputs: int, name: str) -> keras.layers.Dense:
            return keras.layers.Dense(outputs, use_bias=False, dtype=self.dtype_policy, name=name)

        self.W_k = projection(arguments["num_hiddens"], "W_k")
        self.W_q = projection(arguments["num_hiddens"], "W_q")
        self.w_v = projection(1, "w_v")
        self.dropout = Dropout(arguments["dropout"], dtype=self.dtype_policy)
        self._arguments = arguments
        self._last: Tensor | None = None

    def build(self, queries_shape: Any, keys_shape: Any, values_shape: Any = None) -> None:
        build_dense(self.W_k, keys_shape)
        build_dense(self.W_q, queries_shape)
        if type(self.W_q) is keras.layers.Dense:
            build_dense(self.w_v, (None, None, None, self.W_q.units))
        self.built = True

    def __call__(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        valid_lens: Array | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Return the attention pooling of ``values``; ``training=True`` drops weights.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, v), all of one floating-point dtype; ``valid_lens`` as in
        :func:`masked_softmax`. Returns (batch, queries, v). The memory grows with batch * queries *
        keys * num_hiddens. Raises ValueError or TypeError for input that does not fit.
        """
        layer_inputs.check_attention(queries, keys, values)
        sizes = self._arguments.get
        layer_inputs.check_projection("queries", queries, self.W_q, sizes("query_size"))
        layer_inputs.check_projection("keys", keys, self.W_k, sizes("key_size"))
        valid_lens = layer_inputs.check_valid_lens(valid_lens, queries, keys)
        queries, keys, values = prepare_inputs(self, queries, keys, values)
        return super().__call__(queries, keys, values, valid_lens=valid_lens, **kwargs)

    def call(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        valid_lens: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        features = self.W_q(queries)[:, :, tf.newaxis] + self.W_k(keys)[:, tf.newaxis]
        scores = tf.squeeze(self.w_v(tf.tanh(features)), axis=-1)
        self._last = masked_softmax(scores, valid_lens)
        return tf.matmul(self.dropout(self._last, training=training), values)

    @assignable
    def attention_weights(self) -> Tensor:
        """Weights of the last call, before dropout, shape (batch, queries, keys).

        ``DotProductAttention.attention_weights`` says which calls set them, and when AttributeError is raised.
        """
        return check_readable(self._last)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._arguments}
