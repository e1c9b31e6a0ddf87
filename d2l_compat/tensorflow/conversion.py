"""Conversion of weights between the shim's blocks, D2L's layers and Keras's own."""

from typing import Any

import numpy as np

from d2l_compat._shared.blocks import Weight, Weights, attention_options, copy_weights
from d2l_compat._shared.checks import format_value, message
from d2l_compat.tensorflow._keras import keras
from d2l_compat.tensorflow.attention import MultiHeadAttention
from d2l_compat.tensorflow.blocks import BlockEncoder, TransformerBlock
from d2l_compat.tensorflow.generation import CausalSelfAttention
from d2l_compat.tensorflow.transformer import TransformerEncoder, TransformerEncoderBlock

__all__ = ["convert_weights"]

KINDS = (
    "a TransformerBlock or TransformerEncoderBlock; a BlockEncoder or TransformerEncoder; a MultiHeadAttention, "
    "CausalSelfAttention, keras.layers.MultiHeadAttention or keras.layers.GroupQueryAttention"
)
KERAS_ATTENTION = tuple(
    getattr(keras.layers, name)
    for name in ("MultiHeadAttention", "GroupQueryAttention")
    if hasattr(keras.layers, name)  # Keras 2 lacks the second
)


def convert_weights(source: keras.layers.Layer, target: keras.layers.Layer) -> None:
    """Copy the weights of a layer into one of another kind that computes the same.

    Both are attention layers (:class:`MultiHeadAttention`, :class:`CausalSelfAttention`,
    ``keras.layers.MultiHeadAttention``, ``keras.layers.GroupQueryAttention``), or blocks (:class:`TransformerBlock`,
    :class:`TransformerEncoderBlock`), or encoders (:class:`BlockEncoder`, :class:`TransformerEncoder`). A bias that the
    source lacks becomes zero. Masks and dropout are not weights: they may differ. Raises TypeError for other layers,
    and ValueError, before anything is copied, for layers that differ in another option or in a shape, or that have yet
    to take a size from their first input.
    """
    copy_weights(_read("source", source), _read("target", target))


def _read(what: str, layer: keras.layers.Layer) -> Weights:
    """Return a layer's weights and options."""
    if isinstance(layer, (MultiHeadAttention, CausalSelfAttention)):
        return _read_attention(layer)
    if isinstance(layer, KERAS_ATTENTION):
        return _read_keras_attention(layer)
    if isinstance(layer, (TransformerBlock, TransformerEncoderBlock)):
        return _read_block(layer)
    if isinstance(layer, (BlockEncoder, TransformerEncoder)):
        return _read_encoder(layer)
    raise TypeError(message(what, format_value(layer), KINDS))


def _build(layer: Any) -> None:
    """Build a layer, so that it has weights; raise ValueError if its arguments do not tell all sizes."""
    if layer.built:
        return
    if isinstance(layer, (BlockEncoder, TransformerEncoder)):
        layer.build((None, None))
    elif isinstance(layer, (CausalSelfAttention, TransformerBlock, TransformerEncoderBlock)):
        layer.build((None, None, layer.get_config()["num_hiddens"]))
    elif isinstance(layer, MultiHeadAttention) and "query_size" in layer._arguments:
        layer.build(*((None, None, layer._arguments[name]) for name in layer.SIZES))
    else:
        got = "one that has yet to take a size from its first input"
        raise ValueError(message("layer", got, "one that was called, or made with all sizes"))


def _read_attention(layer: Any) -> Weights:
    _build(layer)
    weights = _join({f"W_{role}": _read_dense(getattr(layer, f"W_{role}")) for role in "qkvo"})
    return Weights(attention_options(layer), weights)


