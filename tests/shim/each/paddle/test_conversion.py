"""Tests that weights convert between the shim's layers and PaddlePaddle's own, both ways."""

from typing import Any

import pytest

from d2l_compat import paddle as d2l  # isort: split

import numpy as np
import paddle
from paddle import Tensor, nn

X, MEMORY = paddle.randn([2, 7, 16]), paddle.randn([2, 5, 16])
CAUSAL = paddle.ones([7, 7], "bool").tril()


def randomize(layer: nn.Layer) -> None:
    for parameter in layer.parameters():
        parameter.set_value(paddle.randn(parameter.shape) * 0.5)
    layer.eval()


def convert_both_ways(ours: nn.Layer, own: nn.Layer, call_ours: object, call_own: object) -> None:
    """Check that each layer computes what the other did, once it has the other's weights."""
    for source, target in ((ours, own), (own, ours)):
        randomize(source)
        randomize(target)
        d2l.convert_weights(source, target)
        got, want = call_ours(ours), call_own(own)  # type: ignore[operator]
        np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(activation: str, norm_first: bool) -> None:
    own = nn.TransformerEncoderLayer(
        16, 4, 24, 0.0, activation, normalize_before=norm_first, layer_norm_eps=1e-3
    )
    ours = d2l.TransformerBlock(
        16, 4, 24, activation=activation, norm_first=norm_first, norm_epsilon=1e-3
    )
    lens, is_real = paddle.to_tensor([7, 4]), paddle.arange(7) < paddle.to_tensor([[7], [4]])

    def call_own(layer: nn.Layer) -> Tensor:
        return layer(X, src_mask=is_real[:, None, None])[is_real]

    convert_both_ways(ours, own, lambda layer: layer(X, lens)[is_real], call_own)


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_layer(norm_first: bool) -> None:
    own = nn.TransformerDecoderLayer(16, 4, 24, 0.0, "gelu", normalize_before=norm_first)
    ours = d2l.TransformerBlock(16, 4, 24, causal=True, cross_attention=True, norm_first=norm_first)
    convert_both_ways(
        ours,
        own,
        lambda layer: layer(X, memory=MEMORY),
        lambda layer: layer(X, MEMORY, tgt_mask=CAUSAL),
    )


def test_attention() -> None:
    own = nn.MultiHeadAttention(16, 4)
    ours = d2l.CausalSelfAttention(16, 4, bias=True)
    convert_both_ways(ours, own, lambda layer: layer(X), lambda layer: layer(X, attn_mask=CAUSAL))
    ours = d2l.MultiHeadAttention(16, 16, 16, 16, 4, 0.0, True)
    convert_both_ways(
        ours,
        own,
        lambda layer: layer(X, MEMORY, MEMORY),
        lambda layer: layer(X, MEMORY, MEMORY),
    )


def test_layers_that_cannot_be_converted() -> None:
    causal = d2l.CausalSelfAttention(16, 4, bias=True)
    own = nn.MultiHeadAttention(16, 4, kdim=8)
    with pytest.raises(ValueError, match=r"^target: got a layer whose W_k.weight has the shape"):
        d2l.convert_weights(own, causal)
    for other, error in [
        (nn.MultiHeadAttention(16, 8), "num_heads=8; need num_heads=4"),
        (d2l.CausalSelfAttention(16, 4, bias=True, rope=True), "rope=True; need rope=False"),
    ]:
        with pytest.raises(ValueError, match=f"^target: got a layer with {error}"):
            d2l.convert_weights(causal, other)
    lazy = d2l.MultiHeadAttention(16, 4, 0.0)
    with pytest.raises(ValueError, match=r"^layer: got one that has yet to take a size"):
        d2l.convert_weights(causal, lazy)
    own = nn.TransformerEncoderLayer(16, 4, 24, activation="silu")
    with pytest.raises(ValueError, match=r"^target: got a layer with activation='relu'; need"):
        d2l.convert_weights(
            own, d2l.TransformerBlock(16, 4, 24, activation="relu", norm_first=False)
        )


def test_encoders_are_compared_block_by_block() -> None:
    def build(activation: str = "gelu", **model: Any) -> d2l.BlockEncoder:
        kinds = "gelu", activation
        blocks = [d2l.TransformerBlock(16, 4, 24, activation=kind) for kind in kinds]
        return d2l.BlockEncoder(5, blocks, **model)

    for other, error in [
        (build("relu"), "block 1: activation='relu'; need block 1: activation='gelu'"),
        (build(positions=None), "embedding positions=None; need embedding positions='sinusoidal'"),
    ]:
        with pytest.raises(ValueError, match=f"^target: got a layer with {error}"):
            d2l.convert_weights(build(), other)
