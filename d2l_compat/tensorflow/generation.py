"""Causal self-attention with a cache of keys and values, and generation token by token."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import cache, checks, encoding, generation
from d2l_compat._shared.cache import Sizes, check_room, new_positions, start_lengths
from d2l_compat._shared.generation import next_token_probs
from d2l_compat.tensorflow import _blockwise
from d2l_compat.tensorflow._arrays import Array, arrays, layer_inputs
from d2l_compat.tensorflow._dropout import Dropout
from d2l_compat.tensorflow._keras import KerasTensor, dynamic_shape, keras, prepare_inputs
from d2l_compat.tensorflow.attention import (
    attend_in_blocks,
    combine_lens,
    compute_weights,
    register,
    transpose_output,
)
from d2l_compat.tensorflow.windows import choose_blocks, clip_window

__all__ = ["CausalSelfAttention", "KVCache", "generate", "next_token_probs"]


class KVCache(cache.KVCache):
    __doc__ = cache.KVCache.__doc__
    arrays = arrays
    keys: tf.Variable
    values: tf.Variable

    def _zeros(self, shape: tuple[int, ...], **options: Any) -> tf.Variable:
        return tf.Variable(tf.zeros(shape, **options), trainable=False)

    def _itemsize(self) -> int:
        return self.keys.dtype.size

    def _write(self, keys: Tensor, values: Tensor, start: int, end: int) -> None:
        self.keys[:, :, start:end].assign(keys)
        self.values[:, :, start:end].assign(values)

    def _concat(self, old: tf.Variable, new: Tensor) -> Tensor:
        return tf.concat([old, tf.stop_gradient(new)], axis=2)

    def _take(self, both: Tensor, sources: np.ndarray) -> tf.Variable:
        return tf.Variable(tf.gather(both, sources, axis=2, batch_dims=1), trainable=False)


@register
class CausalSelfAttention(keras.layers.Layer):
    """Self-attention in which a token sees itself and what came before it, with a cache for generating.

    ``num_kv_heads`` heads of keys and values, a divisor of ``num_heads``, serve the heads of queries: query head h
    reads key head h // (num_heads / num_kv_heads). With as many, this is multi-head attention; with fewer,
    grouped-query attention (Ainslie et al., 2023); with one, multi-query attention (Shazeer, 2019). With ``rope``,
    queries and keys are rotated by their positions (:class:`RotaryEncoding`, interleaved). With a ``window``, a token
    sees the last ``window`` tokens, itself among them, and the text's first ``num_sinks`` (Xiao et al., 2024).
    """

    def __init__(
        self,
        num_hiddens: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = False,
        *,
        num_kv_heads: int | None = None,
        rope: bool = False,
        window: int | None = None,
        num_sinks: int = 0,
        **kwargs: Any,
    ) -> None:
        """Create the projections W_q, W_k, W_v and W_o; ``dropout`` is the share of weights dropped in training.

        ``kwargs`` are those of any Keras layer. Raises ValueError or TypeError for arguments of the wrong type or
        range.
        """
        checks.check_dropout(dropout)
        checks.check_flag("bias", bias)
        sizes = Sizes.check(num_hiddens, num_heads, num_kv_heads, window, num_sinks, rope)
        super().__init__(**kwargs)
        self.sizes, self.bias = sizes, bias
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

        def projection(size: int, name: str) -> keras.layers.Dense:
            return keras.layers.Dense(size, use_bias=bias, dtype=self.dtype_policy, name=name)

        self.W_q = projection(sizes.num_hiddens, "W_q")
        self.W_k = projection(sizes.kv_size, "W_k")
        self.W_v = projection(sizes.kv_size, "W_v")
        self.W_o = projection(sizes.num_hiddens, "W_o")

    def build(self, X_shape: Any) -> None:
        self.W_q.build(X_shape)
        self.W_k.build(X_shape)
        self.W_v.build(X_shape)
        self.W_o.build((None, None, self.sizes.num_hiddens))
        self.built = True

    def make_cache(self, batch_size: int, max_len: int) -> KVCache:
        """Return an empty cache for ``batch_size`` texts of up to ``max_len`` tokens.

        With a window, texts may have any length. The cache has the layer's compute dtype.
        """
        sizes = self.sizes
        return KVCache(
            batch_size,
            sizes.num_kv_heads,
            sizes.head_size,
            max_len,
            window=sizes.window,
            num_sinks=sizes.num_sinks,
            dtype=self.compute_dtype,
        )

    def __call__(
        self,
        X: Array,
        valid_lens: Array | None = None,
        cache: KVCache | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, integers of shape (batch,), counts the real tokens of each example; padding comes
        after them, and what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each
        text: they also see the cached ones, and are added to them. The results are those of one call with all
        tokens. ``training=True`` drops attention weights. Raises ValueError or TypeError for input that does not fit;
        the cache is then left as it was.

        A cache is for eager calls, since its lengths are NumPy's, and its shapes differ from call to call. A
        ``tf.function`` needs fixed shapes, and so a cache of its own: there, this one raises RuntimeError.
        """
        layer_inputs.check_texts(X, valid_lens, self.W_q)
        if cache is not None:
            self._check_cache(cache, X, valid_lens)
        (X,) = prepare_inputs(self, X)
        return super().__call__(X, valid_lens=valid_lens, cache=cache, **kwargs)

    def _check_cache(self, cache: KVCache, X: Array, valid_lens: Array | None) -> None:
        """Check that the cache fits before Keras, which would change the message, calls the layer."""
        if isinstance(X, KerasTensor) or not tf.executing_eagerly():
            raise RuntimeError("cache: it cannot be used in a graph; call the layer eagerly")
        lengths = start_lengths(cache, X.shape[0], self.sizes)
        new_key = tf.zeros((), self.compute_dtype)
        arrays.check_floating("cache, keys and values", cache.keys, new_key)
        check_room(cache.slots, lengths + _to_numpy(valid_lens, X))

    def call(
        self,
        X: Tensor,
        valid_lens: Tensor | None = None,
        training: bool | None = None,
        *,
        cache: KVCache | None = None,
    ) -> Tensor:
        batch, num_steps, _ = dynamic_shape(X)
        if cache is None:  # then lengths make no difference, since padding comes last
            positions = tf.range(num_steps)[tf.newaxis]
        else:
            lens = _to_numpy(valid_lens, X)
            positions = new_positions(cache.lengths, lens, num_steps)
        queries = self._split(self.W_q(X), positions, rope=self.sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=self.sizes.rope)
        values = self._split(self.W_v(X), positions)
        if cache is None:
            return self.W_o(self._attend(queries, keys, values, training))
        keys, values, key_positions = cache.append(keys, values, valid_lens)
        is_visible = self.sizes.visible_keys(positions, key_positions)
        # Heads of queries are grouped by the head of keys that they read.
        kv_heads, head_size = self.sizes.num_kv_heads, self.sizes.head_size
        num_groups = self.sizes.num_heads // kv_heads
        grouped = tf.reshape(queries, (batch, kv_heads, num_groups, num_steps, head_size))
        scores = tf.einsum("bhgqd,bhkd->bhgqk", grouped, keys) / math.sqrt(head_size)
        finite = tf.where(is_visible[:, tf.newaxis, tf.newaxis], scores, scores.dtype.min)
        weights = self.dropout(tf.nn.softmax(finite), training=training)
        pooled = tf.einsum("bhgqk,bhkd->bqhgd", weights, values)
        return self.W_o(tf.reshape(pooled, (batch, num_steps, self.sizes.num_hiddens)))

    def _attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, training: bool | None
    ) -> Tensor:
        """Attend without a cache; padding comes last, so that the causal mask hides it."""
        sizes = self.sizes
        _, _, num_steps, head_size = dynamic_shape(queries)
        num_groups = sizes.num_heads // sizes.num_kv_heads
        keys, values = (tf.repeat(X, num_groups, axis=1) for X in (keys, values))
        queries, keys, values = (
            tf.reshape(X, (-1, num_steps, head_size)) for X in (queries, keys, values)
        )
        num_sinks = sizes.num_sinks
        window = clip_window(sizes.window, keys, num_sinks)
        lens = combine_lens(None, True, queries, keys)
        is_dropping = training and self.dropout.rate > 0
        if blocks := choose_blocks(queries, keys, window, num_sinks):
            pooled = attend_in_blocks(
                queries, keys, values, blocks, dropout=self.dropout, training=training
            )
        elif _blockwise.is_long(queries) and window is None and not is_dropping:
            pooled = _blockwise.attend(queries, keys, values, lens)
        else:
            weights = compute_weights(queries, keys, lens, window=window, num_sinks=num_sinks)
            pooled = tf.matmul(self.dropout(weights, training=training), values)
        return transpose_output(pooled, sizes.num_heads)

    def _split(self, X: Tensor, positions: Any, rope: bool = False) -> Tensor:
        """Reshape (batch, steps, features) to (batch, heads, steps, head_size), and rotate by positions."""
        batch, num_steps, num_features = dynamic_shape(X)
        head_size = self.sizes.head_size
        num_heads = num_features // head_size
        X = tf.reshape(X, (batch, num_steps, num_heads, head_size))
        X = tf.transpose(X, (0, 2, 1, 3))
        if not rope:
            return X
        table = encoding.rotations_at(tf.cast(positions, tf.float64), head_size, xp=tf)
        cos, sin = tf.unstack(tf.cast(table, X.dtype)[:, :, tf.newaxis])
        x, y = X[..., ::2], X[..., 1::2]
        rotated = tf.stack([x * cos - y * sin, x * sin + y * cos], axis=-1)
        return tf.reshape(rotated, (batch, num_heads, num_steps, head_size))

    def get_config(self) -> dict[str, Any]:
        arguments = {**asdict(self.sizes), "dropout": self.dropout.rate, "bias": self.bias}
        return {**super().get_config(), **arguments}


def _to_numpy(valid_lens: Array | None, X: Array) -> np.ndarray:
    """Return the number of real tokens of each example as a NumPy array."""
    batch, num_steps = X.shape[:2]
    return np.full(batch, num_steps) if valid_lens is None else np.asarray(valid_lens)


generate = generation.make_generate(tf.constant)
