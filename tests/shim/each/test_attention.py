"""Tests of the attention layers against the NumPy reference."""

from copy import copy
from functools import partial
from inspect import getmembers
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.calls import layer_args
from tests.shim.each.cases import (
    LENGTHS,
    SEEDS,
    Case,
    assert_close,
    assert_dot_product,
    assert_gradients,
    cases,
    every_kind_of_lengths,
    heads,
    make_case,
    make_weights,
    parametrize_lengths,
    reference_multi_head,
)

# Masked softmax


@given(case=cases(), scale=st.sampled_from([1, 1000]))
def test_masked_softmax_matches_reference(adapter: Adapter, case: Case, scale: int) -> None:
    scores = scale * case.scores
    got = adapter.masked_softmax(scores, case.valid_lens)
    assert got.dtype == scores.dtype
    assert_close(got, reference.softmax(scores, case.valid_lens))


@given(case=cases())
def test_masked_scores_have_zero_weight(adapter: Adapter, case: Case) -> None:
    clean = adapter.masked_softmax(case.scores, case.valid_lens)
    for junk in (np.nan, np.inf, -np.inf):
        scores = np.where(case.is_masked, junk, case.scores).astype(case.scores.dtype)
        weights = adapter.masked_softmax(scores, case.valid_lens)
        np.testing.assert_array_equal(weights, clean)
        assert (weights[case.is_masked] == 0).all()


@given(case=cases())
def test_weights_sum_to_one_or_to_zero_without_keys(adapter: Adapter, case: Case) -> None:
    total = adapter.masked_softmax(case.scores, case.valid_lens).sum(axis=-1)
    assert_close(total, 1.0 - case.is_masked.all(axis=-1))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_lengths_may_have_any_integer_dtype(adapter: Adapter, dtype: str) -> None:
    case = make_case()
    lengths = np.array([3, 1])
    np.testing.assert_array_equal(
        adapter.masked_softmax(case.scores, lengths.astype(dtype)),
        adapter.masked_softmax(case.scores, lengths),
    )


# Scaled dot-product attention


@given(case=cases())
def test_dot_product_attention_matches_reference(adapter: Adapter, case: Case) -> None:
    layer = adapter.build_dot_product(dropout=0.5)
    output, weights = reference.dot_product_attention(*case.arrays)
    assert_close(layer(*case.arrays), output)
    assert_close(layer.attention_weights, weights)
    assert (layer.attention_weights[case.is_masked] == 0).all()


def test_query_without_keys_has_zero_output(adapter: Adapter) -> None:
    output = adapter.build_dot_product()(*make_case(LENGTHS["per query"]).arrays)
    assert not output[0, 2].any()
    assert not output[1, 1].any()
    assert output[0, 1].all()


@pytest.mark.parametrize("valid_lens", [None, np.array([0, 0])], ids=["no lengths", "lengths"])
def test_attention_without_keys_is_zero(adapter: Adapter, valid_lens: np.ndarray | None) -> None:
    layer = adapter.build_dot_product()
    no_keys = np.ones((2, 0, 4), "float32")
    output = layer(np.ones((2, 3, 4), "float32"), no_keys, no_keys, valid_lens)
    np.testing.assert_array_equal(output, np.zeros((2, 3, 4)))
    assert layer.attention_weights.shape == (2, 3, 0)


def test_multi_head_attention_accepts_no_queries(adapter: Adapter) -> None:
    layer = adapter.build_multi_head(8, 8, 8, 8, 2, 0.0, dtype="float32")
    keys = np.ones((2, 3, 8), "float32")
    assert layer(keys[:, :0], keys, keys, np.zeros((2, 0), "int32")).shape == (2, 0, 8)


@given(seed=SEEDS)
def test_output_follows_query_order_and_ignores_key_order(adapter: Adapter, seed: int) -> None:
    queries, keys, values, _ = make_case(seed=seed).arrays
    rng = np.random.default_rng(seed)
    query_order, key_order = rng.permutation(3), rng.permutation(4)
    layer = adapter.build_dot_product()
    output = layer(queries, keys, values)
    assert_close(layer(queries[:, query_order], keys, values), output[:, query_order])
    assert_close(layer(queries, keys[:, key_order], values[:, key_order]), output)


