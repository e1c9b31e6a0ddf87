"""Additive attention, for queries and keys of different sizes: Bahdanau et al. (2015)."""

from typing import Any, overload

import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import signatures
from d2l_compat.tensorflow._arrays import Array, layer_inputs
from d2l_compat.tensorflow._dropout import Dropout
from d2l_compat.tensorflow._keras import keras, prepared
from d2l_compat.tensorflow.attention import (
    layer_arguments,
    masked_softmax,
    register,
    weights_of_last_call,
)

__all__ = ["AdditiveAttention"]


@register
class AdditiveAttention(keras.layers.Layer):
    """Additive attention: a key's score is w_v^T tanh(W_q q + W_k k).

    ``AdditiveAttention(num_hiddens, dropout)`` takes the sizes of queries and keys from its first
    input; ``AdditiveAttention(key_size, query_size, num_hiddens, dropout)`` is given them. As with
    every Keras layer, ``name``, ``dtype`` and ``trainable`` may be given too, and inputs are cast
    to the layer's dtype.
    """

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
    def __init__(self, **given: Any) -> None:
        """``dropout``, from 0 to 1, is the share of weights dropped in training.

        Raises ValueError or TypeError for arguments of a wrong range or kind.
        """
        super().__init__(**layer_arguments(given))

        def projection(outputs: int, name: str) -> keras.layers.Dense:
            return keras.layers.Dense(outputs, use_bias=False, dtype=self.dtype_policy, name=name)

        self.W_q = projection(given["num_hiddens"], "W_q")
        self.W_k = projection(given["num_hiddens"], "W_k")
        self.w_v = projection(1, "w_v")
        self.dropout = Dropout(given["dropout"], dtype=self.dtype_policy)
        self._given = given
        self._last: Tensor | None = None
        if "query_size" in given:
            self.build((None, None, given["query_size"]), (None, None, given["key_size"]))

    def build(self, queries_shape: Any, keys_shape: Any, values_shape: Any = None) -> None:
        self.W_q.build(queries_shape)
        self.W_k.build(keys_shape)
        self.w_v.build((None, None, None, self._given["num_hiddens"]))
        self.built = True

    def __call__(
        self,
        queries: Array,
        keys: Array,
        values: Array,
        valid_lens: Array | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Attention pooling of ``values``; ``training=True`` drops weights.

        Shapes: queries (batch, queries, query_size), keys (batch, keys, key_size), values
        (batch, keys, v), all of one floating-point dtype; ``valid_lens`` as in
        :func:`masked_softmax`. Returns (batch, queries, v). Every query meets every key in
        num_hiddens dimensions, which takes as much memory. Raises ValueError or TypeError for
        input that does not fit.
        """
        layer_inputs.check_attention(queries, keys, values)
        layer_inputs.check_projection("queries", queries, self.W_q)
        layer_inputs.check_projection("keys", keys, self.W_k)
        layer_inputs.check_valid_lens(valid_lens, queries, keys)
        queries, keys, values = prepared(self, queries, keys, values)
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

    @property
    def attention_weights(self) -> Tensor:
        """The last call's weights, before dropout, shape (batch, queries, keys).

        Of the same call, and raising RuntimeError in the same cases, as those of
        :class:`DotProductAttention`.
        """
        return weights_of_last_call(self._last)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._given}