def _read_keras_attention(layer: Any) -> Weights:
    """Return the weights of projections whose heads have an axis of their own."""
    _build(layer)
    config = layer.get_config()
    if config.get("use_gate"):
        raise ValueError(message("layer", "an attention layer with use_gate", "one without"))
    weights = {}
    for role, name in zip("qkvo", ("query", "key", "value", "output"), strict=True):
        dense = getattr(layer, f"_{name}_dense")
        *inputs, _ = dense.kernel.shape
        num_inputs = np.prod(inputs) if role == "o" else inputs[0]
        weights[f"W_{role}.weight"] = _make_weight(dense.kernel, (num_inputs, -1))
        if dense.bias is not None:
            weights[f"W_{role}.bias"] = _make_weight(dense.bias, (-1,))
    num_heads = config.get("num_heads") or config["num_query_heads"]
    return Weights({"num_heads": num_heads, "rope": False}, weights)


def _read_block(layer: Any) -> Weights:
    _build(layer)
    attention = _read_attention(layer.attention)
    if isinstance(layer, TransformerEncoderBlock):
        network = layer.ffn
        norms = {"norm1": layer.addnorm1.ln, "norm3": layer.addnorm2.ln}
        options = {"norm_first": False, "activation": "relu", "positions": None}
    else:
        network = layer.network
        norms = {"norm1": layer.norm1, "norm3": layer.norm3}
        names = "norm_first", "activation", "positions"
        options = {name: getattr(layer.options, name) for name in names}
    dense = {name: getattr(network, name, None) for name in ("dense1", "dense2", "gate")}
    parts = {name: _read_dense(part) for name, part in dense.items() if part is not None}
    parts = {"attention": attention.weights, "network": _join(parts)}
    if isinstance(layer, TransformerBlock) and layer.options.cross_attention:
        norms["norm2"] = layer.norm2
        parts["cross_attention"] = _read_attention(layer.cross_attention).weights
    parts |= {name: _read_norm(norm) for name, norm in norms.items()}
    first: Any = norms["norm1"]
    is_layer_norm = isinstance(first, keras.layers.LayerNormalization)
    norm = {"norm": "layer" if is_layer_norm else "rms", "norm_epsilon": first.epsilon}
    return Weights(options | attention.options | norm, _join(parts))


def _read_encoder(layer: Any) -> Weights:
    _build(layer)
    blocks = [_read_block(block) for block in layer.blks]
    parts = {f"block {i}": block.weights for i, block in enumerate(blocks)}
    parts["embedding"] = {"table": _make_weight(layer.embedding.embeddings)}
    is_shim = isinstance(layer, BlockEncoder)
    if is_shim and layer.positions == "learned":
        parts["positions"] = {"table": _make_weight(layer.position_embedding.embeddings)}
    if is_shim and blocks[-1].options["norm_first"]:
        parts["norm"] = _read_norm(layer.norm)
    options = {"embedding positions": layer.positions if is_shim else "sinusoidal"}
    for i, block in enumerate(blocks):
        options |= {f"block {i}: {name}": value for name, value in block.options.items()}
    return Weights(options, _join(parts))


def _read_norm(norm: Any) -> dict[str, Weight]:
    if isinstance(norm, keras.layers.LayerNormalization):
        return {"weight": _make_weight(norm.gamma), "bias": _make_weight(norm.beta)}
    return {"weight": _make_weight(norm.scale)}


def _read_dense(layer: Any) -> dict[str, Weight]:
    weights = {"weight": _make_weight(layer.kernel)}
    return weights if layer.bias is None else weights | {"bias": _make_weight(layer.bias)}


def _make_weight(variable: Any, shape: tuple[int, ...] | None = None) -> Weight:
    """Return access to a variable, with its axes merged to the given ``shape``."""

    def read() -> np.ndarray:
        array = variable.numpy().astype(float)
        return array if shape is None else array.reshape(shape)

    return Weight(read, lambda array: variable.assign(array.reshape(variable.shape)))


def _join(parts: dict[str, dict[str, Weight]]) -> dict[str, Weight]:
    return {
        f"{part}.{name}": weight
        for part, weights in parts.items()
        for name, weight in weights.items()
    }
