"""A Transformer of today: a block with options, and models made of such blocks.

The block is that of Vaswani et al. (2017), section 3.1, with what has been added since: normalization before the
layers (Xiong et al., 2020), RMSNorm (Zhang and Sennrich, 2019), gated networks (Shazeer, 2020), rotary positions (Su et
al., 2021) or ALiBi (Press et al., 2022), and fewer heads of keys and values (Ainslie et al., 2023).

The layers are Flax (linen) modules: caches are passed in, and the new ones are returned with the output. With
``training``, layers with dropout need a key named "dropout".
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from d2l_compat._shared import blocks as shared
from d2l_compat._shared import checks
from d2l_compat._shared.blocks import BlockOptions, count_transformer_parameters
from d2l_compat._shared.cache import new_positions, start_lengths
from d2l_compat.jax import _blockwise
from d2l_compat.jax._arrays import Array, arrays, as_jax, check_training
from d2l_compat.jax.attention import MultiHeadAttention, PositionalEncoding
from d2l_compat.jax.generation import CausalSelfAttention, KVCache
from d2l_compat.jax.seq2seq import Seq2Seq

__all__ = [
    "BlockDecoder",
    "BlockEncoder",
    "BlockSeq2Seq",
    "TransformerBlock",
    "count_transformer_parameters",
]


class _SelfAttention(CausalSelfAttention):
    """Self-attention with or without a causal mask, and with a bias of the scores."""

    _: KW_ONLY
    options: BlockOptions

    def __call__(
        self,
        X: Array,
        valid_lens: Array | None = None,
        training: bool = False,
        *,
        cache: KVCache | None = None,
        score_bias: Array | None = None,
    ) -> jax.Array | tuple[jax.Array, KVCache]:
        options, sizes = self.options, self.sizes
        shared.check_cache(cache, score_bias, options)
        if options.causal and options.positions != "alibi" and score_bias is None:
            return super().__call__(X, valid_lens, training, cache=cache)
        X = as_jax(X)
        score_bias = None if score_bias is None else as_jax(score_bias)
        arrays.check_texts(X, valid_lens, self.W_q)
        arrays.check_score_bias(score_bias, X, X, sizes.num_heads)
        batch, num_steps, _ = X.shape
        lens = jnp.full(batch, num_steps) if valid_lens is None else jnp.asarray(valid_lens)
        lengths = start_lengths(cache, batch, sizes, KVCache)
        positions = key_positions = new_positions(lengths, lens, num_steps, jnp)
        queries = self._split(self.W_q(X), positions, rope=sizes.rope)
        keys = self._split(self.W_k(X), positions, rope=sizes.rope)
        values = self._split(self.W_v(X), positions)
        if cache is not None:
            cache, keys, values, key_positions = cache.append(keys, values, lens)
        is_padded = valid_lens is not None
        bias = shared.score_mask(positions, key_positions, options, jnp, is_padded=is_padded)
        if score_bias is not None:
            bias = score_bias if bias is None else score_bias + bias
        pooled = self._attend_with_bias(queries, keys, values, bias, training)
        output = self.W_o(pooled.swapaxes(1, 2).reshape(batch, num_steps, sizes.num_hiddens))
        if cache is None:
            return output
        if not cache.slots.is_rolling:
            is_stored = positions < cache.slots.size
            output = jnp.where(is_stored[:, :, None], output, jnp.nan)
        return output, cache

    def _attend_with_bias(
        self,
        queries: jax.Array,
        keys: jax.Array,
        values: jax.Array,
        bias: jax.Array | None,
        training: bool,
    ) -> jax.Array:
        """Attend with a bias of the scores that broadcasts to (batch, heads, queries, keys)."""
        # Each head of queries gets its own copy of the keys and values that it reads.
        group_size = self.sizes.num_heads // self.sizes.num_kv_heads
        keys, values = (jnp.repeat(X, group_size, axis=1) for X in (keys, values))
        scores = queries @ keys.swapaxes(2, 3) / math.sqrt(self.sizes.head_size)
        bias = None if bias is None else bias.astype(scores.dtype)
        weights = _blockwise.softmax(scores, None, bias)
        return self.drop(weights, deterministic=not training) @ values


class _Network(nn.Module):
    """The position-wise network W_2 f(W_1 x), with "swiglu" W_2 (silu(W_gate x) * W_1 x), each with its biases."""

    options: BlockOptions

    def setup(self) -> None:
        dense = partial(nn.Dense, use_bias=self.options.bias)
        if self.options.activation == "swiglu":
            self.gate = dense(self.options.ffn_num_hiddens)
        self.dense1 = dense(self.options.ffn_num_hiddens)
        self.dense2 = dense(self.options.sizes.num_hiddens)

    def __call__(self, X: jax.Array) -> jax.Array:
        hidden = self.dense1(X)
        match self.options.activation:
            case "swiglu":
                hidden = nn.silu(self.gate(X)) * hidden
            case "gelu":
                hidden = nn.gelu(hidden, approximate=False)
            case _:
                hidden = nn.relu(hidden)
        return self.dense2(hidden)


class TransformerBlock(nn.Module):
    """A Transformer block: self-attention and a network at each position, each added to its input.

    With ``norm_first`` the input of each layer is normalized, x + f(norm(x)), otherwise the sum, norm(x + f(x)).
    ``norm`` is "layer" or "rms", with ``norm_epsilon`` added to the variance or the mean square. ``activation`` is
    "relu", "gelu" (exact) or "swiglu", which gates the network with a third matrix. ``positions`` is "rope" (interleaved)
    or "alibi", or None if they come from elsewhere. ``bias`` is that of all linear layers. ``dropout`` is the share
    dropped in training, of attention weights and of what is added.

    With ``causal``, a token sees itself and what came before it, or of that only the last ``window`` tokens and the
    text's first ``num_sinks``; such a block can use a cache. ``num_kv_heads`` heads of keys and values serve
    ``num_heads`` of queries. With ``cross_attention``, the block also reads a memory, between its other two layers.

    The parameters' parts are ``norm1``, ``attention``, with ``cross_attention`` also ``norm2`` and ``cross_attention``,
    then ``norm3`` and ``network``. Raises ValueError or TypeError for arguments of the wrong type or range, or that do
    not fit together.
    """

    num_hiddens: int
    num_heads: int
    ffn_num_hiddens: int
    dropout: float = 0.0
    _: KW_ONLY
    norm: str = "layer"
    norm_first: bool = True
    activation: str = "gelu"
    bias: bool = True
    positions: str | None = None
    causal: bool = False
    cross_attention: bool = False
    num_kv_heads: int | None = None
    window: int | None = None
    num_sinks: int = 0
    norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        self.options = BlockOptions.check(
            num_hiddens=self.num_hiddens,
            num_heads=self.num_heads,
            ffn_num_hiddens=self.ffn_num_hiddens,
            dropout=self.dropout,
            norm=self.norm,
            norm_first=self.norm_first,
            activation=self.activation,
            bias=self.bias,
            positions=self.positions,
            causal=self.causal,
            cross_attention=self.cross_attention,
            num_kv_heads=self.num_kv_heads,
            window=self.window,
            num_sinks=self.num_sinks,
            norm_epsilon=self.norm_epsilon,
        )
        super().__post_init__()

    def setup(self) -> None:
        options = self.options
        self.norm1 = make_norm(options)
        self.attention = _make_attention(options)
        if options.cross_attention:
            self.norm2 = make_norm(options)
            # The parameters have the name that all frameworks use; as an attribute, it is that of the option.
            self.memory_attention = MultiHeadAttention(
                options.sizes.num_hiddens,
                options.sizes.num_heads,
                options.dropout,
                options.bias,
                name="cross_attention",
            )
        self.norm3 = make_norm(options)
        self.network = _Network(options)
        self.drop = nn.Dropout(options.dropout)

    def make_cache(self, batch_size: int, max_len: int, dtype: Any = jnp.float32) -> KVCache:
        """Return an empty cache for ``batch_size`` texts of up to ``max_len`` tokens; with a window, of any length.

        ``dtype`` is that of the block's output. No parameters are needed.
        """
        return _make_attention(self.options, parent=None).make_cache(batch_size, max_len, dtype)

    def __call__(
        self,
        X: Array,
        valid_lens: Array | None = None,
        training: bool = False,
        *,
        cache: KVCache | None = None,
        memory: Array | None = None,
        memory_valid_lens: Array | None = None,
        score_bias: Array | None = None,
    ) -> jax.Array | tuple[jax.Array, KVCache]:
        """Return the block's output, of the shape of ``X``: (batch, steps, num_hiddens).

        ``valid_lens``, integers of shape (batch,), counts the real tokens of each example; padding comes after them, and
        what is computed for it has no meaning. With a ``cache``, ``X`` has the next tokens of each text, and the new
        cache is returned as well. ``memory`` has the shape (batch, memory steps, num_hiddens), of which the first
        ``memory_valid_lens`` are real; its "cross_attention_weights", (batch, heads, steps, memory steps), are sown into
        "intermediates". ``score_bias`` is added to the scores of self-attention, shape (steps, steps), (heads, steps,
        steps) or (batch, heads, steps, steps); not with a cache. Raises ValueError or TypeError for input that does not
        fit. A traced cache has no lengths to check yet: results for tokens past its end are then NaN.
        """
        check_training(training)
        X = as_jax(X)
        memory = None if memory is None else as_jax(memory)
        self._check_memory(X, memory, memory_valid_lens)
        Y: Any = self.attention(
            self._prepare(X, self.norm1), valid_lens, training, cache=cache, score_bias=score_bias
        )
        if cache is not None:
            Y, cache = Y
        X = self._add(X, Y, self.norm1, training)
        if memory is not None:
            queries = self._prepare(X, self.norm2)
            Y, weights = self.memory_attention(queries, memory, memory, memory_valid_lens, training)
            self.sow("intermediates", "cross_attention_weights", weights)
            X = self._add(X, Y, self.norm2, training)
        Y = self.network(self._prepare(X, self.norm3))
        X = self._add(X, Y, self.norm3, training)
        return X if cache is None else (X, cache)

    def _prepare(self, X: jax.Array, norm: nn.Module) -> jax.Array:
        """Return the input of a layer."""
        return norm(X) if self.norm_first else X

    def _add(self, X: jax.Array, Y: jax.Array, norm: nn.Module, training: bool) -> jax.Array:
        """Add a layer's output to its input."""
        total = X + self.drop(Y, deterministic=not training)
        return total if self.norm_first else norm(total)

    def _check_memory(
        self, X: jax.Array, memory: jax.Array | None, memory_valid_lens: Array | None
    ) -> None:
        num_hiddens = self.options.sizes.num_hiddens
        arrays.check_rank("X", X, ("batch", "steps", "features"))
        arrays.check_features(X, self.attention.W_q, num_hiddens)
        shared.check_memory(memory, memory_valid_lens, self.options)
        if memory is not None:
            arrays.check_rank("memory", memory, ("batch", "steps", "features"))
            arrays.check_attention(X, memory, memory)
            arrays.check_last_dimension("memory", memory, num_hiddens)
            arrays.check_valid_lens(memory_valid_lens, X, memory)


