"""Tests of ``longest_chain`` and ``multiply_adds`` against formulas; operations hidden in a graph are errors."""

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

from d2l_compat import tensorflow as d2l
from d2l_compat.tensorflow._keras import keras

A, B, SQUARE, STEPS = tf.zeros((2, 3)), tf.zeros((3, 5)), tf.zeros((4, 4)), tf.zeros((1, 10, 4))


def multiply_transposed(a: tf.Tensor, b: tf.Tensor) -> Any:
    return tf.matmul(b, a, transpose_a=True, transpose_b=True)


# Each case is a layer, its inputs, the longest chain of products, and the number of multiply-adds.
COUNT_CASES = {
    "matrices": (lambda a, b: a @ b, (A, B), 1, 2 * 3 * 5),
    "multiply_transposed": (multiply_transposed, (A, B), 1, 2 * 3 * 5),
    "batch": (lambda a, b: a @ b, (A[None], B[None]), 1, 2 * 3 * 5),
    "batch, multiply_transposed": (multiply_transposed, (A[None], B[None]), 1, 2 * 3 * 5),
    "einsum": (lambda a, b: tf.einsum("hij,hjk->hki", a, b), (A[None], B[None]), 1, 30),
    "einsum with ellipsis": (lambda a, b: tf.einsum("...j,jk->...k", a, b), (A[None], B), 1, 30),
    "einsum of one matrix": (lambda X: tf.einsum("ij->ji", X), (SQUARE,), 0, 0),
    "one after another": (lambda X: X @ X @ X, (SQUARE,), 2, 2 * 4**3),
    "side by side": (lambda X: X @ X + tf.transpose(X) @ X, (SQUARE,), 1, 2 * 4**3),
    "two results": (lambda X: (X, X @ X), (SQUARE,), 1, 4**3),
    "none": (lambda X: 2 * X, (SQUARE,), 0, 0),
    "tokens": (lambda ids: tf.gather(B, ids) @ tf.transpose(B), (tf.constant([0, 2]),), 1, 30),
    "convolution": (keras.layers.Conv1D(6, 3, padding="same"), (STEPS,), 1, 10 * 6 * 3 * 4),
    "grouped": (
        lambda X: tf.nn.conv1d(X, tf.zeros((3, 2, 6)), 1, "VALID"),
        (STEPS,),
        1,
        8 * 6 * 3 * 2,
    ),
    "depthwise": (keras.layers.DepthwiseConv1D(3, depth_multiplier=2), (STEPS,), 1, 8 * 8 * 3),
    "Keras's attention": (
        keras.layers.MultiHeadAttention(2, 2, use_bias=False),
        (STEPS, STEPS),
        4,
        4 * 10 * 4**2 + 2 * 10**2 * 4,
    ),
}


@pytest.mark.parametrize(
    ("layer", "inputs", "chain_length", "num_multiply_adds"), COUNT_CASES.values(), ids=COUNT_CASES
)
def test_products_are_counted(
    layer: Callable[..., Any], inputs: tuple[Any, ...], chain_length: int, num_multiply_adds: int
) -> None:
    assert d2l.longest_chain(layer, *inputs) == chain_length
    assert d2l.multiply_adds(layer, *inputs) == num_multiply_adds


@pytest.mark.parametrize("n", [8, 2048])  # long input is processed in blocks
def test_attention_is_chain_of_four_products(n: int) -> None:
    d = 8
    X = tf.zeros((1, n, 8))
    attention = d2l.MultiHeadAttention(d, 2, 0)
    assert d2l.longest_chain(attention, X, X, X) == 4
    assert d2l.multiply_adds(attention, X, X, X) == 4 * n * d**2 + 2 * n**2 * d


@pytest.mark.parametrize("count", [d2l.longest_chain, d2l.multiply_adds])
def test_uncountable_operations_are_errors(count: Callable[..., int]) -> None:
    compiled = tf.function(lambda X: 2 * X)
    for layer, name in ((keras.layers.GRU(4), "While"), (compiled, "PartitionedCall")):
        with pytest.raises(ValueError, match=f"layer: got a graph with a .*{name}; need"):
            count(layer, STEPS)
    with pytest.raises(TypeError, match="layer: got 3; need a layer or a function"):
        count(3, SQUARE)
    with pytest.raises(TypeError, match="inputs: got list; need a tensor"):
        count(keras.layers.Dense(3), [1.0])
