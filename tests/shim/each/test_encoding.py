"""Tests of the positional encoding against the NumPy reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import assert_close


@given(max_len=st.integers(1, 40), num_hiddens=st.integers(1, 33))
def test_encoding_matches_paper(adapter: Adapter, max_len: int, num_hiddens: int) -> None:
    P = adapter.build_encoding(num_hiddens, 0.0, max_len).P
    assert_close(P, reference.positional_encoding(max_len, num_hiddens)[None])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_encoding_is_rounded_once_to_layers_dtype(adapter: Adapter, dtype: str) -> None:
    P = adapter.build_encoding(7, 0.0, dtype=dtype).P
    assert P.dtype == dtype
    # Half a unit in the last place for numbers just below 1, or the angle's rounding error.
    tolerance = max(np.finfo(dtype).eps / 4, 1e-12)
    assert_close(P, reference.positional_encoding(1000, 7)[None], tolerance)


@given(
    num_hiddens=st.integers(1, 9),
    offset=st.integers(0, 5),
    steps=st.integers(0, 4),
    batch=st.integers(0, 2),
)
def test_offset_selects_later_positions(
    adapter: Adapter, num_hiddens: int, offset: int, steps: int, batch: int
) -> None:
    layer = adapter.build_encoding(num_hiddens, 0.0, max_len=9)
    X = np.random.default_rng(0).normal(size=(batch, steps, num_hiddens))
    P = reference.positional_encoding(9, num_hiddens)[offset : offset + steps]
    assert_close(layer(X, offset=offset), X + P)


def test_encoding_by_offsets_matches_whole_sequence(adapter: Adapter) -> None:
    layer = adapter.build_encoding(6, 0.0, max_len=5)
    X = np.random.default_rng(0).normal(size=(2, 5, 6))
    tokens = [layer(X[:, i : i + 1], offset=i) for i in range(5)]
    np.testing.assert_array_equal(np.concatenate(tokens, axis=1), layer(X))


def test_positions_are_neither_trained_nor_saved(adapter: Adapter) -> None:
    for layer in (adapter.build_encoding(8, 0.0), adapter.build_rotary(8)):
        assert adapter.lesson_state_names(layer.layer) == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_output_has_inputs_dtype(adapter: Adapter, dtype: str) -> None:
    assert adapter.build_encoding(6, 0.0, dtype=dtype)(np.zeros((1, 2, 6), dtype)).dtype == dtype


def test_dropout_applies_to_sum_only_in_training(adapter: Adapter) -> None:
    layer = adapter.build_encoding(32, 0.25, dtype="float32")
    X = np.full((4, 50, 32), 2.0, "float32")
    total = layer(X)
    training_output = layer(X, training=True)
    dropped = training_output == 0
    assert dropped.mean() == pytest.approx(0.25, abs=0.02)
    assert_close(training_output[~dropped], total[~dropped] / 0.75)
    assert_close(total, 2 + reference.positional_encoding(50, 32)[None].repeat(4, axis=0))
