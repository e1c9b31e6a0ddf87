"""Conversion of weights between the shim's blocks, D2L's layers and PyTorch's own."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from d2l_compat._shared.blocks import (
    Weight,
    Weights,
    attention_options,
    copy_weights,
    encoder_options,
)
from d2l_compat._shared.checks import format_value, message
from d2l_compat.torch.attention import MultiHeadAttention
from d2l_compat.torch.blocks import BlockEncoder, TransformerBlock
from d2l_compat.torch.generation import CausalSelfAttention
from d2l_compat.torch.transformer import TransformerEncoder, TransformerEncoderBlock

__all__ = ["convert_weights"]

KINDS = (
    "a TransformerBlock, TransformerEncoderBlock, nn.TransformerEncoderLayer or nn.TransformerDecoderLayer; a "
    "BlockEncoder or TransformerEncoder; a MultiHeadAttention, CausalSelfAttention or nn.MultiheadAttention"
)
ACTIVATIONS = {F.relu: "relu", F.gelu: "gelu"}
NAMES = {  # the names of parameters in other layers, and in the shim's
    "block": "",  # of "block0"
    "addnorm1.ln": "norm1",
    "addnorm2.ln": "norm3",
    "ffn.": "network.",
    "self_attn": "attention",
    "multihead_attn": "cross_attention",
    "out_proj": "W_o",
    "linear1": "network.dense1",
    "linear2": "network.dense2",
}


def convert_weights(source: nn.Module, target: nn.Module) -> None:
    """Copy the weights of a layer into one of another kind that computes the same.

    Both are attention layers (:class:`MultiHeadAttention`, :class:`CausalSelfAttention`, ``nn.MultiheadAttention``), or
    blocks (:class:`TransformerBlock`, :class:`TransformerEncoderBlock`, ``nn.TransformerEncoderLayer``,
    ``nn.TransformerDecoderLayer``), or encoders (:class:`BlockEncoder`, :class:`TransformerEncoder`). A bias that the
    source lacks becomes zero. Masks and dropout are not weights: they may differ. Raises TypeError for other layers,
    and ValueError, before anything is copied, for layers that differ in another option or in a shape, or that have yet
    to take a size from their first input.
    """
    copy_weights(_read("source", source), _read("target", target))


def _read(what: str, layer: nn.Module) -> Weights:
    """Return a layer's weights, by the names that they have in the shim's layers, and its options."""
    match layer:
        case MultiHeadAttention() | CausalSelfAttention() | nn.MultiheadAttention():
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
        _check_parameter(name, parameter)
        for old, new in names.items():
            name = name.replace(old, new)
        # PyTorch's own attention stores three projections as one.
        parts: dict[str, Tensor] = {name: parameter}
        if "in_proj" in name:
            projections = (name.replace("in_proj_", f"W_{role}.") for role in "qkv")
            parts = dict(zip(projections, parameter.chunk(3), strict=True))
        is_matrix = parameter.ndim == 2 and "embedding" not in name
        for part, values in parts.items():
            weights[part] = _make_weight(values.mT if is_matrix else values)
    return Weights(options, weights)


def _check_parameter(name: str, parameter: nn.Parameter) -> None:
    has_size = not isinstance(parameter, nn.UninitializedParameter)
    if not has_size:
        got = "one that has yet to take a size from its first input"
        raise ValueError(message("layer", got, "one that was called, or made with all sizes"))
    if name.endswith(("q_proj_weight", "bias_k")):
        got = "an nn.MultiheadAttention with kdim, vdim or add_bias_kv"
        raise ValueError(message("layer", got, "one without"))


def _block_options(layer: Any) -> dict[str, Any]:
    attention: nn.Module
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
            choices = layer.norm_first, activation, None
    return {
        **dict(zip(("norm_first", "activation", "positions"), choices, strict=True)),
        **attention_options(attention),
        "norm": "rms" if isinstance(norm, nn.RMSNorm) else "layer",
        "norm_epsilon": norm.eps,
    }


def _make_weight(tensor: Tensor) -> Weight:
    """Return access to a parameter, or to a view of one."""

    def write(array: np.ndarray) -> None:
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(array))

    return Weight(lambda: tensor.detach().double().cpu().numpy(), write)
