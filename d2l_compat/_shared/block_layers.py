"""What Transformer blocks and models made of them have in common in the frameworks whose layers keep their weights.

A framework's layer inherits from one of these classes and from the framework's base class, in this order. It creates
its sublayers in ``_make_layers``, once the arguments have been checked; its call runs them.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from d2l_compat._shared import blocks as shared
from d2l_compat._shared import checks
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.blocks import BlockOptions
from d2l_compat._shared.cache import new_positions, start_lengths


class TransformerBlock:
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

    arrays: ClassVar[checks.Arrays]
    norm1: Any
    attention: Any
    norm2: Any
    cross_attention: Any
    norm3: Any
    network: Any
    drop: Any

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
    ) -> None:
        """Create the layers; ``dropout`` is the share dropped in training, of attention weights and of what is added.

        Raises ValueError or TypeError for arguments of the wrong type or range, or that do not fit together.
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
        super().__init__()
        self.options = options
        self._make_layers()

    def _make_layers(self) -> None:
        raise NotImplementedError

    def _run(
        self,
        X: Any,
        valid_lens: Any,
        cache: Any,
        memory: Any,
        memory_valid_lens: Any,
        score_bias: Any,
    ) -> Any:
        self._check_memory(X, memory, memory_valid_lens)
        X = self._add(X, self.norm1, lambda X: self.attention(X, valid_lens, cache, score_bias))
        if memory is not None:
            attend = self.cross_attention
            X = self._add(X, self.norm2, lambda X: attend(X, memory, memory, memory_valid_lens))
        return self._add(X, self.norm3, self.network)

    def _add(self, X: Any, norm: Callable[[Any], Any], layer: Callable[[Any], Any]) -> Any:
        if self.options.norm_first:
            return X + self.drop(layer(norm(X)))
        return norm(X + self.drop(layer(X)))

    def _check_memory(self, X: Any, memory: Any, memory_valid_lens: Any) -> None:
        arrays = self.arrays
        arrays.check_rank("X", X, ("batch", "steps", "features"))
        arrays.check_features(X, self.attention.W_q)
        shared.check_memory(memory, memory_valid_lens, self.options)
        if memory is not None:
            arrays.check_rank("memory", memory, ("batch", "steps", "features"))
            arrays.check_attention(X, memory, memory)
            arrays.check_projection("memory", memory, self.cross_attention.W_k)
            arrays.check_valid_lens(memory_valid_lens, X, memory)


class BlockModel:
    """An embedding with positions, blocks, and the normalization that follows them if theirs comes first."""

    arrays: ClassVar[checks.Arrays]
    block_type: ClassVar[type]
    is_causal: ClassVar[bool]
    blks: Any
    norm: Any

    def __init__(
        self,
        vocab_size: int,
        blocks: Sequence[TransformerBlock],
        *,
        positions: str | None = "sinusoidal",
        dropout: float = 0.0,
        max_len: int = 1000,
    ) -> None:
        """Create the layers around the ``blocks``; ``dropout`` is the share of the embedding dropped in training.

        Raises ValueError or TypeError for arguments of the wrong type or range, and for blocks of different sizes.
        """
        checks.size("vocab_size", vocab_size)
        blocks = shared.check_blocks(blocks, self.block_type, causal=self.is_causal)
        max_len = shared.check_model_positions(positions, max_len, dropout)
        super().__init__()
        self.vocab_size, self.positions, self.max_len = vocab_size, positions, max_len
        self.num_hiddens = blocks[-1].options.sizes.num_hiddens
        self._make_layers(blocks, blocks[-1].options, dropout)

    def _make_layers(self, blocks: list[Any], options: BlockOptions, dropout: float) -> None:
        raise NotImplementedError

    def _embed(self, tokens: Any, positions: np.ndarray) -> Any:
        """Embed tokens (batch, steps) at ``positions`` of the same shape, -1 for padding."""
        raise NotImplementedError

    def _run(self, X: Any, valid_lens: Any, caches: Any = None, **memory: Any) -> Any:
        """Return what the last block, and the normalization after it, make of tokens (batch, steps)."""
        lens = self._check_tokens(X, valid_lens)
        caches = shared.check_caches(caches, len(self.blks))
        start = start_lengths(caches[0], len(X), self.blks[0].options.sizes)
        H = self._embed(X, new_positions(start, lens, X.shape[1]))
        for block, cache in zip(self.blks, caches, strict=True):
            H = block(H, valid_lens, cache=cache, **memory)
        return self.norm(H)

    def _check_tokens(self, X: Any, valid_lens: Any) -> np.ndarray:
        """Check the tokens, and return how many each text has, shape (batch,)."""
        self.arrays.check_tokens(X, self.vocab_size)
        batch, num_steps = X.shape
        checks.check_steps("X", X.shape, num_steps)
        lens = self.arrays.check_text_lens(valid_lens, batch, num_steps)
        lens = None if lens is None else self._read_lens(lens)
        return np.full(batch, num_steps) if lens is None else lens

    def _read_lens(self, lens: Any) -> np.ndarray | None:
        return to_numpy("valid_lens", lens)


class BlockEncoder(BlockModel):
    """A Transformer's encoder: an embedding of tokens with their positions, and blocks without a causal mask.

    ``positions`` is "sinusoidal", "learned" for a table of ``max_len`` rows, or None if the blocks have their own.
    With "sinusoidal", the embedding is scaled by sqrt(num_hiddens) (Vaswani et al., 2017, section 3.4). If the blocks
    normalize first, a normalization follows the last.
    """

    is_causal = False


class BlockDecoder(BlockModel):
    """A Transformer's decoder, or a language model: blocks with a causal mask, and logits for the next token.

    The arguments are those of :class:`BlockEncoder`. The blocks read a memory if they have cross-attention. The last
    layer, ``dense``, has a bias if the blocks have.
    """

    is_causal = True


class BlockSeq2Seq:
    """An encoder and a decoder made of blocks, trained with teacher forcing by D2L's ``Trainer``.

    ``tgt_pad`` is the padding token, which the loss ignores, and ``lr`` Adam's learning rate.
    """

    encoder: Any
    decoder: Any

    def _decode(
        self, source: Any, lens: Any, tokens: Any, num_steps: int, save_attention_weights: bool
    ) -> tuple[list[Any], list[Any]]:
        """Return the likeliest token of each step, (batch, 1), and each step's weights of cross-attention."""
        outputs, weights = [], []
        memory = self.encoder(source, lens)
        caches = self.decoder.make_caches(len(source), num_steps)
        for _ in range(num_steps):
            logits = self.decoder(tokens, caches=caches, memory=memory, memory_valid_lens=lens)
            tokens = logits.argmax(axis=2)
            outputs.append(tokens)
            if save_attention_weights:
                blocks = self.decoder.blks
                weights.append([block.cross_attention.attention_weights for block in blocks])
        return outputs, weights
