"""Tests of linear attention, in each of its forms, against the NumPy reference."""

from typing import Any

import numpy as np
import pytest

from tests.shim import reference
from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import TOLERANCE

DECAYS = [1.0, 0.5, [1.0, 0.9, 0.5, 0.1]]


def build(adapter: Adapter, dtype: str = "float64", **options: Any) -> Any:
    layer = adapter.build_linear_attention(16, 4, dtype=dtype, **options)
    layer.randomize(draw(1, 1, 16, dtype=dtype))
    return layer


def draw(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype(dtype)


def attend(layer: Any, X: np.ndarray, decay: Any = 1.0) -> np.ndarray:
    """Return what the layer should compute for texts, (batch, steps, 16), from its parameters."""
    weights = {f"w_{x}": reference.Linear(layer.parameters(f"W_{x}")["weight"]) for x in "qkvo"}
    return reference.linear_attention(X, num_heads=4, decay=decay, **weights)[0]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("decay", DECAYS, ids=str)
def test_all_forms_match_reference(adapter: Adapter, decay: Any, dtype: str) -> None:
    layer, X = build(adapter, dtype, decay=decay), draw(2, 13, 16, dtype=dtype)
    want = attend(layer, X, decay)
    atol = TOLERANCE[dtype] * np.abs(want).max()
    np.testing.assert_allclose(layer(X), want, atol=atol)
    for chunk_size in (None, 1, 5, 13, 100):
        np.testing.assert_allclose(layer(X, chunk_size=chunk_size), want, atol=atol)
    reader = adapter.make_state(layer, 2)
    parts = [reader(X[:, :4], chunk_size=3), reader(X[:, 4:5]), reader(X[:, 5:], chunk_size=1)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), want, atol=atol)


def test_state_has_a_fixed_size_and_can_be_reset(adapter: Adapter) -> None:
    layer, X = build(adapter, decay=0.5), draw(2, 9, 16)
    reader = adapter.make_state(layer, 2)
    first = reader(X)
    assert reader.nbytes == 2 * 4 * (4 * 4 + 4) * 8
    assert all(x.any() for x in reader.arrays)
    reader(X * np.nan)
    reader.reset()
    assert not any(x.any() for x in reader.arrays)
    np.testing.assert_allclose(reader(X), first, atol=1e-12)


@pytest.mark.parametrize("chunk_size", [1, 4, None])
def test_gradients_match_differences(adapter: Adapter, chunk_size: int | None) -> None:
    layer = build(adapter, decay=[0.9, 1.0, 0.5, 0.2])
    X, direction = draw(1, 6, 16), draw(1, 6, 16) + 1
    (got,) = layer.gradients(direction, X, chunk_size=chunk_size)

    def loss(x: np.ndarray) -> float:
        return float((attend(layer, x, [0.9, 1.0, 0.5, 0.2]) * direction).sum())

    # elu has no second derivative at 0, so the steps have to be small.
    np.testing.assert_allclose(got, reference.gradient(loss, X, step=1e-5), atol=1e-6)


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_large_numbers_give_finite_results(adapter: Adapter, size: float) -> None:
    layer = build(adapter, "float32")
    X = np.full((1, 5, 16), size, "float32")
    assert np.isfinite(layer(X)).all()
    (gradient,) = layer.gradients(np.ones_like(X), X)
    assert np.isfinite(gradient).all()


def test_refused_state_is_left_as_it_was(adapter: Adapter) -> None:
    layer, X = build(adapter), draw(2, 3, 16)
    reader = adapter.make_state(layer, 2)
    reader(X)
    before = reader.arrays
    need = "state: got a state for a batch of 2; need one for the batch of 1"
    with pytest.raises(ValueError, match=need):
        reader(X[:1])
    other = adapter.make_state(adapter.build_linear_attention(16, 2), 2)
    other.layer = layer
    need = "state: got a state for 2 heads of width 8; need one for 4 heads of width 4"
    with pytest.raises(ValueError, match=need):
        other(X)
    with pytest.raises(ValueError, match="chunk_size: got 0; need an integer of at least 1"):
        reader(X, chunk_size=0)
    for x, y in zip(reader.arrays, before, strict=True):
        np.testing.assert_array_equal(x, y)
