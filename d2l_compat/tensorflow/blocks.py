"""A Transformer of today: a block with options, and models made of such blocks.

The block is that of Vaswani et al. (2017), section 3.1, with what has been added since: normalization before the
layers (Xiong et al., 2020), RMSNorm (Zhang and Sennrich, 2019), gated networks (Shazeer, 2020), rotary positions (Su et
al., 2021) or ALiBi (Press et al., 2022), and fewer heads of keys and values (Ainslie et al., 2023).
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import Tensor

from d2l_compat._shared import blocks as shared
from d2l_compat._shared import checks, encoding
from d2l_compat._shared.blocks import BlockOptions, count_transformer_parameters
from d2l_compat._shared.cache import start_lengths
from d2l_compat.tensorflow import _blockwise
from d2l_compat.tensorflow._arrays import Array, layer_inputs
from d2l_compat.tensorflow._dropout import Dropout
from d2l_compat.tensorflow._keras import (
    KerasTensor,
    convert_input,
    dynamic_shape,
    keras,
    prepare_inputs,
)
from d2l_compat.tensorflow.attention import MultiHeadAttention, register
from d2l_compat.tensorflow.generation import CausalSelfAttention, KVCache
from d2l_compat.tensorflow.seq2seq import Seq2Seq

__all__ = [
    "BlockDecoder",
    "BlockEncoder",
    "BlockSeq2Seq",
    "TransformerBlock",
    "count_transformer_parameters",
]

AXES = "batch", "steps", "features"
# A decoder checks a memory before it has queries: then only their shape and dtype are known.
inputs_or_specs = type(layer_inputs)(*layer_inputs.types, tf.TensorSpec)


class _SelfAttention(CausalSelfAttention):
    """Self-attention with or without a causal mask, and with a bias of the scores."""

    def __init__(self, options: BlockOptions, **kwargs: Any) -> None:
        arguments = asdict(options.sizes)
        super().__init__(**arguments, dropout=options.dropout, bias=options.bias, **kwargs)
        self.options = options

    def __call__(
        self,
        X: Array,
        valid_lens: Array | None = None,
        cache: KVCache | None = None,
        score_bias: Array | None = None,
        **kwargs: Any,
    ) -> Tensor:
        self.check_masks(X, valid_lens, cache, score_bias)
        score_bias = convert_input(self, score_bias)
        return super().__call__(X, valid_lens, cache, score_bias=score_bias, **kwargs)

    def check_masks(
        self, X: Array, valid_lens: Array | None, cache: Any, score_bias: Array | None = None
    ) -> None:
        """Check the cache and the bias for a call with ``X``, or with features in the place of tokens ``X``."""
        shared.check_cache(cache, score_bias, self.options)
        layer_inputs.check_score_bias(score_bias, X, X, self.sizes.num_heads)
        if cache is not None:
            self._check_cache(cache, X, valid_lens)

    def call(
        self,
        X: Tensor,
        valid_lens: Tensor | None = None,
        training: bool | None = None,
        *,
        cache: KVCache | None = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        options, sizes = self.options, self.sizes
        if options.causal and options.positions != "alibi" and score_bias is None:
            return super().call(X, valid_lens, training, cache=cache)
        positions = key_positions = find_positions(X, valid_lens, cache)
        queries = self._split(self.W_q(X), positions, rope=sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=sizes.rope)
        values = self._split(self.W_v(X), positions)
        if cache is not None:
            keys, values, held_positions = cache.append(keys, values, valid_lens)
            key_positions = tf.constant(held_positions, positions.dtype)
        num_groups = sizes.num_heads // sizes.num_kv_heads
        keys, values = (tf.repeat(x, num_groups, axis=1) for x in (keys, values))
        scores = tf.matmul(queries / math.sqrt(sizes.head_size), keys, transpose_b=True)
        if options.causal:
            is_visible = sizes.visible_keys(positions, key_positions)
        else:
            is_visible = key_positions[:, tf.newaxis] >= 0
        if options.positions == "alibi":
            alibi = self._alibi(positions, key_positions, scores.dtype)
            score_bias = alibi if score_bias is None else score_bias + alibi
        weights = _blockwise.softmax(scores, None, score_bias, is_visible[:, tf.newaxis])
        pooled = tf.matmul(self.dropout(weights, training=training), values)
        merged_shape = (*dynamic_shape(X)[:2], sizes.num_hiddens)
        return self.W_o(tf.reshape(tf.transpose(pooled, (0, 2, 1, 3)), merged_shape))

    def _alibi(self, positions: Tensor, key_positions: Tensor, dtype: tf.DType) -> Tensor:
        """Return ALiBi's bias, shape (batch or 1, heads, queries, keys)."""
        slopes = encoding.slopes(self.sizes.num_heads)[:, np.newaxis, np.newaxis]
        distances = tf.abs(positions[:, :, tf.newaxis] - key_positions[:, tf.newaxis])
        return tf.cast(-slopes * tf.cast(distances, tf.float64)[:, tf.newaxis], dtype)


