"""Tests of ``longest_chain`` and ``multiply_adds`` against formulas, also in nested programs."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest

from d2l_compat import jax as d2l

A, B, SQUARE = jnp.zeros((2, 3)), jnp.zeros((3, 5)), jnp.zeros((4, 4))


def scan_products(X: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda H, x: (H @ X, None), X, jnp.arange(7))[0]


def make_convolution(*shape: int, **kwargs: Any) -> tuple[Callable[..., Any], jax.Array]:
    layer = nn.Conv(6, (3,), **kwargs)
    X = jnp.zeros(shape)
    variables = layer.init(jax.random.key(0), X)
    return lambda X: layer.apply(variables, X), X


# Each case is a layer, its inputs, the longest chain of products, and the number of multiply-adds.
COUNT_CASES = {
    "matrices": (lambda a, b: a @ b, (A, B), 1, 2 * 3 * 5),
    "transposed": (lambda a, b: b.T @ a.T, (A, B), 1, 2 * 3 * 5),
    "einsum": (lambda a, b: jnp.einsum("hij,hjk->hik", a, b), (A[None], B[None]), 1, 30),
    "one after another": (lambda X: X @ X @ X, (SQUARE,), 2, 2 * 4**3),
    "side by side": (lambda X: X @ X + X.T @ X, (SQUARE,), 1, 2 * 4**3),
    "two results": (lambda X: (X, X @ X), (SQUARE,), 1, 4**3),
    "none": (lambda X: 2 * X, (SQUARE,), 0, 0),
    "a constant": (lambda X: 1.0, (SQUARE,), 0, 0),
    "steps of a scan": (scan_products, (SQUARE,), 7, 7 * 4**3),
    "compiled": (jax.jit(scan_products), (SQUARE,), 7, 7 * 4**3),
    "with its own derivative": (lambda X: nn.relu(X @ X) @ X, (SQUARE,), 2, 2 * 4**3),
    "checkpointed": (jax.checkpoint(lambda X: X @ X), (SQUARE,), 1, 4**3),
    "tokens": (lambda ids: B[ids] @ B.T, (jnp.array([0, 2]),), 1, 2 * 5 * 3),
}


@pytest.mark.parametrize(
    ("layer", "inputs", "chain_length", "num_multiply_adds"), COUNT_CASES.values(), ids=COUNT_CASES
)
def test_products_are_counted(
    layer: Callable[..., Any], inputs: tuple[Any, ...], chain_length: int, num_multiply_adds: int
) -> None:
    assert d2l.longest_chain(layer, *inputs) == chain_length
    assert d2l.multiply_adds(layer, *inputs) == num_multiply_adds


def test_convolution_counts_kernel_for_each_output() -> None:
    assert d2l.multiply_adds(*make_convolution(1, 10, 4)) == 10 * 6 * 3 * 4
    layer, X = make_convolution(1, 10, 4, feature_group_count=2)
    assert d2l.multiply_adds(layer, X) == 10 * 6 * 3 * 4 // 2


@pytest.mark.parametrize("n", [8, 1024])  # long input is attended to block by block
def test_attention_is_chain_of_four_products(n: int) -> None:
    d = 8
    X = jnp.zeros((1, n, 8))
    attention = d2l.MultiHeadAttention(d, 2, 0)
    variables = attention.init(jax.random.key(0), X, X, X)

    def layer(X: jax.Array) -> Any:
        return attention.apply(variables, X, X, X)[0]

    assert d2l.longest_chain(layer, X) == 4
    assert d2l.multiply_adds(layer, X) == 4 * n * d**2 + 2 * n**2 * d


@pytest.mark.parametrize("count", [d2l.longest_chain, d2l.multiply_adds])
def test_uncountable_operations_are_rejected(count: Callable[..., int]) -> None:
    def loop(X: jax.Array) -> Any:
        return jax.lax.while_loop(lambda X: X.sum() < 9, lambda X: X @ X, X)

    def branch(X: jax.Array) -> Any:
        return jax.lax.cond(X.sum() < 9, lambda X: X @ X, lambda X: X, X)

    for layer, name in ((loop, "while"), (branch, "cond")):
        with pytest.raises(ValueError, match=f"layer: got a program with a {name}; need steps"):
            count(layer, SQUARE)
    with pytest.raises(TypeError, match="layer: got 3; need a layer or a function"):
        count(3, SQUARE)
    with pytest.raises(TypeError, match="inputs: got list; need a tensor"):
        count(scan_products, [1.0])