def test_attention_weights_are_from_last_call(adapter: Adapter) -> None:
    layer = adapter.build_dot_product()
    first, last = make_case(seed=1), make_case(seed=2)
    layer(*first.arrays)
    layer(*last.arrays)
    assert_close(layer.attention_weights, reference.dot_product_attention(*last.arrays)[1])


@pytest.mark.parametrize(
    "name", ["DotProductAttention", "AdditiveAttention", "MultiHeadAttention", "TransformerEncoder"]
)
def test_attention_weights_can_be_assigned_until_next_call(adapter: Adapter, name: str) -> None:
    if adapter.d2l.__name__.endswith("jax"):
        pytest.skip("Flax's layers return their weights")
    wrapped = adapter.build(name, *layer_args(adapter, name))
    layer = wrapped.layer
    assert not hasattr(layer, "attention_weights")
    X = np.ones((2, 3, 8), "float32")
    inputs = [np.ones((2, 3), "int32")] if name == "TransformerEncoder" else [X, X, X]
    wrapped.randomize(*inputs)
    wrapped(*inputs)
    weights, parameters = wrapped.attention_weights, wrapped.parameter_names
    for value in None, adapter.tensor(X), "any value":
        layer.attention_weights = value
        assert layer.attention_weights is value
        if not adapter.d2l.__name__.endswith("tensorflow"):  # Keras copies only the configuration
            assert copy(layer).attention_weights is value
        assert dict(getmembers(layer))["attention_weights"] is value
        assert wrapped.parameter_names == parameters
        wrapped(*inputs)
        np.testing.assert_allclose(wrapped.attention_weights, weights)


def test_decoder_lacks_weights_until_they_are_assigned(adapter: Adapter) -> None:
    decoder = type("Mine", (adapter.d2l.AttentionDecoder,), {"setup": lambda self: None})()
    if adapter.d2l.__name__.endswith("jax"):  # whose fields cannot be assigned
        with pytest.raises(NotImplementedError, match=r"Mine.attention_weights: got no definition"):
            _ = decoder.attention_weights
        return
    assert not hasattr(decoder, "attention_weights")
    decoder.attention_weights = None
    assert decoder.attention_weights is None


def test_dropout_drops_weights_and_scales_the_rest(adapter: Adapter) -> None:
    case = make_case(batch=4, steps=(50, 40), sizes=(8, 8, 8), dtype="float32")
    layer = adapter.build_dot_product(dropout=0.25)
    # The values are an identity matrix, so the output is the weights as they were used.
    identity = np.tile(np.eye(40, dtype="float32"), (4, 1, 1))
    used = layer(case.queries, case.keys, identity, training=True)
    dropped = used == 0
    assert dropped.mean() == pytest.approx(0.25, abs=0.02)
    weights = layer.attention_weights
    assert_close(used[~dropped], weights[~dropped] / 0.75)
    assert (weights != 0).all(), "attention_weights are from before dropout"


def test_dropout_is_random_and_off_in_evaluation(adapter: Adapter) -> None:
    case = make_case(dtype="float32")
    weights = make_weights(case.sizes, 6, dtype="float32")
    for layer in (
        adapter.build_dot_product(dropout=0.5),
        adapter.build_multi_head(*case.sizes, 6, 2, 0.5, weights=weights, dtype="float32"),
    ):
        first = layer(*case.arrays, training=True)
        second = layer(*case.arrays, training=True)
        assert not np.array_equal(first, second)
        np.testing.assert_array_equal(layer(*case.arrays), layer(*case.arrays))


# Multi-head attention


@given(data=st.data(), case=cases(equal_sizes=False), bias=st.booleans())
def test_multi_head_attention_matches_reference(
    adapter: Adapter, data: st.DataObject, case: Case, bias: bool
) -> None:
    num_heads, size = data.draw(heads(case))
    dtype = str(case.queries.dtype)
    num_hiddens = num_heads * size
    weights = make_weights(case.sizes, num_hiddens, bias, dtype)
    sizes = (*case.sizes, num_hiddens, num_heads, 0.5, bias)
    layer = adapter.build_multi_head(*sizes, weights=weights, dtype=dtype)
    output, expected_weights = reference_multi_head(weights, num_heads, *case.arrays)
    assert_close(layer(*case.arrays), output)
    assert_close(layer.attention_weights, expected_weights)
    masked = np.broadcast_to(case.is_masked[:, None], expected_weights.shape)
    assert (layer.attention_weights[masked] == 0).all()