def make_norm(options: BlockOptions) -> nn.Module:
    """Return a new layer of the block's kind of normalization."""
    kind = nn.LayerNorm if options.norm == "layer" else nn.RMSNorm
    return kind(epsilon=options.norm_epsilon)


def _make_attention(options: BlockOptions, **module: Any) -> _SelfAttention:
    """Return a new layer of self-attention; ``module`` has Flax's own arguments."""
    sizes = options.sizes
    return _SelfAttention(
        sizes.num_hiddens,
        sizes.num_heads,
        options.dropout,
        options.bias,
        num_kv_heads=sizes.num_kv_heads,
        rope=sizes.rope,
        window=sizes.window,
        num_sinks=sizes.num_sinks,
        options=options,
        **module,
    )


class _BlockModel(nn.Module):
    """An embedding with positions, blocks, and the normalization that follows them if theirs comes first."""

    vocab_size: int
    blocks: Sequence[TransformerBlock]
    _: KW_ONLY
    positions: str | None = "sinusoidal"
    dropout: float = 0.0
    max_len: int = 1000

    is_causal: ClassVar[bool]

    def __post_init__(self) -> None:
        checks.size("vocab_size", self.vocab_size)
        # A tuple, since the methods of training hash the model.
        self.blocks = tuple(
            shared.check_blocks(self.blocks, TransformerBlock, causal=self.is_causal)
        )
        shared.check_model_positions(self.positions, self.max_len, self.dropout)
        self.num_hiddens = self.blocks[-1].num_hiddens
        super().__post_init__()

    def setup(self) -> None:
        options = self.blocks[-1].options
        self.embedding = nn.Embed(self.vocab_size, self.num_hiddens)
        if self.positions == "learned":
            self.position_embedding = nn.Embed(self.max_len, self.num_hiddens)
        elif self.positions == "sinusoidal":
            self.encoding = PositionalEncoding(self.num_hiddens, 0.0, self.max_len)
        self.drop = nn.Dropout(self.dropout)
        if options.norm_first:
            self.norm = make_norm(options)
        if self.is_causal:
            self.dense = nn.Dense(self.vocab_size, use_bias=options.bias)

    def _embed(self, tokens: jax.Array, positions: jax.Array, training: bool) -> jax.Array:
        """Embed tokens (batch, steps) at ``positions`` of the same shape, -1 for padding."""
        X = self.embedding(tokens.astype(jnp.int32))
        if self.positions is None:
            return self.drop(X, deterministic=not training)
        # Of traced positions only the number is known; the encoding of one past the end is NaN.
        is_traced = isinstance(positions, jax.core.Tracer)
        known = np.arange(tokens.shape[1]) if is_traced else positions
        shared.check_room(known, self.max_len)
        positions = positions.clip(0)
        if self.positions == "learned":
            P = self.position_embedding(positions)
        else:
            X = X * math.sqrt(self.num_hiddens)
            table = self.encoding.P[0].astype(X.dtype)
            P = jnp.take(table, positions, axis=0, mode="fill", fill_value=jnp.nan)
        return self.drop(X + P, deterministic=not training)

    def _normalize(self, X: jax.Array) -> jax.Array:
        """Normalize what the last block returns, unless it did so itself."""
        return self.norm(X) if self.blocks[-1].norm_first else X

    def _check_tokens(self, X: jax.Array, valid_lens: Array | None) -> jax.Array:
        """Check the tokens, and return how many each text has, shape (batch,)."""
        arrays.check_tokens(X, self.vocab_size)
        checks.check_steps("X", X.shape, X.shape[1])
        arrays.check_text_lens(valid_lens, *X.shape)
        return jnp.full(len(X), X.shape[1]) if valid_lens is None else jnp.asarray(valid_lens)


