"""Conversion of weights between the shim's blocks, D2L's layers and Flax's own attention."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.core import unfreeze
from flax.traverse_util import flatten_dict

from d2l_compat._shared.blocks import Weight, Weights, attention_options, copy_weights
from d2l_compat._shared.checks import format_value, message
from d2l_compat.jax.attention import MultiHeadAttention
from d2l_compat.jax.blocks import BlockEncoder, TransformerBlock
from d2l_compat.jax.generation import CausalSelfAttention
from d2l_compat.jax.transformer import TransformerEncoder, TransformerEncoderBlock

__all__ = ["convert_weights"]

KINDS = (
    "a TransformerBlock or TransformerEncoderBlock; a BlockEncoder or TransformerEncoder; a MultiHeadAttention, "
    "CausalSelfAttention or nn.MultiHeadDotProductAttention"
)
ATTENTION = MultiHeadAttention, CausalSelfAttention, nn.MultiHeadDotProductAttention
GROUPS: dict[str, tuple[type[nn.Module], ...]] = {
    "an attention layer": ATTENTION,
    "a block": (TransformerBlock, TransformerEncoderBlock),
    "an encoder": (BlockEncoder, TransformerEncoder),
}
NAMES = {"kernel": "weight", "scale": "weight", "embedding": "table"}


def convert_weights(source: nn.Module, target: nn.Module, params: Any) -> Any:
    """Return parameters for a layer, made from those of a layer of another kind that computes the same.

    ``params`` are those of ``source``: ``variables["params"]``. The result has the names and shapes that ``target``
    expects, and the dtype of ``params``. Both are attention layers (:class:`MultiHeadAttention`,
    :class:`CausalSelfAttention`, ``nn.MultiHeadDotProductAttention``, whose parameters are also those of
    ``flax.nnx.MultiHeadAttention``), or blocks (:class:`TransformerBlock`, :class:`TransformerEncoderBlock`), or
    encoders (:class:`BlockEncoder`, :class:`TransformerEncoder`). A bias that the source lacks becomes zero. Masks and
    dropout are not weights: they may differ. Raises TypeError for other layers, and ValueError for layers that differ
    in another option or in a shape, and for parameters of another layer.
    """
    group, target_group = _find_group("source", source), _find_group("target", target)
    if target_group != group:
        raise ValueError(message("target", format_value(target), f"{group}, as in the source"))
    try:
        given = _read(source, jax.tree.map(np.asarray, unfreeze(params)))
    except KeyError as error:
        got, need = f"parameters without {error}", 'variables["params"] of the source'
        raise ValueError(message("params", got, need)) from None
    dtype = jnp.result_type(*jax.tree.leaves(params))
    # The weights are copied into arrays of the target's shapes.
    arrays = jax.tree.map(lambda leaf: np.zeros(leaf.shape, dtype), _find_shapes(target, given))
    copy_weights(given, _read(target, arrays))
    return jax.tree.map(jnp.asarray, arrays)


def _find_group(what: str, layer: nn.Module) -> str:
    for group, kinds in GROUPS.items():
        if isinstance(layer, kinds):
            return group
    raise TypeError(message(what, format_value(layer), KINDS))


def _find_shapes(layer: Any, given: Weights) -> Any:
    """Return the shapes of a layer's parameters; those that depend on its input are as in ``given``."""
    inputs: dict[str, Any] = {}
    if isinstance(layer, (BlockEncoder, TransformerEncoder)):
        inputs["X"] = jnp.zeros((1, 1), jnp.int32)
    elif isinstance(layer, MultiHeadAttention):
        sizes = {"queries": layer.query_size, "keys": layer.key_size, "values": layer.value_size}
        inputs = {name: _make_input(given, name[0], size) for name, size in sizes.items()}
    elif isinstance(layer, nn.MultiHeadDotProductAttention):
        layer = layer.copy(dropout_rate=0.0)
        inputs = {f"inputs_{role}": _make_input(given, role) for role in "qkv"}
    else:
        inputs["X"] = jnp.zeros((1, 1, layer.num_hiddens))
        if isinstance(layer, TransformerBlock) and layer.cross_attention:
            inputs["memory"] = inputs["X"]
    return jax.eval_shape(layer.init, jax.random.key(0), **inputs)["params"]


