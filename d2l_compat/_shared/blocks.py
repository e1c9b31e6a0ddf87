"""Transformer blocks: their options, masks and numbers of parameters, and how weights are copied between layers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from d2l_compat._shared import checks, encoding
from d2l_compat._shared.cache import Sizes
from d2l_compat._shared.checks import message

NORMS = "layer", "rms"
ACTIVATIONS = "relu", "gelu", "swiglu"
BLOCK_POSITIONS = None, "rope", "alibi"
MODEL_POSITIONS = None, "sinusoidal", "learned"
MEMORY = "a block with cross-attention, and only such a block, reads a memory"


def check_choice(what: str, value: object, choices: Sequence[str | None]) -> None:
    """Raise ValueError unless ``value`` is one of the ``choices``."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        need = "one of " + ", ".join(map(repr, choices))
        raise ValueError(message(what, checks.format_value(value), need))


@dataclass(frozen=True)
class BlockOptions:
    """The arguments of a ``TransformerBlock``, checked."""

    ffn_num_hiddens: int
    dropout: float
    norm: str
    norm_first: bool
    activation: str
    bias: bool
    positions: str | None
    causal: bool
    cross_attention: bool
    norm_epsilon: float
    sizes: Sizes

    @classmethod
    def check(
        cls,
        *,
        num_hiddens: int,
        num_heads: int,
        num_kv_heads: int | None,
        window: int | None,
        num_sinks: int,
        **options: Any,
    ) -> "BlockOptions":
        """Return the options; raise ValueError or TypeError unless they have valid values that fit together."""
        positions, causal = options["positions"], options["causal"]
        check_choice("positions", positions, BLOCK_POSITIONS)
        check_choice("norm", options["norm"], NORMS)
        check_choice("activation", options["activation"], ACTIVATIONS)
        for flag in ("norm_first", "bias", "causal", "cross_attention"):
            checks.check_flag(flag, options[flag])
        checks.check_dropout(options["dropout"])
        checks.size("ffn_num_hiddens", options["ffn_num_hiddens"])
        need = "a number above 0"
        if not 0 < checks.real("norm_epsilon", options["norm_epsilon"], need) < np.inf:
            raise ValueError(message("norm_epsilon", options["norm_epsilon"], need))
        sizes = Sizes.check(
            num_hiddens, num_heads, num_kv_heads, window, num_sinks, positions == "rope"
        )
        if window is not None and not causal:
            got = f"{window} without a causal mask"
            raise ValueError(message("window", got, "causal=True"))
        return cls(**options, sizes=sizes)


def score_mask(
    queries: Any, keys: Any, options: BlockOptions, xp: Any = np, *, is_padded: bool = True
) -> Any:
    """Return what a block adds to the scores, or None if that is zero for all of them.

    ``queries`` and ``keys`` are positions, shape (batch, steps), -1 for padding. The mask has the shape (batch, 1 or
    heads, queries, keys): minus infinity for hidden keys and, with ALiBi, the bias of each distance for the others. A
    query that sees no key, which only padding does, sees all of them: its result has to be finite.
    """
    sizes, is_alibi = options.sizes, options.positions == "alibi"
    if not (options.causal or is_alibi or is_padded):
        return None
    if options.causal:
        is_visible = sizes.visible_keys(queries, keys)
    else:
        is_real = keys >= 0
        is_visible = (is_real | ~is_real.any(-1, keepdims=True))[:, None]
    bias = xp.zeros((1, 1, 1, 1))
    if is_alibi:
        distances = abs(queries[:, :, None] - keys[:, None])
        slopes = xp.asarray(encoding.slopes(sizes.num_heads))
        bias = -slopes[:, None, None] * distances[:, None]
    return xp.where(is_visible[:, None], bias, -np.inf)


def check_blocks(blocks: Sequence[Any], kind: type, *, causal: bool) -> list[Any]:
    """Return the blocks of a model as a list; raise ValueError or TypeError unless they fit together."""
    need = f"a list of TransformerBlock with causal={causal}"
    checks.check_instance("blocks", blocks, (list, tuple), need)
    if not blocks:
        raise ValueError(message("blocks", "an empty list", need))
    for block in blocks:
        checks.check_instance("blocks", block, kind, need)
        if block.options.causal != causal:
            got = f"a block with causal={block.options.causal}"
            raise ValueError(message("blocks", got, need))
        size, first = (x.options.sizes.num_hiddens for x in (block, blocks[0]))
        if size != first:
            got = f"blocks of {first} and {size} features"
            raise ValueError(message("blocks", got, "one number of features"))
    return [*blocks]


def check_model_positions(positions: str | None, max_len: int, dropout: float) -> int:
    """Check how a model adds positions to its embedding; return ``max_len``."""
    check_choice("positions", positions, MODEL_POSITIONS)
    checks.check_dropout(dropout)
    return checks.size("max_len", max_len)


def check_room(positions: Any, max_len: int) -> None:
    """Raise ValueError if a position is beyond the table of positions."""
    needed = int(positions.max()) + 1
    if needed > max_len:
        raise ValueError(message("X", f"{needed} positions", f"at most max_len = {max_len}"))


def check_memory(memory: Any, memory_valid_lens: Any, options: BlockOptions) -> None:
    """Raise ValueError unless a memory is given exactly if the block reads one."""
    if options.cross_attention != (memory is not None):
        got = "None" if memory is None else "a memory for a block without cross-attention"
        raise ValueError(message("memory", got, MEMORY))
    if memory is None and memory_valid_lens is not None:
        raise ValueError(message("memory_valid_lens", "lengths without a memory", MEMORY))