class BlockEncoder(_BlockModel):
    """A Transformer's encoder: an embedding of tokens with their positions, and blocks without a causal mask.

    ``positions`` is "sinusoidal", "learned" for a table of ``max_len`` rows, or None if the blocks have their own.
    With "sinusoidal", the embedding is scaled by sqrt(num_hiddens) (Vaswani et al., 2017, section 3.4). ``dropout`` is
    the share of the embedding dropped in training. If the blocks normalize first, a normalization follows the last.

    The parameters' parts are ``embedding``, with "learned" also ``position_embedding``, then ``blocks_0``,
    ``blocks_1`` and so on, and perhaps ``norm``. Raises ValueError or TypeError for arguments of the wrong type or
    range, and for blocks of different sizes.
    """

    is_causal = False

    def __call__(
        self, X: Array, valid_lens: Array | None = None, training: bool = False
    ) -> jax.Array:
        """Encode tokens, integers of shape (batch, steps), as (batch, steps, num_hiddens).

        ``valid_lens``, shape (batch,), counts the tokens of each text; the others are padding. Raises ValueError or
        TypeError for other input.
        """
        check_training(training)
        X = as_jax(X)
        lens = self._check_tokens(X, valid_lens)
        positions = new_positions(jnp.zeros_like(lens), lens, X.shape[1], jnp)
        H: Any = self._embed(X, positions, training)
        for block in self.blocks:
            H = block(H, valid_lens, training)
        return self._normalize(H)


