"""Conversion of weights between the shim's blocks, D2L's layers and PyTorch's own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from d2l_compat._shared.blocks import Weight, Weights, copy_weights
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
    """Return a layer's weights and options."""
    match layer:
        case MultiHeadAttention() | CausalSelfAttention() | nn.MultiheadAttention():
            return _read_attention(layer)
        case TransformerBlock() | TransformerEncoderBlock():
            return _read_block(layer)
        case nn.TransformerEncoderLayer() | nn.TransformerDecoderLayer():
            return _read_native_block(layer)
        case BlockEncoder() | TransformerEncoder():
            return _read_encoder(layer)
    raise TypeError(message(what, format_value(layer), KINDS))


def _read_attention(layer: Any) -> Weights:
    if isinstance(layer, nn.MultiheadAttention):
        return Weights({"num_heads": layer.num_heads, "rope": False}, _read_fused(layer))
    dense = {f"W_{role}": getattr(layer, f"W_{role}") for role in "qkvo"}
    weights = _join({name: _read_dense(part) for name, part in dense.items()})
    if isinstance(layer, CausalSelfAttention):
        return Weights({"num_heads": layer.sizes.num_heads, "rope": layer.sizes.rope}, weights)
    return Weights({"num_heads": layer.num_heads, "rope": False}, weights)


def _read_fused(layer: nn.MultiheadAttention) -> dict[str, Weight]:
    """Return the weights of projections that are stored as one matrix."""
    if layer.in_proj_weight is None or layer.bias_k is not None:
        got = "an nn.MultiheadAttention with kdim, vdim or add_bias_kv"
        raise ValueError(message("layer", got, "one without"))
    weights = _read_dense(layer.out_proj, "W_o.")
    for role, matrix in zip("qkv", layer.in_proj_weight.chunk(3), strict=True):
        weights[f"W_{role}.weight"] = _make_weight(matrix.T)
    if layer.in_proj_bias is not None:
        for role, bias in zip("qkv", layer.in_proj_bias.chunk(3), strict=True):
            weights[f"W_{role}.bias"] = _make_weight(bias)
    return weights


def _read_block(layer: Any) -> Weights:
    if isinstance(layer, TransformerEncoderBlock):
        attention, network = _read_attention(layer.attention), layer.ffn
        norms = {"norm1": layer.addnorm1.ln, "norm3": layer.addnorm2.ln}
        options = {"norm_first": False, "activation": "relu", "positions": None}
    else:
        attention, network = _read_attention(layer.attention), layer.network
        norms = {name: part for name, part in layer.named_children() if "norm" in name}
        names = "norm_first", "activation", "positions"
        options = {name: getattr(layer.options, name) for name in names}
    parts = {"attention": attention.weights, "network": _read_layers(network)}
    if isinstance(layer, TransformerBlock) and layer.options.cross_attention:
        parts["cross_attention"] = _read_attention(layer.cross_attention).weights
    return _add_norms(options | attention.options, parts, norms)


def _read_native_block(layer: Any) -> Weights:
    attention = _read_attention(layer.self_attn)
    norms = {"norm1": layer.norm1, "norm3": layer.norm2}
    parts = {
        "attention": attention.weights,
        "network": _read_dense(layer.linear1, "dense1.") | _read_dense(layer.linear2, "dense2."),
    }
    if isinstance(layer, nn.TransformerDecoderLayer):
        norms |= {"norm2": layer.norm2, "norm3": layer.norm3}
        parts["cross_attention"] = _read_attention(layer.multihead_attn).weights
    activation = ACTIVATIONS.get(layer.activation, layer.activation)
    options = {"norm_first": layer.norm_first, "activation": activation, "positions": None}
    return _add_norms(options | attention.options, parts, norms)


def _read_encoder(layer: Any) -> Weights:
    blocks = [_read_block(block) for block in layer.blks]
    parts = {f"block {i}": block.weights for i, block in enumerate(blocks)}
    parts["embedding"] = {"table": _make_weight(layer.embedding.weight)}
    is_shim = isinstance(layer, BlockEncoder)
    if is_shim and layer.positions == "learned":
        parts["positions"] = {"table": _make_weight(layer.position_embedding.weight)}
    if is_shim and blocks[-1].options["norm_first"]:
        parts["norm"] = _read_norm(layer.norm)
    options = {"embedding positions": layer.positions if is_shim else "sinusoidal"}
    for i, block in enumerate(blocks):
        options |= {f"block {i}: {name}": value for name, value in block.options.items()}
    return Weights(options, _join(parts))


def _add_norms(
    options: dict[str, Any], parts: dict[str, dict[str, Weight]], norms: Mapping[str, nn.Module]
) -> Weights:
    first: Any = norms["norm1"]
    is_rms = isinstance(first, nn.RMSNorm)
    options |= {"norm": "rms" if is_rms else "layer", "norm_epsilon": first.eps}
    parts |= {name: _read_norm(norm) for name, norm in norms.items()}
    return Weights(options, _join(parts))


def _read_norm(norm: Any) -> dict[str, Weight]:
    bias = getattr(norm, "bias", None)
    weights = {"weight": _make_weight(norm.weight)}
    return weights if bias is None else weights | {"bias": _make_weight(bias)}


def _read_layers(network: nn.Module) -> dict[str, Weight]:
    """Return the weights of all linear layers of a network."""
    dense = {name: part for name, part in network.named_children() if isinstance(part, nn.Linear)}
    return _join({name: _read_dense(part) for name, part in dense.items()})


def _read_dense(layer: Any, prefix: str = "") -> dict[str, Weight]:
    has_size = not isinstance(layer.weight, nn.UninitializedParameter)
    if not has_size:
        got = "one that has yet to take a size from its first input"
        raise ValueError(message("layer", got, "one that was called, or made with all sizes"))
    weights = {f"{prefix}weight": _make_weight(layer.weight.T)}
    return weights if layer.bias is None else weights | {f"{prefix}bias": _make_weight(layer.bias)}


def _make_weight(tensor: Tensor) -> Weight:
    """Return access to a parameter, or to a view of one."""

    def write(array: np.ndarray) -> None:
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(array))

    return Weight(lambda: tensor.detach().double().cpu().numpy(), write)


def _join(parts: dict[str, dict[str, Weight]]) -> dict[str, Weight]:
    return {
        f"{part}.{name}": weight
        for part, weights in parts.items()
        for name, weight in weights.items()
    }
