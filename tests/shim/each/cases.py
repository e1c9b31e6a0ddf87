"""Inputs for the attention layers, fixed or drawn at random, the same for every framework."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.shim import reference

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
SEEDS = st.integers(0, 2**32 - 1)

# For two examples, three queries and four keys: a length per example, and one per query.
LENGTHS = {
    "every key": None,
    "per example": np.array([3, 0]),
    "per query": np.array([[4, 1, 0], [2, 0, 3]]),
}


def parametrize_lengths(
    lengths: dict[str, Any], *deferred: str, slow: tuple[str, ...] = ("jax",)
) -> pytest.MarkDecorator:
    """Parametrize by ``valid_lens``; in ``slow`` frameworks, only `make test-all` tests the ``deferred`` ones."""
    mark = pytest.mark.release(*slow)
    return pytest.mark.parametrize(
        "valid_lens",
        [
            pytest.param(lens, id=name, marks=[mark] if name in deferred else [])
            for name, lens in lengths.items()
        ],
    )


every_kind_of_lengths = parametrize_lengths(LENGTHS, "per example")


@dataclass
class Case:
    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    valid_lens: np.ndarray | None

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.queries, self.keys, self.values, self.valid_lens

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Key, query and value sizes, in the order of MultiHeadAttention's long signature."""
        return self.keys.shape[-1], self.queries.shape[-1], self.values.shape[-1]

    @property
    def scores(self) -> np.ndarray:
        return self.queries @ self.keys.swapaxes(1, 2)

    @property
    def scores_shape(self) -> tuple[int, int]:
        return self.queries.shape[1], self.keys.shape[1]

    @property
    def is_masked(self) -> np.ndarray:
        """A mask of the keys past a length, shape (batch, queries, keys)."""
        num_keys = self.keys.shape[1]
        shape = (*self.queries.shape[:2], num_keys)
        return np.arange(num_keys) >= reference.lengths(self.valid_lens, *shape)[..., None]


def make_case(
    valid_lens: np.ndarray | None = None,
    batch: int = 2,
    steps: tuple[int, int] = (3, 4),
    sizes: tuple[int, int, int] = (6, 6, 6),
    dtype: str = "float64",
    seed: int = 0,
) -> Case:
    """Make random input: ``steps`` counts queries and keys, ``sizes`` are the widths of queries, keys and values."""
    rng = np.random.default_rng(seed)
    (num_queries, num_keys), (q, k, v) = steps, sizes

    def random(num: int, size: int) -> np.ndarray:
        return rng.normal(size=(batch, num, size)).astype(dtype)

    return Case(random(num_queries, q), random(num_keys, k), random(num_keys, v), valid_lens)


# Batch, queries, keys; widths of a query, key and value.
SIZES = st.integers(1, 6)
ANY_SHAPE = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 5), SIZES, SIZES, SIZES)
# Together, they have the smallest and the largest value of each number, and some in between.
SHAPES = [
    (2, 3, 4, 5, 6, 3),
    (3, 4, 5, 6, 1, 6),
    (1, 1, 1, 1, 1, 1),
    (0, 2, 3, 2, 4, 1),
    (2, 0, 3, 4, 2, 5),
    (1, 4, 2, 3, 6, 2),
]


def shapes() -> st.SearchStrategy[Any]:
    """Draw any shape in PyTorch, or one of a few in frameworks that rebuild each operation for each shape."""
    return ANY_SHAPE if is_pytorch() else st.sampled_from(SHAPES)


def is_pytorch() -> bool:
    """Return whether the framework is PyTorch, for which tests/conftest.py sets more examples."""
    return settings().max_examples > 15


@st.composite
def heads(draw: st.DrawFn, case: Case) -> tuple[int, int]:
    """Draw the number of heads and their size; frameworks other than PyTorch derive them from the input."""
    if is_pytorch():
        return draw(st.integers(1, 4)), draw(st.integers(1, 3))
    num_queries, num_keys = case.scores_shape
    return num_keys % 4 + 1, num_queries % 3 + 1


@st.composite
def cases(draw: st.DrawFn, equal_sizes: bool = True) -> Case:
    """Draw any input, including empty input and lengths of zero."""
    batch, num_queries, num_keys, query_size, key_size, value_size = draw(shapes())
    if equal_sizes:
        key_size = query_size
    lengths = st.integers(0, num_keys)
    return make_case(
        draw(
            st.none()
            | arrays(np.int64, batch, elements=lengths)
            | arrays(np.int32, (batch, num_queries), elements=lengths)
        ),
        batch,
        (num_queries, num_keys),
        (query_size, key_size, value_size),
        draw(st.sampled_from(sorted(TOLERANCE))),
        draw(SEEDS),
    )


def make_weights(
    sizes: tuple[int, int, int], num_hiddens: int, bias: bool = False, dtype: str = "float64"
) -> dict[str, np.ndarray]:
    """Make random projections for key, query and value ``sizes``, of shape (inputs, outputs)."""
    rng = np.random.default_rng(7)
    shapes = dict(zip("kqvo", (*sizes, num_hiddens), strict=True))
    weights = {
        f"W_{role}": rng.normal(size=(size, num_hiddens)) / np.sqrt(size)
        for role, size in shapes.items()
    }
    if bias:
        weights |= {f"b_{role}": rng.normal(size=num_hiddens) for role in shapes}
    return {name: array.astype(dtype) for name, array in weights.items()}


def reference_multi_head(
    weights: dict[str, np.ndarray], num_heads: int, *inputs: Any, **kwargs: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the reference's output and attention weights with these projections."""
    projections = {
        f"w_{role}": reference.Linear(
            weights[f"W_{role}"].astype(np.float64), weights.get(f"b_{role}", 0.0)
        )
        for role in "qkvo"
    }
    return reference.multi_head_attention(*inputs, num_heads=num_heads, **projections, **kwargs)


def assert_gradients(
    layer: Any,
    attend: Callable[..., tuple[np.ndarray, np.ndarray]],
    case: Case,
    direction: np.ndarray,
    **masks: Any,
) -> None:
    """Compare gradients with respect to queries, keys, values and the finite part of a bias with the reference's."""
    inputs = {"queries": case.queries, "keys": case.keys, "values": case.values}
    if "score_bias" in masks:
        inputs["score_bias"] = masks["score_bias"]
    got = layer.gradients(direction, *case.arrays, **masks)
    for gradient, (name, x) in zip(got, inputs.items(), strict=True):

        def loss(point: np.ndarray, name: str = name, x: np.ndarray = x) -> float:
            changed = {**inputs, **masks, name: np.where(np.isfinite(x), point, x)}
            return float((attend(**changed, valid_lens=case.valid_lens)[0] * direction).sum())

        want = reference.gradient(loss, np.where(np.isfinite(x), x, 0))
        np.testing.assert_allclose(gradient, want, atol=1e-8)


def assert_dot_product(layer: Any, case: Case, **masks: Any) -> None:
    """Check a layer's output, weights and gradients against the reference's."""
    output, weights = reference.dot_product_attention(*case.arrays, **masks)
    assert_close(layer(*case.arrays, **masks), output)
    assert_close(layer.attention_weights, weights)
    direction = np.random.default_rng(1).normal(size=output.shape)
    assert_gradients(layer, reference.dot_product_attention, case, direction, **masks)


def assert_close(got: np.ndarray, want: Any, tolerance: float | None = None) -> None:
    """Check that shapes are equal, and values within the tolerance of ``got``'s dtype."""
    tolerance = tolerance or TOLERANCE[str(got.dtype)]
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)