class BlockDecoder(_BlockModel):
    """A Transformer's decoder, or a language model: blocks with a causal mask, and logits for the next token.

    The arguments are those of :class:`BlockEncoder`. The blocks read a memory if they have cross-attention. The last
    layer, ``dense``, has a bias if the blocks have.
    """

    is_causal = True

    def make_caches(self, batch_size: int, max_len: int, dtype: Any = jnp.float32) -> list[KVCache]:
        """Return an empty cache for each block, for ``batch_size`` texts of up to ``max_len`` tokens.

        ``dtype`` is that of the logits. No parameters are needed.
        """
        return [block.make_cache(batch_size, max_len, dtype) for block in self.blocks]

    def __call__(
        self,
        X: Array,
        valid_lens: Array | None = None,
        training: bool = False,
        *,
        caches: Sequence[KVCache] | None = None,
        memory: Array | None = None,
        memory_valid_lens: Array | None = None,
    ) -> jax.Array | tuple[jax.Array, list[KVCache]]:
        """Return logits (batch, steps, vocab_size) of the tokens that follow those in ``X``, (batch, steps).

        ``valid_lens``, shape (batch,), counts the tokens of each text; the others are padding. With ``caches``, ``X``
        has the next tokens of each text, the logits are those of one call with all tokens, and the new caches are
        returned as well, as a list. ``memory``, (batch, memory steps, num_hiddens), of which the first
        ``memory_valid_lens`` are real, is what an encoder returns. Raises ValueError or TypeError for other input. Traced
        caches have no lengths to check yet: results for tokens past their end or ``max_len`` are then NaN.
        """
        check_training(training)
        X = as_jax(X)
        lens = self._check_tokens(X, valid_lens)
        old_caches = shared.check_caches(caches, len(self.blocks))
        start = start_lengths(old_caches[0], len(X), self.blocks[0].options.sizes, KVCache)
        H: Any = self._embed(X, new_positions(start, lens, X.shape[1], jnp), training)
        new_caches: list[Any] = []
        for block, cache in zip(self.blocks, old_caches, strict=True):
            output = block(
                H,
                valid_lens,
                training,
                cache=cache,
                memory=memory,
                memory_valid_lens=memory_valid_lens,
            )
            H, new_cache = (output, None) if cache is None else output
            new_caches.append(new_cache)
        logits = self.dense(self._normalize(H))
        return logits if caches is None else (logits, new_caches)


