"""Causal linear attention: attention without a softmax, which a state of fixed size can compute token by token."""

from dataclasses import asdict
from typing import Any

import ml_dtypes
import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import checks, linear_attention
from d2l_compat._shared.checks import message
from d2l_compat._shared.linear_attention import (
    CHUNK_SIZE,
    Decay,
    LinearSizes,
    check_state,
    smallest_total,
)
from d2l_compat.tensorflow._arrays import Array, arrays, layer_inputs
from d2l_compat.tensorflow._keras import KerasTensor, dynamic_shape, keras, prepare_inputs
from d2l_compat.tensorflow.attention import register

__all__ = ["LinearAttention"]


class LinearState(linear_attention.LinearState):
    __doc__ = linear_attention.LinearState.__doc__
    kv: tf.Variable
    k: tf.Variable

    def reset(self) -> None:
        self.assign(tf.zeros_like(self.kv), tf.zeros_like(self.k))

    @property
    def nbytes(self) -> int:
        return sum(x.dtype.size * x.shape.num_elements() for x in (self.kv, self.k))

    def assign(self, kv: Tensor, k: Tensor) -> None:
        self.kv.assign(kv)
        self.k.assign(k)


@register
class LinearAttention(keras.layers.Layer):
    """Causal linear attention, Katharopoulos et al. (2020), with several heads and a decay.

    The weight of key j for query i is a^(i - j) f(q_i) . f(k_j), divided by the sum of the weights, where f(x) = elu(x)
    + 1 is positive, and a is the head's ``decay``: 1 keeps all of the past. Since there is no softmax, what a query
    needs of the past is a sum that each token adds to: time grows with the length, and not with its square.
    """

    def __init__(
        self,
        num_hiddens: int,
        num_heads: int,
        bias: bool = False,
        *,
        decay: Decay = 1.0,
        **kwargs: Any,
    ) -> None:
        """Create the projections W_q, W_k, W_v and W_o; ``decay`` is above 0 and at most 1, one number or one per head.

        ``kwargs`` are those of any Keras layer. Raises ValueError or TypeError for arguments of the wrong type or
        range.
        """
        checks.check_flag("bias", bias)
        sizes = LinearSizes.check(num_hiddens, num_heads, decay)
        super().__init__(**kwargs)
        self.sizes, self.bias = sizes, bias

        def projection(name: str) -> keras.layers.Dense:
            return keras.layers.Dense(
                sizes.num_hiddens, use_bias=bias, dtype=self.dtype_policy, name=name
            )

        self.W_q = projection("W_q")
        self.W_k = projection("W_k")
        self.W_v = projection("W_v")
        self.W_o = projection("W_o")

    def build(self, X_shape: Any) -> None:
        self.W_q.build(X_shape)
        self.W_k.build(X_shape)
        self.W_v.build(X_shape)
        self.W_o.build((None, None, self.sizes.num_hiddens))
        self.built = True

    def make_state(self, batch_size: int) -> LinearState:
        """Return a state of zeros for ``batch_size`` texts, with the layer's compute dtype."""
        batch_size = checks.size("batch_size", batch_size)
        zeros = self._zeros(batch_size)
        return LinearState(*(tf.Variable(x, trainable=False) for x in zeros))

    def __call__(
        self,
        X: Array,
        state: LinearState | None = None,
        chunk_size: int | None = CHUNK_SIZE,
        **kwargs: Any,
    ) -> Tensor:
        """Return each token's attention pooling, of the shape of ``X``: (batch, steps, num_hiddens).

        The text is read in chunks of ``chunk_size`` tokens, whose weights form a matrix: None reads all at once, in
        parallel, and 1 token by token, as a recurrent network does. The results are the same. With a ``state``,
        ``X`` has the next tokens of each text: they also see earlier ones, and are added to the state. Raises
        ValueError or TypeError for input that does not fit; the state is then left as it was.

        A graph needs a known number of steps. A ``tf.function`` may read and update a state; a model that is made of
        symbolic inputs cannot.
        """
        layer_inputs.check_texts(X, None, self.W_q)
        num_steps = X.shape[1]
        if num_steps is None:
            raise ValueError(message("X", "an unknown number of steps", "a known one in a graph"))
        self.sizes.chunk_lengths(num_steps, chunk_size)
        if state is not None:
            self._check_state(state, X)
        (X,) = prepare_inputs(self, X)
        return super().__call__(X, state=state, chunk_size=chunk_size, **kwargs)

    def _check_state(self, state: LinearState, X: Array) -> None:
        """Check that the state fits before Keras, which would change the message, calls the layer."""
        if isinstance(X, KerasTensor):
            raise TypeError(message("X, with a state", "a symbolic tensor", "a tensor"))
        check_state(state, layer_inputs.shape(X)[0], self.sizes, LinearState)
        new_key = tf.zeros((), self.compute_dtype)
        arrays.check_floating("state, keys and values", state.kv, new_key)

    def call(
        self, X: Tensor, *, state: LinearState | None = None, chunk_size: int | None = CHUNK_SIZE
    ) -> Tensor:
        batch, num_steps, _ = dynamic_shape(X)
        lengths = self.sizes.chunk_lengths(num_steps, chunk_size)
        queries = tf.nn.elu(self._split_heads(self.W_q(X))) + 1
        keys = tf.nn.elu(self._split_heads(self.W_k(X))) + 1
        values = self._split_heads(self.W_v(X))
        kv, k = self._zeros(batch) if state is None else (state.kv, state.k)
        powers = {length: self._powers(length, keys.dtype) for length in {*lengths}}
        outputs = []
        # Slicing in the loop would make the backward pass quadratic: each slice has a gradient of full size.
        chunks = zip(*(tf.split(x, lengths, axis=2) for x in (queries, keys, values)), strict=True)
        for chunk, length in zip(chunks, lengths, strict=True):
            output, kv, k = self._attend(chunk, kv, k, powers[length])
            outputs.append(output)
        if state is not None:
            state.assign(kv, k)
        output = tf.transpose(tf.concat(outputs, axis=2), (0, 2, 1, 3))
        return self.W_o(tf.reshape(output, (batch, num_steps, self.sizes.num_hiddens)))

    def _attend(
        self, chunk: tuple[Tensor, ...], kv: Tensor, k: Tensor, powers: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the pooling of a chunk of queries, keys and values, (batch, heads, steps, features), and new sums."""
        queries, keys, values = chunk
        within, from_state, to_state, whole = powers
        weights = tf.matmul(queries, keys, transpose_b=True) * within
        decayed_queries = queries * from_state[..., tf.newaxis]
        pooled = tf.matmul(weights, values) + tf.matmul(decayed_queries, kv)
        seen = tf.matmul(decayed_queries, k[..., tf.newaxis])
        total = tf.reduce_sum(weights, axis=-1, keepdims=True) + seen
        decayed_keys = keys * to_state[..., tf.newaxis]
        kv = kv * whole[..., tf.newaxis] + tf.matmul(decayed_keys, values, transpose_a=True)
        k = k * whole + tf.reduce_sum(decayed_keys, axis=2)
        # Far below 0, all weights may be 0, or so small that the gradient would overflow.
        smallest = ml_dtypes.finfo(total.dtype.as_numpy_dtype).tiny
        is_small = total < smallest_total(float(smallest))
        return pooled / tf.where(is_small, tf.ones_like(total), total), kv, k

    def _powers(self, num_steps: int, dtype: tf.DType) -> tuple[Tensor, ...]:
        """Return the decay's powers for a chunk: within it, from and to the state, and over the whole."""
        powers = self.sizes.powers(num_steps)
        exact = powers.within, powers.from_state, powers.to_state, powers.whole
        return tuple(tf.constant(x, dtype) for x in exact)

    def _split_heads(self, X: Tensor) -> Tensor:
        """Reshape (batch, steps, num_hiddens) to (batch, heads, steps, features)."""
        batch, num_steps, _ = dynamic_shape(X)
        sizes = self.sizes
        X = tf.reshape(X, (batch, num_steps, sizes.num_heads, sizes.head_size))
        return tf.transpose(X, (0, 2, 1, 3))

    def _zeros(self, batch_size: int | Tensor) -> tuple[Tensor, Tensor]:
        """Return sums of no keys, and of no products of keys and values."""
        heads, size = self.sizes.num_heads, self.sizes.head_size
        kv = tf.zeros((batch_size, heads, size, size), self.compute_dtype)
        k = tf.zeros((batch_size, heads, size), self.compute_dtype)
        return kv, k

    def get_config(self) -> dict[str, Any]:
        arguments = {**asdict(self.sizes), "bias": self.bias}
        return {**super().get_config(), **arguments}
