"""Tests that weights convert between the shim's layers and PyTorch's own, both ways."""

import pytest
import torch
from torch import Tensor, nn

from d2l_compat import torch as d2l

X, MEMORY = torch.randn(2, 7, 16), torch.randn(2, 5, 16)
CAUSAL = nn.Transformer.generate_square_subsequent_mask(7)


def randomize(layer: nn.Module) -> nn.Module:
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer.eval()


def convert_both_ways(ours: nn.Module, own: nn.Module, call_ours: object, call_own: object) -> None:
    """Check that each layer computes what the other did, once it has the other's weights."""
    for source, target in ((ours, own), (own, ours)):
        randomize(source)
        randomize(target)
        d2l.convert_weights(source, target)
        got, want = call_ours(ours), call_own(own)  # type: ignore[operator]
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(activation: str, norm_first: bool) -> None:
    own = nn.TransformerEncoderLayer(16, 4, 24, 0.0, activation, 1e-3, True, norm_first)
    ours = d2l.TransformerBlock(
        16, 4, 24, activation=activation, norm_first=norm_first, norm_epsilon=1e-3
    )
    lens, is_padding = torch.tensor([7, 4]), torch.arange(7) >= torch.tensor([[7], [4]])

    def call_own(layer: nn.Module) -> Tensor:
        return layer(X, src_key_padding_mask=is_padding)[is_padding.logical_not()]

    convert_both_ways(ours, own, lambda layer: layer(X, lens)[is_padding.logical_not()], call_own)


def test_decoder_layer() -> None:
    own = nn.TransformerDecoderLayer(16, 4, 24, 0.0, "gelu", batch_first=True, norm_first=True)
    ours = d2l.TransformerBlock(16, 4, 24, causal=True, cross_attention=True)
    convert_both_ways(
        ours,
        own,
        lambda layer: layer(X, memory=MEMORY),
        lambda layer: layer(X, MEMORY, tgt_mask=CAUSAL),
    )


def test_attention() -> None:
    own = nn.MultiheadAttention(16, 4, batch_first=True)
    ours = d2l.CausalSelfAttention(16, 4, bias=True)
    convert_both_ways(
        ours, own, lambda layer: layer(X), lambda layer: layer(X, X, X, attn_mask=CAUSAL)[0]
    )
    ours = d2l.MultiHeadAttention(16, 16, 16, 16, 4, 0.0, True)
    convert_both_ways(
        ours,
        own,
        lambda layer: layer(X, MEMORY, MEMORY),
        lambda layer: layer(X, MEMORY, MEMORY)[0],
    )


def test_layers_that_cannot_be_converted() -> None:
    own = nn.MultiheadAttention(16, 4, kdim=8)
    with pytest.raises(ValueError, match=r"^layer: got an nn.MultiheadAttention with kdim, vdim"):
        d2l.convert_weights(own, d2l.CausalSelfAttention(16, 4))
    lazy = d2l.MultiHeadAttention(16, 4, 0.0)
    with pytest.raises(ValueError, match=r"^layer: got one that has yet to take a size"):
        d2l.convert_weights(d2l.CausalSelfAttention(16, 4), lazy)
