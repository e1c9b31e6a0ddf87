"""Tests of additive attention, the Transformer's parts and the recurrent encoder against the reference.

A first call sets a layer's sizes. Then the layer gets random parameters, which the reference uses as well.
"""

import math
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import LENGTHS, assert_close, every_kind_of_lengths, make_case

X = np.random.default_rng(1).normal(size=(2, 5, 8)).astype("float32")
TOKENS = np.array([[1, 2, 3, 0, 4], [6, 5, 4, 3, 2]], "int32")
LENS = np.array([3, 5], "int32")


def read_linear(layer: Any, path: str) -> reference.Linear:
    parameters = layer.parameters(path)
    return reference.Linear(parameters["weight"], parameters.get("bias", 0.0))


def read_norm(adapter: Adapter, layer: Any, path: str) -> reference.LayerNorm:
    parameters = layer.parameters(path)
    return reference.LayerNorm(parameters["gamma"], parameters["beta"], adapter.NORM_EPSILON)


def apply_block(
    adapter: Adapter, layer: Any, x: np.ndarray, lens: np.ndarray, heads: int, path: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """Return the reference's output and weights of a Transformer encoder block."""
    roles = {f"w_{role}": read_linear(layer, f"{path}attention.W_{role}") for role in "qkvo"}
    attended, weights = reference.multi_head_attention(x, x, x, lens, num_heads=heads, **roles)
    y = read_norm(adapter, layer, f"{path}addnorm1.ln")(x + attended)
    dense = {name: read_linear(layer, f"{path}ffn.{name}") for name in ("dense1", "dense2")}
    output = y + reference.position_wise(y, **dense)
    return read_norm(adapter, layer, f"{path}addnorm2.ln")(output), weights


# Additive attention


@every_kind_of_lengths
@pytest.mark.parametrize("has_sizes", [False, True], ids=["sizes from the input", "explicit sizes"])
def test_additive_attention_matches_reference(
    adapter: Adapter, valid_lens: np.ndarray | None, has_sizes: bool
) -> None:
    case = make_case(valid_lens, sizes=(6, 5, 7), dtype="float32")
    layer = adapter.build("AdditiveAttention", *((5, 6) if has_sizes else ()), 8, 0.5)
    layer.randomize(*case.arrays)
    paths = {"w_q": "W_q", "w_k": "W_k", "w_v": "w_v"}
    linears = {name: read_linear(layer, path) for name, path in paths.items()}
    output, weights = reference.additive_attention(*case.arrays, **linears)
    assert_close(layer(*case.arrays), output)
    assert_close(layer.attention_weights, weights)
    assert (layer.attention_weights[case.is_masked] == 0).all()


def test_additive_attention_drops_weights_only_in_training(adapter: Adapter) -> None:
    case = make_case(steps=(30, 40), dtype="float32")
    layer = adapter.build("AdditiveAttention", 8, 0.5)
    identity = np.tile(np.eye(40, dtype="float32"), (2, 1, 1))
    layer.randomize(case.queries, case.keys, identity)
    assert (layer(case.queries, case.keys, identity) != 0).all()
    weights_used = layer(case.queries, case.keys, identity, training=True)
    assert (weights_used == 0).mean() == pytest.approx(0.5, abs=0.05)
    assert (layer.attention_weights != 0).all()


# Splitting and merging heads


def test_heads_are_split_and_merged(adapter: Adapter) -> None:
    split = adapter.call("transpose_qkv", X, 4)
    assert split.shape == (8, 5, 2)
    for example in range(2):
        for head in range(4):
            expected = X[example, :, 2 * head : 2 * head + 2]
            np.testing.assert_array_equal(split[4 * example + head], expected)
    np.testing.assert_array_equal(adapter.call("transpose_output", split, 4), X)


# Masks


@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 3)], ids=["numbers", "vectors"])
def test_sequence_mask_fills_only_past_length(adapter: Adapter, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    before = x.copy()
    masked = adapter.call("sequence_mask", x, LENS, value=-1)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(masked[0, 3:], np.full_like(x[0, 3:], -1))
    np.testing.assert_array_equal(masked[0, :3], x[0, :3])
    np.testing.assert_array_equal(masked[1], x[1])
    assert not adapter.call("sequence_mask", x, LENS)[0, 3:].any()


# The Transformer


@pytest.mark.parametrize("form", ["short", "long"])
def test_position_wise_network_matches_reference(adapter: Adapter, form: str) -> None:
    layer = adapter.build("PositionWiseFFN", *adapter.layer_args["PositionWiseFFN"][form])
    layer.randomize(X)
    dense = {name: read_linear(layer, name) for name in ("dense1", "dense2")}
    assert_close(layer(X), reference.position_wise(X, **dense))


def test_add_norm_matches_reference(adapter: Adapter) -> None:
    layer = adapter.build("AddNorm", *adapter.layer_args["AddNorm"])
    layer.randomize(X, X)
    assert_close(layer(X, X[::-1].copy()), read_norm(adapter, layer, "ln")(X + X[::-1]))


def test_add_norm_dropout_spares_residual(adapter: Adapter) -> None:
    *shape, _ = adapter.layer_args["AddNorm"]
    layer = adapter.build("AddNorm", *shape, 1.0)
    layer.randomize(X, X)
    assert_close(layer(X, X[::-1].copy(), training=True), read_norm(adapter, layer, "ln")(X))


@pytest.mark.parametrize("form", ["short", "long"])
@pytest.mark.parametrize("lens", [LENS, None], ids=["lengths", "no lengths"])
def test_encoder_block_matches_reference(
    adapter: Adapter, form: str, lens: np.ndarray | None
) -> None:
    layer = adapter.build(
        "TransformerEncoderBlock", *adapter.layer_args["TransformerEncoderBlock"][form]
    )
    layer.randomize(X, lens)
    assert_close(layer(X, lens), apply_block(adapter, layer, X, lens, heads=2)[0], 1e-4)


@pytest.mark.parametrize("form", ["short", "long"])
def test_transformer_encoder_matches_reference(adapter: Adapter, form: str) -> None:
    layer = adapter.build("TransformerEncoder", *adapter.layer_args["TransformerEncoder"][form])
    layer.randomize(TOKENS, LENS)
    embedded = layer.parameters("embedding")["table"][TOKENS] * math.sqrt(8)
    x = embedded + reference.positional_encoding(5, 8)
    expected = []
    for number in range(2):
        x, weights = apply_block(adapter, layer, x, LENS, 2, f"blks.{number}.")
        expected.append(weights.reshape(-1, 5, 5))
    assert_close(layer(TOKENS, LENS), x, 1e-3)
    got = layer.attention_weights
    assert len(got) == 2
    for ours, theirs in zip(got, expected, strict=True):
        assert_close(ours.reshape(-1, 5, 5), theirs, 1e-4)


def test_encoder_block_is_alias(adapter: Adapter) -> None:
    assert adapter.d2l.EncoderBlock is adapter.d2l.TransformerEncoderBlock


def test_padding_does_not_affect_other_tokens(adapter: Adapter) -> None:
    layer = adapter.build("TransformerEncoder", *adapter.layer_args["TransformerEncoder"]["short"])
    layer.randomize(TOKENS, LENS)
    other = TOKENS.copy()
    other[0, 3:] = 6
    assert_close(layer(other, LENS)[0, :3], layer(TOKENS, LENS)[0, :3])


# Recurrent


def test_recurrent_encoder_matches_reference(adapter: Adapter) -> None:
    layer = adapter.build("Seq2SeqEncoder", 7, 6, 4, 3)
    layer.randomize(TOKENS)
    embedded = layer.parameters("embedding")["table"][TOKENS.T]
    outputs, states = reference.gru(embedded, layer.gates("rnn.rnn"))
    got_outputs, got_states = layer(TOKENS)
    assert_close(got_outputs, outputs)
    assert_close(np.asarray(got_states), states)


def test_recurrent_encoder_follows_d2l_version(
    adapter: Adapter, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test 0.17's results: in TensorFlow the first axis was the batch, in MXNet the state was a list."""
    framework = pytestconfig.getoption("framework")
    results = []
    for version in "1.0", "0.17":
        monkeypatch.setenv("D2L_VERSION", version)
        layer = adapter.build("Seq2SeqEncoder", 7, 6, 4, 2)
        layer.randomize(TOKENS)
        results.append(layer(TOKENS))
    (outputs, states), (got_outputs, got_states) = results
    if framework == "mxnet":
        assert isinstance(got_states, list)
        (got_states,) = got_states
    expected = outputs.swapaxes(0, 1) if framework == "tensorflow" else outputs
    np.testing.assert_array_equal(got_outputs, expected)
    np.testing.assert_array_equal(np.asarray(got_states), np.asarray(states))


def test_dropout_is_only_between_recurrent_layers(adapter: Adapter) -> None:
    """Test one step: each layer's new state must follow from its input, masked by one of all possible dropout masks."""
    tokens = np.arange(7, dtype="int32")[:, None]
    layer = adapter.build("Seq2SeqEncoder", 7, 6, 4, 2, 0.25)
    layer.randomize(tokens)
    (outputs,), states = layer(tokens, training=True)
    assert_close(outputs, states[-1])
    inputs = layer.parameters("embedding")["table"][tokens[:, 0]]
    for number, gates in enumerate(layer.gates("rnn.rnn")):
        masks = np.ones((1, inputs.shape[1]))
        if number or adapter.DROPS_INPUTS:
            masks = np.array([*product((0, 1), repeat=inputs.shape[1])]) / 0.75
        _, (candidates,) = reference.gru(
            [(inputs[:, None] * masks).reshape(-1, len(masks[0]))], [gates]
        )
        candidates = candidates.reshape(len(inputs), len(masks), -1)
        distances = np.abs(candidates - np.asarray(states[number])[:, None]).max(axis=2)
        assert (distances.min(axis=1) < 1e-5).all()
        assert len({*distances.argmin(axis=1)}) > 1 or len(masks) == 1
        inputs = np.asarray(states[number])
    np.testing.assert_array_equal(layer(TOKENS)[0], layer(TOKENS)[0])


@pytest.mark.parametrize("num_layers", [1, 3])
def test_recurrent_layer_continues_from_state(adapter: Adapter, num_layers: int) -> None:
    sizes = [6, 4, num_layers, 0.5]
    if "num_inputs" not in signature(adapter.d2l.GRU).parameters:
        del sizes[0]
    layer = adapter.build("GRU", *sizes)
    steps = np.random.default_rng(2).normal(size=(5, 2, 6)).astype("float32")
    layer.randomize(steps)
    outputs, state = layer(steps)
    assert np.shape(state) == (num_layers, 2, 4)
    first, middle_state = layer(steps[:2])
    second, last_state = layer(steps[2:], np.array(middle_state))
    assert_close(np.concatenate([first, second]), outputs)
    assert_close(np.array(last_state), np.array(state))


@pytest.mark.parametrize("valid_lens", [LENGTHS["per query"]], ids=["per query"])
def test_additive_attention_without_keys_is_zero(adapter: Adapter, valid_lens: np.ndarray) -> None:
    case = make_case(valid_lens, dtype="float32")
    layer = adapter.build("AdditiveAttention", 8, 0.0)
    layer.randomize(*case.arrays)
    output = layer(*case.arrays)
    assert not output[0, 2].any()
    assert output[0, 1].all()