def check_cache(cache: Any, score_bias: Any, options: BlockOptions) -> None:
    """Raise ValueError for a cache that the attention cannot use."""
    if cache is None:
        return
    if not options.causal:
        got = "a cache for attention that is not causal"
        raise ValueError(message("cache", got, "causal=True"))
    if score_bias is not None:
        got = "a bias together with a cache"
        raise ValueError(message("score_bias", got, "only one of them"))


def check_caches(caches: Any, num_blocks: int) -> list[Any]:
    """Return a cache, or None, for each block; raise ValueError or TypeError unless there is one for each."""
    if caches is None:
        return [None] * num_blocks
    need = f"a list of {num_blocks} caches, one for each block"
    checks.check_instance("caches", caches, (list, tuple), need)
    if len(caches) != num_blocks:
        raise ValueError(message("caches", len(caches), need))
    return [*caches]


def count_transformer_parameters(
    vocab_size: int,
    num_blks: int,
    num_hiddens: int,
    num_heads: int,
    ffn_num_hiddens: int,
    *,
    num_kv_heads: int | None = None,
    norm: str = "layer",
    norm_first: bool = True,
    activation: str = "gelu",
    bias: bool = True,
    cross_attention: bool = False,
    learned_positions: int = 0,
    output: bool = True,
) -> int:
    """Return the number of parameters of a ``BlockDecoder``, or without ``output`` of a ``BlockEncoder``, by formula.

    With d features, of which keys and values have k, a network of f features and n parameters per normalization (2d,
    or d for RMSNorm), a block has 2d(d + k) + 2df + 2n weights, with SwiGLU df more, and its biases; the blocks are
    followed by a normalization if ``norm_first``. ``learned_positions`` counts the rows of a table of positions. Raises
    ValueError or TypeError for arguments out of range.
    """
    options = BlockOptions.check(
        num_hiddens=num_hiddens,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        window=None,
        num_sinks=0,
        ffn_num_hiddens=ffn_num_hiddens,
        dropout=0.0,
        norm=norm,
        norm_first=norm_first,
        activation=activation,
        bias=bias,
        positions=None,
        causal=False,
        cross_attention=cross_attention,
        norm_epsilon=1e-5,
    )
    checks.check_flag("output", output)
    d, k, f = num_hiddens, options.sizes.kv_size, ffn_num_hiddens

    def dense(inputs: int, outputs: int) -> int:
        return (inputs + bias) * outputs

    norm_size = 2 * d if norm == "layer" else d
    block = 2 * dense(d, d) + 2 * dense(d, k) + dense(d, f) + dense(f, d) + 2 * norm_size
    if activation == "swiglu":
        block += dense(d, f)
    if cross_attention:
        block += 4 * dense(d, d) + norm_size
    total = checks.size("vocab_size", vocab_size) * d + checks.size("num_blks", num_blks) * block
    total += checks.integer("learned_positions", learned_positions, 0) * d
    return total + norm_first * norm_size + output * dense(d, vocab_size)


@dataclass(frozen=True)
class Weight:
    """A parameter of a layer, or a part of one, as an array: matrices have the shape (inputs, outputs)."""

    read: Callable[[], np.ndarray]
    write: Callable[[np.ndarray], None]


@dataclass(frozen=True)
class Weights:
    """The weights of a layer by name, and the options that a layer with the same weights has to share."""

    options: dict[str, Any]
    weights: dict[str, Weight]


def attention_options(layer: Any) -> dict[str, Any]:
    """Return the options of an attention layer: a ``CausalSelfAttention``, D2L's or the framework's own."""
    sizes = getattr(layer, "sizes", layer)
    return {"num_heads": sizes.num_heads, "rope": getattr(sizes, "rope", False)}


def encoder_options(layer: Any, block_options: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the options of a ``BlockEncoder`` or of D2L's encoder, with those of its blocks."""
    positions = getattr(layer, "positions", "sinusoidal")
    options = {"embedding positions": positions, "number of blocks": len(layer.blks)}
    for i, block in enumerate(layer.blks):
        options |= {f"block {i}: {name}": value for name, value in block_options(block).items()}
    return options


def copy_weights(source: Weights, target: Weights) -> None:
    """Copy all weights; a bias that the source lacks becomes zero.

    Raises ValueError, before anything is copied, if the layers differ in an option or a shape, or if the source has a
    weight that the target lacks, unless it is zero.
    """
    for name, value in source.options.items():
        if target.options.get(name) != value:
            got = f"a layer with {name}={target.options.get(name)!r}"
            raise ValueError(message("target", got, f"{name}={value!r}, as in the source"))
    arrays = {name: weight.read() for name, weight in source.weights.items()}
    for name in source.weights.keys() - target.weights.keys():
        if arrays[name].any():
            raise ValueError(message("target", f"a layer without {name}", "one, as in the source"))
    copies = {}
    for name, weight in target.weights.items():
        old = weight.read()
        if name not in arrays and not name.endswith("bias"):
            raise ValueError(message("source", f"a layer without {name}", "one, as in the target"))
        new = arrays.get(name, np.zeros_like(old))
        if new.shape != old.shape:
            got = f"a layer whose {name} has the shape {old.shape}"
            raise ValueError(message("target", got, f"the shape {new.shape}, as in the source"))
        copies[name] = new
    for name, new in copies.items():
        target.weights[name].write(new)