class BlockSeq2Seq(Seq2Seq):
    """An encoder and a decoder made of blocks, trained with teacher forcing by D2L's ``Trainer``.

    ``tgt_pad`` is the padding token, which the loss ignores, and ``lr`` Adam's learning rate.
    """

    def __call__(self, enc_X: Array, dec_X: Array, enc_valid_lens: Array) -> Any:
        """Return logits (batch, steps, vocab_size) of the tokens that follow those in ``dec_X``, (batch, steps)."""
        memory = self.encoder(enc_X, enc_valid_lens, training=self.training)
        return self.decoder(
            dec_X, training=self.training, memory=memory, memory_valid_lens=enc_valid_lens
        )

    def predict_step(
        self, params: Any, batch: Any, num_steps: int, save_attention_weights: bool = False
    ) -> tuple[jax.Array, tuple[list[Any], Any]]:
        """Decode a batch greedily, with caches; also return the attention weights of each step.

        ``batch`` is (source, target, source lengths, labels); only the first tokens of the target are used. Returns
        tokens of shape (batch, num_steps), and a pair as :class:`EncoderDecoder` does: the weights of cross-attention
        at each step, an array (batch, heads, 1, source steps) for each block, and an empty list for the encoder's.
        Dropout is off.
        """
        num_steps = checks.size("num_steps", num_steps)
        source, target, lens, _ = batch
        memory: Any = self.encoder.apply({"params": params["encoder"]}, source, lens)
        decoder: Any = self.decoder
        caches = decoder.make_caches(len(source), num_steps, memory.dtype)
        tokens, weights = [jnp.asarray(target)[:, :1]], []
        for _ in range(num_steps):
            logits, caches, step_weights = _decode(
                decoder, params["decoder"], tokens[-1], caches, memory, lens
            )
            tokens.append(logits.argmax(axis=2))
            if save_attention_weights:
                weights.append(step_weights)
        return jnp.concatenate(tokens[1:], axis=1), (weights, [])


@partial(jax.jit, static_argnums=0)
def _decode(
    decoder: BlockDecoder,
    params: Any,
    tokens: Any,
    caches: Any,
    memory: Any,
    memory_valid_lens: Any,
) -> tuple[jax.Array, list[KVCache], list[jax.Array]]:
    """Return logits, the new caches, and each block's weights of cross-attention."""
    (logits, caches), sown = decoder.apply(
        {"params": params},
        tokens,
        caches=caches,
        memory=memory,
        memory_valid_lens=memory_valid_lens,
        mutable="intermediates",
    )
    parts = sown["intermediates"].values()
    return logits, caches, [array for x in parts for array in x["cross_attention_weights"]]