def find_positions(X: Tensor, valid_lens: Tensor | None, cache: KVCache | None = None) -> Tensor:
    """Return the positions of the tokens in ``X``, shape (batch or 1, steps), -1 for padding."""
    step = tf.range(dynamic_shape(X)[1])[tf.newaxis]
    positions = step
    if cache is not None:
        positions = step + tf.constant(cache.lengths[:, np.newaxis], step.dtype)
    if valid_lens is None:
        return positions
    lens = tf.cast(valid_lens, step.dtype)
    return tf.where(step < lens[:, tf.newaxis], positions, -1)


class _Network(keras.layers.Layer):
    """The position-wise network W_2 f(W_1 x), with "swiglu" W_2 (silu(W_gate x) * W_1 x), each with its biases."""

    def __init__(self, options: BlockOptions, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.options = options

        def dense(size: int, name: str) -> keras.layers.Dense:
            return keras.layers.Dense(
                size, use_bias=options.bias, dtype=self.dtype_policy, name=name
            )

        if options.activation == "swiglu":
            self.gate = dense(options.ffn_num_hiddens, "gate")
        self.dense1 = dense(options.ffn_num_hiddens, "dense1")
        self.dense2 = dense(options.sizes.num_hiddens, "dense2")

    def build(self, X_shape: Any) -> None:
        if self.options.activation == "swiglu":
            self.gate.build(X_shape)
        self.dense1.build(X_shape)
        self.dense2.build((None, None, self.options.ffn_num_hiddens))
        self.built = True

    def call(self, X: Tensor) -> Tensor:
        hidden = self.dense1(X)
        match self.options.activation:
            case "swiglu":
                return self.dense2(tf.nn.silu(self.gate(X)) * hidden)
            case "gelu":
                # TensorFlow's own has the root of 2 in float32.
                return self.dense2(hidden * (1 + tf.math.erf(hidden / math.sqrt(2))) / 2)
        return self.dense2(tf.nn.relu(hidden))


class _RMSNorm(keras.layers.Layer):
    """Division by the root of the mean square, and multiplication by ``scale``; only newer versions of Keras have it.

    The mean of float16 and bfloat16 is computed in float32.
    """

    def __init__(self, epsilon: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, X_shape: Any) -> None:
        self.scale = self.add_weight(name="scale", shape=(X_shape[-1],), initializer="ones")
        self.built = True

    def call(self, X: Tensor) -> Tensor:
        wide = tf.cast(X, tf.float32) if X.dtype.size < tf.float32.size else X
        mean_square = tf.reduce_mean(tf.square(wide), axis=-1, keepdims=True)
        normalized = wide * tf.math.rsqrt(mean_square + self.epsilon)
        return tf.cast(normalized, X.dtype) * self.scale


def make_norm(options: BlockOptions, **kwargs: Any) -> keras.layers.Layer:
    """Return a new layer of the block's kind of normalization."""
    kind = keras.layers.LayerNormalization if options.norm == "layer" else _RMSNorm
    return kind(epsilon=options.norm_epsilon, **kwargs)


@register
class TransformerBlock(keras.layers.Layer):
    """A Transformer block: self-attention and a network at each position, each added to its input.

    With ``norm_first`` the input of each layer is normalized, x + f(norm(x)), otherwise the sum, norm(x + f(x)).
    ``norm`` is "layer" or "rms", with ``norm_epsilon`` added to the variance or the mean square. ``activation`` is
    "relu", "gelu" (exact) or "swiglu", which gates the network with a third matrix. ``positions`` is "rope" (interleaved)
    or "alibi", or None if they come from elsewhere. ``bias`` is that of all linear layers.

    With ``causal``, a token sees itself and what came before it, or of that only the last ``window`` tokens and the
    text's first ``num_sinks``; such a block can use a cache. ``num_kv_heads`` heads of keys and values serve
    ``num_heads`` of queries. With ``cross_attention``, the block also reads a memory, between its other two layers.

    The parts are ``norm1``, ``attention``, with ``cross_attention`` also ``norm2`` and ``cross_attention``, then
    ``norm3`` and ``network``.
    """

    def __init__(
        self,
        num_hiddens: int,
        num_heads: int,
        ffn_num_hiddens: int,
        dropout: float = 0.0,
        *,
        norm: str = "layer",
        norm_first: bool = True,
        activation: str = "gelu",
        bias: bool = True,
        positions: str | None = None,
        causal: bool = False,
        cross_attention: bool = False,
        num_kv_heads: int | None = None,
        window: int | None = None,
        num_sinks: int = 0,
        norm_epsilon: float = 1e-5,
        **kwargs: Any,
    ) -> None:
        """Create the layers; ``dropout`` is the share dropped in training, of attention weights and of what is added.

        ``kwargs`` are those of any Keras layer. Raises ValueError or TypeError for arguments of the wrong type or
        range, or that do not fit together.
        """
        options = BlockOptions.check(
            num_hiddens=num_hiddens,
            num_heads=num_heads,
            ffn_num_hiddens=ffn_num_hiddens,
            dropout=dropout,
            norm=norm,
            norm_first=norm_first,
            activation=activation,
            bias=bias,
            positions=positions,
            causal=causal,
            cross_attention=cross_attention,
            num_kv_heads=num_kv_heads,
            window=window,
            num_sinks=num_sinks,
            norm_epsilon=norm_epsilon,
        )
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.options = options
        self.norm1 = make_norm(options, dtype=policy, name="norm1")
        self.attention = _SelfAttention(options, dtype=policy, name="attention")
        if options.cross_attention:
            self.norm2 = make_norm(options, dtype=policy, name="norm2")
            self.cross_attention = MultiHeadAttention(
                options.sizes.num_hiddens,
                options.sizes.num_heads,
                dropout,
                bias,
                dtype=policy,
                name="cross_attention",
            )
        self.norm3 = make_norm(options, dtype=policy, name="norm3")
        self.network = _Network(options, dtype=policy, name="network")
        self.drop = Dropout(dropout, dtype=policy)

    def build(self, X_shape: Any) -> None:
        shape = (None, None, self.options.sizes.num_hiddens)
        self.norm1.build(shape)
        self.attention.build(shape)
        if self.options.cross_attention:
            self.norm2.build(shape)
            self.cross_attention.build(shape, shape, shape)
        self.norm3.build(shape)
        self.network.build(shape)
        self.built = True

    def make_cache(self, batch_size: int, max_len: int) -> KVCache:
        """Return an empty cache for ``batch_size`` texts of up to ``max_len`` tokens; with a window, of any length."""
        return self.attention.make_cache(batch_size, max_len)

    def __call__(
        self,
        X: Array,
        valid_lens: Array | None = None,
        *,
        cache: KVCache | None = None,
        memory: Array | None = None,
        memory_valid_lens: Array | None = None,
        score_bias: Array | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Return the block's output, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, integers of shape (batch,), counts the real tokens of each example; padding comes after them, and
        what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each text; it is for eager
        calls, as in :class:`CausalSelfAttention`. ``memory`` has the shape (batch, memory steps, num_hiddens), of which
        the first ``memory_valid_lens`` are real. ``score_bias`` is added to the scores of self-attention, shape (steps,
        steps), (heads, steps, steps) or (batch, heads, steps, steps); not with a cache. ``training=True`` activates
        dropout. Raises ValueError or TypeError for input that does not fit; the cache is then left as it was.
        """
        # Check before `call`, since Keras rewords the errors of layers in layers.
        layer_inputs.check_texts(X, valid_lens, self.attention.W_q)
        layer_inputs.check_last_dimension("X", X, self.options.sizes.num_hiddens)
        memory_valid_lens = self.check_memory(X, memory, memory_valid_lens)
        self.attention.check_masks(X, valid_lens, cache, score_bias)
        (X,) = prepare_inputs(self, X)
        return super().__call__(
            X,
            valid_lens=valid_lens,
            cache=cache,
            memory=convert_input(self, memory),
            memory_valid_lens=memory_valid_lens,
            score_bias=convert_input(self, score_bias),
            **kwargs,
        )

    def check_memory(
        self, queries: Array | tf.TensorSpec, memory: Array | None, memory_valid_lens: Array | None
    ) -> Any:
        """Check the memory; return the lengths as integers."""
        shared.check_memory(memory, memory_valid_lens, self.options)
        if memory is None:
            return None
        inputs_or_specs.check_rank("memory", memory, AXES)
        inputs_or_specs.check_attention(queries, memory, memory)
        inputs_or_specs.check_last_dimension("memory", memory, self.options.sizes.num_hiddens)
        return inputs_or_specs.check_valid_lens(memory_valid_lens, queries, memory)

    def call(
        self,
        X: Tensor,
        valid_lens: Tensor | None = None,
        training: bool | None = None,
        *,
        cache: KVCache | None = None,
        memory: Tensor | None = None,
        memory_valid_lens: Tensor | None = None,
        score_bias: Tensor | None = None,
    ) -> Tensor:
        def attend(X: Tensor) -> Tensor:
            return self.attention(X, valid_lens, cache, score_bias, training=training)

        def read(X: Tensor) -> Tensor:
            return self.cross_attention(X, memory, memory, memory_valid_lens, training=training)

        X = self._add(X, self.norm1, attend, training)
        if memory is not None:
            X = self._add(X, self.norm2, read, training)
        return self._add(X, self.norm3, self.network, training)

    def _add(
        self,
        X: Tensor,
        norm: keras.layers.Layer,
        layer: Callable[[Tensor], Tensor],
        training: bool | None,
    ) -> Tensor:
        if self.options.norm_first:
            return X + self.drop(layer(norm(X)), training=training)
        return norm(X + self.drop(layer(X), training=training))

    def get_config(self) -> dict[str, Any]:
        options = asdict(self.options)
        sizes = options.pop("sizes")
        del sizes["rope"]
        return {**super().get_config(), **sizes, **options}


class _BlockModel(keras.layers.Layer):
    """An embedding with positions, blocks, and the normalization that follows them if theirs comes first."""

    is_causal: bool

    def __init__(
        self,
        vocab_size: int,
        blocks: Sequence[TransformerBlock],
        *,
        positions: str | None = "sinusoidal",
        dropout: float = 0.0,
        max_len: int = 1000,
        **kwargs: Any,
    ) -> None:
        """Create the layers around the ``blocks``; ``dropout`` is the share of the embedding dropped in training.

        ``kwargs`` are those of any Keras layer. Raises ValueError or TypeError for arguments of the wrong type or
        range, and for blocks of different sizes.
        """
        vocab_size = checks.size("vocab_size", vocab_size)
        blocks = shared.check_blocks(blocks, TransformerBlock, causal=self.is_causal)
        max_len = shared.check_model_positions(positions, max_len, dropout)
        super().__init__(**kwargs)
        policy = self.dtype_policy
        options = blocks[-1].options
        self.num_hiddens, self.positions = options.sizes.num_hiddens, positions
        self.max_len = max_len
        self.embedding = keras.layers.Embedding(
            vocab_size, self.num_hiddens, dtype=policy, name="embedding"
        )
        if positions == "learned":
            self.position_embedding = keras.layers.Embedding(
                max_len, self.num_hiddens, dtype=policy, name="position_embedding"
            )
        elif positions == "sinusoidal":
            with tf.init_scope():  # not in a graph that is being traced
                table = encoding.sinusoids(max_len, self.num_hiddens)
                self._table = tf.constant(table, self.compute_dtype)
        self.drop = Dropout(dropout, dtype=policy)
        self.blks = blocks
        if options.norm_first:
            self.norm = make_norm(options, dtype=policy, name="norm")
        else:
            self.norm = keras.layers.Identity(dtype=policy, name="norm")
        if self.is_causal:
            self.dense = keras.layers.Dense(
                vocab_size, use_bias=options.bias, dtype=policy, name="dense"
            )

    def build(self, X_shape: Any) -> None:
        shape = (None, None, self.num_hiddens)
        self.embedding.build((None, None))
        if self.positions == "learned":
            self.position_embedding.build((None, None))
        for block in self.blks:
            if not block.built:
                block.build(shape)
        self.norm.build(shape)
        if self.is_causal:
            self.dense.build(shape)
        self.built = True

    def _embed(self, tokens: Tensor, positions: Tensor, training: bool | None) -> Tensor:
        """Embed tokens (batch, steps) at ``positions`` (batch or 1, steps), -1 for padding."""
        X = self.embedding(tokens)
        positions = tf.maximum(positions, 0)
        if self.positions == "learned":
            X = X + self.position_embedding(positions)
        elif self.positions == "sinusoidal":
            X = X * math.sqrt(self.num_hiddens) + tf.gather(self._table, positions)
        return self.drop(X, training=training)

    def _check_tokens(
        self, X: Array, valid_lens: Array | None, cache: KVCache | None = None
    ) -> None:
        """Check the tokens and, as far as they are known, their positions."""
        layer_inputs.check_tokens(X, self.embedding.input_dim)
        batch, num_steps = X.shape
        checks.check_steps("X", X.shape, num_steps)
        layer_inputs.check_text_lens(valid_lens, *layer_inputs.shape(X))
        if tf.executing_eagerly() and not isinstance(X, KerasTensor):
            start = start_lengths(cache, batch, self.blks[0].options.sizes)
            ends = start + (num_steps if valid_lens is None else np.asarray(valid_lens))
        elif num_steps is not None and valid_lens is None:
            ends = np.array(num_steps)
        else:
            return
        if self.positions is not None:
            shared.check_room(ends - 1, self.max_len)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocab_size": self.embedding.input_dim,
            "blocks": [keras.saving.serialize_keras_object(block) for block in self.blks],
            "positions": self.positions,
            "dropout": self.drop.rate,
            "max_len": self.max_len,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        blocks = [keras.saving.deserialize_keras_object(block) for block in config["blocks"]]
        return cls(**{**config, "blocks": blocks})


@register
class BlockEncoder(_BlockModel):
    """A Transformer's encoder: an embedding of tokens with their positions, and blocks without a causal mask.

    ``positions`` is "sinusoidal", "learned" for a table of ``max_len`` rows, or None if the blocks have their own.
    With "sinusoidal", the embedding is scaled by sqrt(num_hiddens) (Vaswani et al., 2017, section 3.4). If the blocks
    normalize first, a normalization follows the last.
    """

    is_causal = False

    def __call__(self, X: Array, valid_lens: Array | None = None, **kwargs: Any) -> Tensor:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        ``valid_lens``, shape (batch,), counts the tokens of each text; the others are padding. ``training=True``
        activates dropout. Raises ValueError or TypeError for other input.
        """
        self._check_tokens(X, valid_lens)
        (X,) = prepare_inputs(self, X)
        return super().__call__(X, valid_lens=valid_lens, **kwargs)

    def call(
        self, X: Tensor, valid_lens: Tensor | None = None, training: bool | None = None
    ) -> Tensor:
        H = self._embed(X, find_positions(X, valid_lens), training)
        for block in self.blks:
            H = block(H, valid_lens, training=training)
        return self.norm(H)


@register
class BlockDecoder(_BlockModel):
    """A Transformer's decoder, or a language model: blocks with a causal mask, and logits for the next token.

    The arguments are those of :class:`BlockEncoder`. The blocks read a memory if they have cross-attention. The last
    layer, ``dense``, has a bias if the blocks have.
    """

    is_causal = True

    def make_caches(self, batch_size: int, max_len: int) -> list[KVCache]:
        """Return an empty cache for each block, for ``batch_size`` texts of up to ``max_len`` tokens."""
        return [block.make_cache(batch_size, max_len) for block in self.blks]

    def __call__(
        self,
        X: Array,
        valid_lens: Array | None = None,
        *,
        caches: Sequence[KVCache] | None = None,
        memory: Array | None = None,
        memory_valid_lens: Array | None = None,
        **kwargs: Any,
    ) -> Tensor:
        """Return logits (batch, steps, vocab_size) of the tokens that follow those in ``X``, (batch, steps).

        ``valid_lens``, shape (batch,), counts the tokens of each text; the others are padding. With ``caches``, ``X``
        has the next tokens of each text, and the logits are those of one call with all tokens; such a call is eager.
        ``memory``, (batch, memory steps, num_hiddens), of which the first ``memory_valid_lens`` are real, is what an
        encoder returns. ``training=True`` activates dropout. Raises ValueError or TypeError for other input; the caches
        are then left as they were.
        """
        block_caches = shared.check_caches(caches, len(self.blks))
        self._check_tokens(X, valid_lens, block_caches[0])
        queries = tf.TensorSpec((*X.shape, self.num_hiddens), self.compute_dtype)
        for block, cache in zip(self.blks, block_caches, strict=True):
            lens = block.check_memory(queries, memory, memory_valid_lens)
            block.attention.check_masks(X, valid_lens, cache)
        (X,) = prepare_inputs(self, X)
        return super().__call__(
            X,
            valid_lens=valid_lens,
            caches=caches,
            memory=convert_input(self, memory),
            memory_valid_lens=lens,
            **kwargs,
        )

    def call(
        self,
        X: Tensor,
        valid_lens: Tensor | None = None,
        training: bool | None = None,
        *,
        caches: Sequence[KVCache] | None = None,
        memory: Tensor | None = None,
        memory_valid_lens: Tensor | None = None,
    ) -> Tensor:
        block_caches = shared.check_caches(caches, len(self.blks))
        H = self._embed(X, find_positions(X, valid_lens, block_caches[0]), training)
        for block, cache in zip(self.blks, block_caches, strict=True):
            H = block(
                H,
                valid_lens,
                cache=cache,
                memory=memory,
                memory_valid_lens=memory_valid_lens,
                training=training,
            )
        return self.dense(self.norm(H))


class BlockSeq2Seq(Seq2Seq):
    """An encoder and a decoder made of blocks, trained with teacher forcing by D2L's ``Trainer``.

    ``tgt_pad`` is the padding token, which the loss ignores, and ``lr`` Adam's learning rate.
    """

    encoder: BlockEncoder
    decoder: BlockDecoder

    def forward(self, enc_X: Tensor, dec_X: Tensor, enc_valid_lens: Tensor) -> Tensor:
        """Return logits (batch, steps, vocab_size) of the tokens that follow those in ``dec_X``, (batch, steps)."""
        memory = self.encoder(enc_X, enc_valid_lens)
        return self.decoder(dec_X, memory=memory, memory_valid_lens=enc_valid_lens)

    def predict_step(
        self,
        batch: Any,
        device: AbstractContextManager[Any],
        num_steps: int,
        save_attention_weights: bool = False,
    ) -> tuple[Tensor, list[Any]]:
        """Decode a batch greedily, with caches; return tokens (batch, num_steps), and attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target are used. The weights
        are those of cross-attention, a tensor (batch, heads, 1, source steps) for each block. Dropout is off.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lens, _ = batch
        tokens, weights = [target[:, :1]], []
        with device:
            memory = self.encoder(source, lens, training=False)
            caches = self.decoder.make_caches(len(source), num_steps)
            for _ in range(num_steps):
                logits = self.decoder(
                    tokens[-1], caches=caches, memory=memory, memory_valid_lens=lens, training=False
                )
                tokens.append(tf.argmax(logits, axis=2, output_type=target.dtype))
                if save_attention_weights:
                    blocks = self.decoder.blks
                    weights.append([block.cross_attention.attention_weights for block in blocks])
            return tf.concat(tokens[1:], axis=1), weights