BIAS = "the framework's name for the argument"
SIGNATURES = {
    "short, positional": ((8, 2, 0.5, True), {}),
    "short, by keyword": ((), {"num_hiddens": 8, "num_heads": 2, "dropout": 0.5, BIAS: True}),
    "short, mixed": ((8, 2), {BIAS: True, "dropout": 0.5}),
    "long, positional": ((5, 6, 7, 8, 2, 0.5, True), {}),
    "long, by keyword": (
        (),
        {
            BIAS: True,
            "dropout": 0.5,
            "num_heads": 2,
            "num_hiddens": 8,
            "value_size": 7,
            "query_size": 6,
            "key_size": 5,
        },
    ),
    "long, mixed": ((5, 6, 7), {"num_hiddens": 8, "num_heads": 2, "dropout": 0.5, BIAS: True}),
}


@pytest.mark.parametrize(("args", "kwargs"), SIGNATURES.values(), ids=SIGNATURES)
def test_both_signatures_make_same_layer(adapter: Adapter, args: tuple, kwargs: dict) -> None:
    bias = "use_bias" if adapter.d2l.__name__.endswith("mxnet") else "bias"
    kwargs = {bias if name == BIAS else name: value for name, value in kwargs.items()}
    case = make_case(LENGTHS["per example"], sizes=(6, 5, 7))
    weights = make_weights(case.sizes, 8, bias=True)
    layer = adapter.build_multi_head(*args, weights=weights, **kwargs)
    output, _ = reference_multi_head(weights, 2, *case.arrays)
    assert_close(layer(*case.arrays), output)
    assert adapter.parameter_shapes(layer) == {name: x.shape for name, x in weights.items()}


@pytest.mark.parametrize("sizes", [(), (6, 6, 6)], ids=["short", "long"])
def test_no_bias_by_default(adapter: Adapter, sizes: tuple[int, ...]) -> None:
    layer = adapter.build_multi_head(*sizes, 8, 2, 0.5)
    layer(*make_case().arrays)  # the short signature infers its sizes from this call
    assert adapter.parameter_shapes(layer) == {
        "W_q": (6, 8),
        "W_k": (6, 8),
        "W_v": (6, 8),
        "W_o": (8, 8),
    }


@given(seed=SEEDS, num_heads=st.integers(1, 3))
def test_self_attention_is_permutation_equivariant(
    adapter: Adapter, seed: int, num_heads: int
) -> None:
    case = make_case(seed=seed)
    num_hiddens = 2 * num_heads
    weights = make_weights(case.sizes, num_hiddens)
    layer = adapter.build_multi_head(*case.sizes, num_hiddens, num_heads, 0.5, weights=weights)
    tokens = case.queries
    order = np.random.default_rng(seed).permutation(tokens.shape[1])
    shuffled = tokens[:, order]
    output = layer(tokens, tokens, tokens)
    assert_close(layer(shuffled, shuffled, shuffled), output[:, order])


@every_kind_of_lengths
def test_examples_do_not_affect_each_other(adapter: Adapter, valid_lens: np.ndarray | None) -> None:
    case = make_case(valid_lens)
    weights = make_weights(case.sizes, 6)
    layer = adapter.build_multi_head(*case.sizes, 6, 3, 0.5, weights=weights)
    parts = [layer(*(None if x is None else x[i : i + 1] for x in case.arrays)) for i in range(2)]
    assert_close(layer(*case.arrays), np.concatenate(parts))


# Gradients


