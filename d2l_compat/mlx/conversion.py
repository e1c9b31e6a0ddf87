"""Conversion of weights between the shim's blocks, D2L's layers and MLX's own."""

from typing import Any

import numpy as np
from mlx import nn
from mlx.utils import tree_flatten

from d2l_compat._shared.blocks import (
    Weight,
    Weights,
    attention_options,
    copy_weights,
    encoder_options,
)
from d2l_compat._shared.checks import format_value, message
from d2l_compat.mlx._arrays import read_values
from d2l_compat.mlx.attention import MultiHeadAttention, round_to
from d2l_compat.mlx.blocks import BlockEncoder, TransformerBlock
from d2l_compat.mlx.generation import CausalSelfAttention
from d2l_compat.mlx.transformer import TransformerEncoder, TransformerEncoderBlock

__all__ = ["convert_weights"]

KINDS = (
    "a TransformerBlock, TransformerEncoderBlock, nn.TransformerEncoderLayer or nn.TransformerDecoderLayer; a "
    "BlockEncoder or TransformerEncoder; a MultiHeadAttention, CausalSelfAttention or nn.MultiHeadAttention"
)
ACTIVATIONS = {"relu": nn.relu, "gelu": nn.gelu}
NAMES = {  # of parts that are named otherwise in a TransformerBlock
    "addnorm1.ln": "norm1",
    "addnorm2.ln": "norm3",
    "ffn.": "network.",
    "self_attention": "attention",
    "query_proj": "W_q",
    "key_proj": "W_k",
    "value_proj": "W_v",
    "out_proj": "W_o",
    "linear1": "network.dense1",
    "linear2": "network.dense2",
    "ln1": "norm1",
}
ENCODER_NORMS = {"ln2": "norm3"}
DECODER_NORMS = {"ln2": "norm2", "ln3": "norm3"}


def convert_weights(source: nn.Module, target: nn.Module) -> None:
    """Copy the weights of a layer into one of another kind that computes the same.

    Both are attention layers (:class:`MultiHeadAttention`, :class:`CausalSelfAttention`, ``nn.MultiHeadAttention``), or
    blocks (:class:`TransformerBlock`, :class:`TransformerEncoderBlock`, ``nn.TransformerEncoderLayer``,
    ``nn.TransformerDecoderLayer``), or encoders (:class:`BlockEncoder`, :class:`TransformerEncoder`). A bias that the
    source lacks becomes zero; the attention of MLX's own blocks has none. Masks and dropout are not weights: they may
    differ. Raises TypeError for other layers, and ValueError, before anything is copied, for layers that differ in
    another option or in a shape, or that have yet to take a size from their first input.
    """
    copy_weights(_read("source", source), _read("target", target))


def _read(what: str, layer: nn.Module) -> Weights:
    """Return a layer's weights and options."""
    match layer:
        case MultiHeadAttention() | CausalSelfAttention() | nn.MultiHeadAttention():
            options = attention_options(layer)
        case TransformerBlock() | TransformerEncoderBlock():
            options = _read_block(layer)
        case nn.TransformerEncoderLayer() | nn.TransformerDecoderLayer():
            options = _read_native_block(layer)
        case BlockEncoder() | TransformerEncoder():
            options = encoder_options(layer, _read_block)
        case _:
            raise TypeError(message(what, format_value(layer), KINDS))
    norms = DECODER_NORMS if isinstance(layer, nn.TransformerDecoderLayer) else ENCODER_NORMS
    parts: Any = tree_flatten(layer.leaf_modules(), is_leaf=nn.Module.is_module)
    weights: dict[str, Weight] = {}
    for path, part in parts:
        for old, new in (NAMES | norms).items():
            path = path.replace(old, new)
        weights |= {f"{path}.{name}": weight for name, weight in _read_part(part).items()}
    return Weights(options, weights)


def _read_block(layer: Any) -> dict[str, Any]:
    if isinstance(layer, TransformerEncoderBlock):
        options = {"norm_first": False, "activation": "relu", "positions": None}
        return options | attention_options(layer.attention) | _read_norm(layer.addnorm1.ln)
    names = "norm_first", "activation", "positions"
    options = {name: getattr(layer.options, name) for name in names}
    return options | attention_options(layer.attention) | _read_norm(layer.norm1)


def _read_native_block(layer: Any) -> dict[str, Any]:
    is_decoder = isinstance(layer, nn.TransformerDecoderLayer)
    attention = layer.self_attention if is_decoder else layer.attention
    names = [name for name, function in ACTIVATIONS.items() if function is layer.activation]
    activation = names[0] if names else layer.activation
    options = {"norm_first": layer.norm_first, "activation": activation, "positions": None}
    return options | attention_options(attention) | _read_norm(layer.ln1)


def _read_norm(norm: Any) -> dict[str, Any]:
    return {"norm": "rms" if isinstance(norm, nn.RMSNorm) else "layer", "norm_epsilon": norm.eps}


def _read_part(part: nn.Module) -> dict[str, Weight]:
    """Return access to the parameters of a part without parts."""
    if isinstance(part, nn.Linear) and "weight" not in part:
        got = "one that has yet to take a size from its first input"
        raise ValueError(message("layer", got, "one that was called, or made with all sizes"))
    return {name: _make_weight(part, name) for name in ("weight", "bias") if name in part}


def _make_weight(part: nn.Module, name: str) -> Weight:
    is_matrix = isinstance(part, nn.Linear) and name == "weight"

    def read() -> np.ndarray:
        array = np.array(read_values(part[name]), np.float64)
        return array.T if is_matrix else array

    def write(array: np.ndarray) -> None:
        setattr(part, name, round_to(part[name].dtype, array.T if is_matrix else array))

    return Weight(read, write)