def _make_input(given: Weights, role: str, size: int | None = None) -> jax.Array:
    """Return an input of one step; if a layer has no ``size`` for it, that of the source."""
    return jnp.zeros((1, 1, size or len(given.weights[f"W_{role}.weight"].read())))


def _read(layer: Any, params: Any) -> Weights:
    """Return a layer's options, and its parameters under the names of the shim's own layers."""
    match layer:
        case BlockEncoder() | TransformerEncoder():
            options, parts = _read_encoder(layer, params)
        case TransformerBlock() | TransformerEncoderBlock():
            options, parts = _read_block(layer, params)
        case _:
            options, parts = _read_attention(layer, params)
    weights = {}
    for (*path, name), array in flatten_dict(parts).items():
        weights[".".join([*path, NAMES.get(name, name)])] = _make_weight(array)
    return Weights(options, weights)


def _make_weight(array: np.ndarray) -> Weight:
    """Return access to a parameter, or to a view of one."""

    def write(new: np.ndarray) -> None:
        array[...] = new

    return Weight(lambda: array, write)


def _read_attention(layer: Any, params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    options = attention_options(layer)
    if not isinstance(layer, nn.MultiHeadDotProductAttention):
        return options, {f"W_{role}": params[f"W_{role}"] for role in "qkvo"}
    if layer.normalize_qk:
        got = "an nn.MultiHeadDotProductAttention with normalize_qk"
        raise ValueError(message("layer", got, "one without"))
    parts = {}
    for name in ("query", "key", "value"):  # kernels (inputs, heads, head size)
        part = params[name]
        parts[f"W_{name[0]}"] = {
            key: array.reshape(*array.shape[:-2], -1) for key, array in part.items()
        }
    kernel = params["out"]["kernel"]  # (heads, head size, outputs)
    parts["W_o"] = params["out"] | {"kernel": kernel.reshape(-1, kernel.shape[-1])}
    return options, parts


def _read_block(layer: Any, params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(layer, TransformerEncoderBlock):
        return _read_d2l_block(layer.num_heads, params)
    names = "num_heads", "norm_first", "activation", "positions", "norm", "norm_epsilon"
    options = {name: getattr(layer, name) for name in names}
    parts = ["norm1", "attention", "norm3", "network"]
    if layer.cross_attention:
        parts += ["norm2", "cross_attention"]
    return options, {name: params[name] for name in parts}


def _read_d2l_block(num_heads: int, params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    options = {
        "num_heads": num_heads,
        "norm_first": False,
        "activation": "relu",
        "positions": None,
        "norm": "layer",
        "norm_epsilon": nn.LayerNorm.epsilon,
    }
    parts = {
        "norm1": params["addnorm1"]["LayerNorm_0"],
        "attention": params["attention"],
        "norm3": params["addnorm2"]["LayerNorm_0"],
        "network": params["ffn"],
    }
    return options, parts


def _read_encoder(layer: Any, params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    parts = {"embedding": params["embedding"]}
    if isinstance(layer, BlockEncoder):
        positions = layer.positions
        blocks = [_read_block(block, params[f"blocks_{i}"]) for i, block in enumerate(layer.blocks)]
        if positions == "learned":
            parts["position_embedding"] = params["position_embedding"]
        if layer.blocks[-1].norm_first:
            parts["norm"] = params["norm"]
    else:
        positions = "sinusoidal"
        blocks = [
            _read_d2l_block(layer.num_heads, params[f"blks_{i}"]) for i in range(layer.num_blks)
        ]
    options = {"embedding positions": positions, "number of blocks": len(blocks)}
    for i, (block_options, block_parts) in enumerate(blocks):
        options |= {f"block {i}: {name}": value for name, value in block_options.items()}
        parts[f"block {i}"] = block_parts
    return options, parts