@every_kind_of_lengths
def test_multi_head_gradients_match_reference(
    adapter: Adapter, valid_lens: np.ndarray | None
) -> None:
    case = make_case(valid_lens, sizes=(3, 4, 5))
    weights = make_weights(case.sizes, 4, bias=True)
    layer = adapter.build_multi_head(*case.sizes, 4, 2, 0.0, True, weights=weights)
    direction = np.random.default_rng(1).normal(size=(2, 3, 4))
    assert_gradients(layer, partial(reference_multi_head, weights, 2), case, direction)


@pytest.mark.parametrize(
    "dtype", [pytest.param("float32", marks=pytest.mark.release("jax")), "float64"]
)
@every_kind_of_lengths
def test_gradients_past_lengths_are_zero_and_finite(
    adapter: Adapter, valid_lens: np.ndarray | None, dtype: str
) -> None:
    case = make_case(valid_lens, dtype=dtype)
    direction = np.ones((2, 3, 6), dtype)
    weights = make_weights(case.sizes, 6, dtype=dtype)
    for layer in (
        adapter.build_dot_product(),
        adapter.build_multi_head(*case.sizes, 6, 3, 0.0, weights=weights, dtype=dtype),
    ):
        queries, keys, values = layer.gradients(direction, *case.arrays)
        for gradient in (queries, keys, values):
            assert np.isfinite(gradient).all()
        assert (queries[case.is_masked.all(axis=2)] == 0).all()
        is_unused = case.is_masked.all(axis=1)
        assert (keys[is_unused] == 0).all()
        assert (values[is_unused] == 0).all()


# Long input


LONG_LENGTHS = {
    "every key": None,
    "per example": np.array([3, 0]),
    "per query": np.array([[4, 1, 0, 2, 3, 4, 1], [2, 0, 3, 1, 4, 4, 2]]),
}


@pytest.mark.usefixtures("force_blockwise")
@parametrize_lengths(LONG_LENGTHS, "every key", "per example", slow=("jax", "paddle"))
def test_long_input_and_gradients_match_reference(
    adapter: Adapter, valid_lens: np.ndarray | None
) -> None:
    case = make_case(valid_lens, steps=(7, 4))
    assert_dot_product(adapter.build_dot_product(dropout=0.5), case)


@pytest.mark.usefixtures("force_blockwise")
def test_dropout_applies_to_long_input(adapter: Adapter) -> None:
    case = make_case(steps=(50, 40), sizes=(8, 8, 8), dtype="float32")
    identity = np.tile(np.eye(40, dtype="float32"), (2, 1, 1))
    used = adapter.build_dot_product(dropout=0.25)(case.queries, case.keys, identity, training=True)
    assert (used == 0).mean() == pytest.approx(0.25, abs=0.03)


# Layers that a user puts in the place of ours


def test_projections_can_be_replaced(adapter: Adapter) -> None:
    """Put linear layers of other sizes, within layers without weights, in the place of projections."""
    if not hasattr(adapter, "Block"):
        pytest.skip("in Flax, a subclass defines its own projections")

    class Wrapper(adapter.Block):  # type: ignore[name-defined, misc]
        def __init__(self, base: Any) -> None:
            super().__init__()
            self.base = base

    setattr(Wrapper, adapter.CALL_METHOD, lambda self, X: self.base(X))
    wrap = Wrapper if adapter.CAN_REPLACE_TYPE else lambda base: base
    path = "W_{}.base" if adapter.CAN_REPLACE_TYPE else "W_{}"
    sizes = {"q": (8, 4), "k": (8, 4), "v": (8, 12), "o": (12, 6)}
    case = make_case(sizes=(8, 8, 8), dtype="float32")
    for args in (8, 2, 0.0), (8, 8, 8, 8, 2, 0.0):
        projections = {
            f"W_{role}": wrap(adapter.build_dense(*size)) for role, size in sizes.items()
        }
        layer = adapter.build("MultiHeadAttention", *args)
        layer.layer = adapter.replace_sublayers(layer.layer, projections)
        layer.randomize(*case.arrays)
        linears = {
            f"w_{role}": reference.Linear(*layer.parameters(path.format(role)).values())
            for role in sizes
        }
        output, weights = reference.multi_head_attention(*case.arrays, num_heads=2, **linears)
        assert_close(layer(*case.arrays), output, 1e-4)
        assert_close(layer.attention_weights, weights, 1e-4)
