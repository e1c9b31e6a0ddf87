"""Conversion of weights between the shim's blocks and D2L's layers."""

from typing import Any

import numpy as onp
from mxnet import np
from mxnet.gluon import Parameter, nn

from d2l_compat._shared.blocks import Weight, Weights, attention_options, copy_weights
from d2l_compat._shared.checks import format_value, message
from d2l_compat.mxnet.attention import MultiHeadAttention
from d2l_compat.mxnet.blocks import BlockEncoder, TransformerBlock
from d2l_compat.mxnet.generation import CausalSelfAttention
from d2l_compat.mxnet.transformer import TransformerEncoder, TransformerEncoderBlock

__all__ = ["convert_weights"]

KINDS = (
    "a TransformerBlock or TransformerEncoderBlock; a BlockEncoder or TransformerEncoder; a MultiHeadAttention or "
    "CausalSelfAttention"
)


def convert_weights(source: nn.Block, target: nn.Block) -> None:
    """Copy the weights of a layer into one of another kind that computes the same.

    Both are attention layers (:class:`MultiHeadAttention`, :class:`CausalSelfAttention`), or blocks
    (:class:`TransformerBlock`, :class:`TransformerEncoderBlock`), or encoders (:class:`BlockEncoder`,
    :class:`TransformerEncoder`). MXNet has no such layers of its own. A bias that the source lacks becomes zero. Masks
    and dropout are not weights: they may differ. Raises TypeError for other layers, and ValueError, before anything is
    copied, for layers that differ in another option or in a shape, or whose weights have no values yet.
    """
    copy_weights(_read("source", source), _read("target", target))


def _read(what: str, layer: nn.Block) -> Weights:
    """Return a layer's weights and options."""
    match layer:
        case MultiHeadAttention() | CausalSelfAttention():
            return _read_attention(layer)
        case TransformerBlock() | TransformerEncoderBlock():
            return _read_block(layer)
        case BlockEncoder() | TransformerEncoder():
            return _read_encoder(layer)
    raise TypeError(message(what, format_value(layer), KINDS))


def _read_attention(layer: Any) -> Weights:
    weights = _read_layers(layer, "W_q", "W_k", "W_v", "W_o")
    return Weights(attention_options(layer), weights)


def _read_block(layer: Any) -> Weights:
    attention = _read_attention(layer.attention)
    parts = {"attention": attention.weights}
    if isinstance(layer, TransformerEncoderBlock):
        norms = {"norm1": layer.addnorm1.ln, "norm3": layer.addnorm2.ln}
        options = {"norm_first": False, "activation": "relu", "positions": None}
        parts["network"] = _read_layers(layer.ffn, "dense1", "dense2")
    else:
        norms = {"norm1": layer.norm1, "norm3": layer.norm3}
        names = "norm_first", "activation", "positions"
        options = {name: getattr(layer.options, name) for name in names}
        gate = ["gate"] if layer.options.activation == "swiglu" else []
        parts["network"] = _read_layers(layer.network, *gate, "dense1", "dense2")
        if layer.options.cross_attention:
            norms["norm2"] = layer.norm2
            parts["cross_attention"] = _read_attention(layer.cross_attention).weights
    options["norm"] = "layer" if isinstance(norms["norm1"], nn.LayerNorm) else "rms"
    options["norm_epsilon"] = norms["norm1"]._epsilon
    parts |= {name: _read_norm(norm) for name, norm in norms.items()}
    return Weights(options | attention.options, _join(parts))


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


def _read_norm(norm: Any) -> dict[str, Weight]:
    weights = {"gamma": _make_weight(norm.gamma)}
    if isinstance(norm, nn.LayerNorm):
        weights["beta"] = _make_weight(norm.beta)
    return weights


def _read_layers(layer: nn.Block, *names: str) -> dict[str, Weight]:
    """Return the weights of the linear layers that are a layer's parts of these names."""
    return _join({name: _read_dense(getattr(layer, name)) for name in names})


def _read_dense(layer: nn.Dense) -> dict[str, Weight]:
    weights = {"weight": _make_weight(layer.weight, is_transposed=True)}
    return weights if layer.bias is None else weights | {"bias": _make_weight(layer.bias)}


def _make_weight(parameter: Parameter, *, is_transposed: bool = False) -> Weight:
    """Return access to a parameter; linear layers store matrices as (outputs, inputs)."""
    try:
        stored = parameter.list_data()[0]
    except RuntimeError as error:
        need = "one that was initialized and called"
        raise ValueError(
            message("layer", f"one without values of {parameter.name}", need)
        ) from error

    def transpose(array: onp.ndarray) -> onp.ndarray:
        return array.T if is_transposed else array

    def write(array: onp.ndarray) -> None:
        parameter.set_data(np.array(transpose(array), dtype=parameter.dtype))

    return Weight(lambda: transpose(stored.asnumpy().astype(float)), write)


def _join(parts: dict[str, dict[str, Weight]]) -> dict[str, Weight]:
    return {
        f"{part}.{name}": weight
        for part, weights in parts.items()
        for name, weight in weights.items()
    }
