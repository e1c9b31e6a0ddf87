"""Tests of what only MLX has in Transformer blocks: compilation, and functions that it computes imprecisely."""

import math
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from d2l_compat import mlx as d2l
from d2l_compat.mlx import blocks

RNG = np.random.default_rng(0)
X = mx.array(RNG.normal(size=(2, 7, 16)).astype("float32"))
TOKENS = mx.array(RNG.integers(0, 11, (2, 7)))
LENS = mx.array([7, 4])


@pytest.mark.parametrize("positions", [None, "rope", "alibi"])
@pytest.mark.parametrize("options", [{}, {"causal": True, "window": 3}], ids=str)
def test_compiled_block_is_equal(options: dict[str, Any], positions: str | None) -> None:
    block = d2l.TransformerBlock(16, 4, 24, positions=positions, **options).eval()

    def loss(X: mx.array, lens: mx.array) -> mx.array:
        Y = block(X, lens)
        return Y[0].square().sum() + Y[1, :4].square().sum()

    for function in (loss, mx.grad(loss)):
        got = mx.compile(function)(X, LENS)
        np.testing.assert_allclose(got, function(X, LENS), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_compiled_seq2seq_is_equal(positions: str) -> None:
    block = d2l.TransformerBlock(16, 4, 24, causal=True, cross_attention=True)
    encoder = d2l.BlockEncoder(11, [d2l.TransformerBlock(16, 4, 24)], positions=positions)
    decoder = d2l.BlockDecoder(11, [block], positions=positions)
    model = d2l.BlockSeq2Seq(encoder, decoder, tgt_pad=0, lr=0.01).eval()
    got = mx.compile(lambda *batch: model(*batch))(TOKENS, TOKENS, LENS)
    np.testing.assert_allclose(got, model(TOKENS, TOKENS, LENS), atol=1e-5)


def test_float64_activations_have_all_digits() -> None:
    x = np.linspace(-12, 12, 1001)
    half_erfc = np.array([math.erfc(-a / math.sqrt(2)) / 2 for a in x])
    double = mx.array(x, mx.float64)
    np.testing.assert_allclose(blocks._gelu(double), x * half_erfc, atol=1e-13)
    np.testing.assert_allclose(blocks._silu(double), x / (1 + np.exp(-x)), atol=1e-13)
    slope = half_erfc + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    got = mx.grad(lambda x: blocks._gelu(x).sum())(double)
    np.testing.assert_allclose(got, slope, atol=1e-13)


def test_prediction_drops_nothing_and_leaves_the_mode() -> None:
    block = d2l.TransformerBlock(16, 4, 24, 0.5, causal=True, cross_attention=True)
    encoder = d2l.BlockEncoder(11, [d2l.TransformerBlock(16, 4, 24, 0.5)], dropout=0.5)
    model = d2l.BlockSeq2Seq(encoder, d2l.BlockDecoder(11, [block]), tgt_pad=0, lr=0.01).train()
    batch = TOKENS, TOKENS, LENS, TOKENS
    (_, first), (_, second) = (model.predict_step(batch, d2l.cpu(), 3, True) for _ in range(2))
    np.testing.assert_array_equal(first[-1][0], second[-1][0])
    assert model.training
    assert block.drop.training
