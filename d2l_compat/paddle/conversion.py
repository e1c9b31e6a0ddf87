"""Conversion of weights between the shim's blocks, D2L's layers and PaddlePaddle's own."""

from typing import Any

import numpy as np
import paddle
from paddle import Tensor, nn
from paddle.nn import functional as F

from d2l_compat._shared.blocks import (
    Weight,
    Weights,
    attention_options,
    copy_weights,
    encoder_options,
)
from d2l_compat._shared.checks import format_value, message
from d2l_compat.paddle.attention import MultiHeadAttention
from d2l_compat.paddle.blocks import BlockEncoder, TransformerBlock
from d2l_compat.paddle.generation import CausalSelfAttention
from d2l_compat.paddle.transformer import TransformerEncoder, TransformerEncoderBlock

__all__ = ["convert_weights"]

KINDS = (
    "a TransformerBlock, TransformerEncoderBlock, nn.TransformerEncoderLayer or nn.TransformerDecoderLayer; a "
    "BlockEncoder or TransformerEncoder; a MultiHeadAttention, CausalSelfAttention or nn.MultiHeadAttention"
)
ACTIVATIONS = {F.relu: "relu", F.gelu: "gelu"}
NAMES = {  # the names of parameters in other layers, and in the shim's
    "addnorm1.ln": "norm1",
    "addnorm2.ln": "norm3",
    "ffn.": "network.",
    "self_attn": "attention",
    "cross_attn": "cross_attention",
    "q_proj": "W_q",
    "k_proj": "W_k",
    "v_proj": "W_v",
    "out_proj": "W_o",
    "linear1": "network.dense1",
    "linear2": "network.dense2",
}


def convert_weights(source: nn.Layer, target: nn.Layer) -> None:
    """Copy the weights of a layer into one of another kind that computes the same.

    Both are attention layers (:class:`MultiHeadAttention`, :class:`CausalSelfAttention`, ``nn.MultiHeadAttention``), or
    blocks (:class:`TransformerBlock`, :class:`TransformerEncoderBlock`, ``nn.TransformerEncoderLayer``,
    ``nn.TransformerDecoderLayer``), or encoders (:class:`BlockEncoder`, :class:`TransformerEncoder`). A bias that the
    source lacks becomes zero. Masks and dropout are not weights: they may differ. Raises TypeError for other layers,
    and ValueError, before anything is copied, for layers that differ in another option or in a shape, or that have yet
    to take a size from their first input.
    """
    copy_weights(_read("source", source), _read("target", target))


def _read(what: str, layer: nn.Layer) -> Weights:
    """Return a layer's weights, by the names that they have in the shim's layers, and its options."""
    match layer:
        case MultiHeadAttention() | CausalSelfAttention() | nn.MultiHeadAttention():
            options = attention_options(layer)
        case TransformerBlock() | TransformerEncoderBlock():
            options = _block_options(layer)
        case nn.TransformerEncoderLayer() | nn.TransformerDecoderLayer():
            options = _block_options(layer)
        case BlockEncoder() | TransformerEncoder():
            options = encoder_options(layer, _block_options)
        case _:
            raise TypeError(message(what, format_value(layer), KINDS))
    names = NAMES
    if isinstance(layer, nn.TransformerEncoderLayer):
        names = NAMES | {"norm2": "norm3"}
    weights = {}
    for name, parameter in layer.named_parameters():
        if not parameter.size:
            got = "one that has yet to take a size from its first input"
            raise ValueError(message("layer", got, "one that was called, or made with all sizes"))
        for old, new in names.items():
            name = name.replace(old, new)
        weights[name] = _make_weight(parameter)
    return Weights(options, weights)


def _block_options(layer: Any) -> dict[str, Any]:
    attention: nn.Layer
    match layer:
        case TransformerBlock():
            attention, norm, options = layer.attention, layer.norm1, layer.options
            choices = options.norm_first, options.activation, options.positions
        case TransformerEncoderBlock():
            attention, norm = layer.attention, layer.addnorm1.ln
            choices = False, "relu", None
        case _:
            attention, norm = layer.self_attn, layer.norm1
            activation = ACTIVATIONS.get(layer.activation, layer.activation)
            choices = layer.normalize_before, activation, None
    return {
        **dict(zip(("norm_first", "activation", "positions"), choices, strict=True)),
        **attention_options(attention),
        "norm": "layer" if isinstance(norm, nn.LayerNorm) else "rms",
        "norm_epsilon": norm._epsilon,
    }


def _make_weight(parameter: Tensor) -> Weight:
    def write(array: np.ndarray) -> None:
        parameter.set_value(paddle.to_tensor(array, parameter.dtype))

    return Weight(lambda: parameter.astype("float64").numpy(), write)
