"""Tests that weights convert between the shim's layers and MLX's own, both ways."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx import nn

from d2l_compat import mlx as d2l

RNG = np.random.default_rng(0)
X, MEMORY = (mx.array(RNG.normal(size=(2, n, 16)).astype("float32")) for n in (7, 5))
LENS = mx.array([7, 4])
IS_REAL = mx.arange(7) < LENS[:, None]
CAUSAL = nn.MultiHeadAttention.create_additive_causal_mask(7)


def randomize(layer: nn.Module) -> None:
    layer.apply(lambda array: 0.5 * mx.random.normal(array.shape)).eval()


def remove_biases(block: Any) -> None:
    """Set the biases of attention to zero: MLX's own blocks have none."""
    for attention in (block.attention, block.get("cross_attention", block.attention)):
        for role in "qkvo":
            attention[f"W_{role}"].bias = mx.zeros(16)


def convert_both_ways(
    ours: Any, own: nn.Module, call_ours: Callable[[Any], mx.array], call_own: Callable[[Any], Any]
) -> None:
    """Check that each layer computes what the other did, once it has the other's weights."""
    for source, target in ((own, ours), (ours, own)):
        randomize(source)
        randomize(target)
        if source is ours and isinstance(ours, d2l.TransformerBlock):
            with pytest.raises(ValueError, match=r"^target: got a layer without .*attention.W_.*b"):
                d2l.convert_weights(ours, own)
            remove_biases(ours)
        d2l.convert_weights(source, target)
        np.testing.assert_allclose(call_ours(ours), call_own(own), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(activation: str, norm_first: bool) -> None:
    function = getattr(nn, activation)
    own = nn.TransformerEncoderLayer(16, 4, 24, activation=function, norm_first=norm_first)
    ours = d2l.TransformerBlock(16, 4, 24, activation=activation, norm_first=norm_first)
    convert_both_ways(
        ours,
        own,
        lambda layer: layer(X, LENS) * IS_REAL[..., None],
        lambda layer: layer(X, IS_REAL[:, None, None]) * IS_REAL[..., None],
    )


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_layer(norm_first: bool) -> None:
    own = nn.TransformerDecoderLayer(16, 4, 24, activation=nn.gelu, norm_first=norm_first)
    ours = d2l.TransformerBlock(16, 4, 24, norm_first=norm_first, causal=True, cross_attention=True)
    convert_both_ways(
        ours,
        own,
        lambda layer: layer(X, memory=MEMORY),
        lambda layer: layer(X, MEMORY, CAUSAL, None),
    )


def test_attention() -> None:
    own = nn.MultiHeadAttention(16, 4, bias=True)
    ours = d2l.CausalSelfAttention(16, 4, bias=True)
    convert_both_ways(ours, own, lambda layer: layer(X), lambda layer: layer(X, X, X, CAUSAL))
    ours = d2l.MultiHeadAttention(16, 16, 16, 16, 4, 0.0, True)
    convert_both_ways(
        ours,
        own,
        lambda layer: layer(X, MEMORY, MEMORY),
        lambda layer: layer(X, MEMORY, MEMORY),
    )


def test_layers_that_cannot_be_converted() -> None:
    for activation in (nn.gelu_approx, nn.GELU("precise")):
        own = nn.TransformerEncoderLayer(16, 4, 24, activation=activation)
        error = "^target: got a layer with activation='gelu'; need activation="
        with pytest.raises(ValueError, match=error):
            d2l.convert_weights(own, d2l.TransformerBlock(16, 4, 24))
    lazy = d2l.MultiHeadAttention(16, 4, 0.0)
    with pytest.raises(ValueError, match=r"^layer: got one that has yet to take a size"):
        d2l.convert_weights(nn.MultiHeadAttention(16, 4), lazy)


@pytest.mark.parametrize(
    ("num_blks", "options", "model", "error"),
    [
        (3, {}, {}, "number of blocks=3; need number of blocks=2"),
        (
            2,
            {"activation": "gelu"},
            {},
            "block 1: activation='gelu'; need block 1: activation='relu'",
        ),
        (2, {}, {"positions": None}, "embedding positions=None; need embedding positions='sinus"),
    ],
    ids=str,
)
def test_encoders_that_differ_are_refused(
    num_blks: int, options: dict[str, Any], model: dict[str, Any], error: str
) -> None:
    like_d2l = {"norm_first": False, "activation": "relu"}
    blocks = [d2l.TransformerBlock(16, 4, 24, **like_d2l) for _ in range(num_blks - 1)]
    blocks.append(d2l.TransformerBlock(16, 4, 24, **like_d2l | options))
    source = d2l.TransformerEncoder(11, 16, 24, 4, 2, 0.0, True)
    source(mx.zeros((1, 2), mx.int32))
    with pytest.raises(ValueError, match=f"^target: got a layer with {error}"):
        d2l.convert_weights(source, d2l.BlockEncoder(11, blocks, **model))
