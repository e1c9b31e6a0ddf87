"""Every formula of the shim once more, in plain NumPy float64: what each framework is held to.

Written from the definitions and for reading, with loops where they are clearer. It shares no
code with the shim and knows no framework; arrays go in and come out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Lengths = NDArray[np.integer] | None


@dataclass(frozen=True)
class Linear:
    """x W + b, with W of shape (inputs, outputs)."""

    weight: Array
    bias: Array | float = 0.0

    def __call__(self, x: ArrayLike) -> Array:
        return np.asarray(x, np.float64) @ self.weight + self.bias


def lengths(valid_lens: Lengths, batch: int, queries: int, keys: int) -> NDArray[np.integer]:
    """How many keys each query may look at: shape (batch, queries), whatever was given."""
    if valid_lens is None:
        return np.full((batch, queries), keys)
    if valid_lens.ndim == 1:
        return np.repeat(valid_lens[:, None], queries, axis=1)
    return valid_lens


def softmax(scores: ArrayLike, valid_lens: Lengths = None) -> Array:
    """Softmax over each row's first entries; zero past them."""
    scores = np.asarray(scores, np.float64)
    weights = np.zeros(scores.shape)
    for (b, q), length in np.ndenumerate(lengths(valid_lens, *scores.shape)):
        if length:
            row = scores[b, q, :length]
            powers = np.exp(row - row.max())
            weights[b, q, :length] = powers / powers.sum()
    return weights


def dot_product_attention(
    queries: ArrayLike, keys: ArrayLike, values: ArrayLike, valid_lens: Lengths = None
) -> tuple[Array, Array]:
    """softmax(Q K^T / sqrt(d)) V, and the weights, shape (batch, queries, keys)."""
    q, k, v = (np.asarray(x, np.float64) for x in (queries, keys, values))
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    weights = softmax(scores, valid_lens)
    return np.einsum("bqk,bkv->bqv", weights, v), weights


def multi_head_attention(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    valid_lens: Lengths = None,
    *,
    num_heads: int,
    w_q: Linear,
    w_k: Linear,
    w_v: Linear,
    w_o: Linear,
) -> tuple[Array, Array]:
    """The output, and the weights, shape (batch, heads, queries, keys)."""
    q, k, v = w_q(queries), w_k(keys), w_v(values)
    size = q.shape[-1] // num_heads
    outputs, weights = [], []
    for head in range(num_heads):
        columns = slice(head * size, (head + 1) * size)
        output, weight = dot_product_attention(
            q[..., columns], k[..., columns], v[..., columns], valid_lens
        )
        outputs.append(output)
        weights.append(weight)
    return w_o(np.concatenate(outputs, axis=-1)), np.stack(weights, axis=1)


def positional_encoding(max_len: int, num_hiddens: int) -> Array:
    """p(i, 2j) = sin(i / 10000^(2j/d)) and p(i, 2j+1) = cos(i / 10000^(2j/d))."""
    table = np.zeros((max_len, num_hiddens))
    for i in range(max_len):
        for column in range(num_hiddens):
            j = column // 2
            angle = i / 10000 ** (2 * j / num_hiddens)
            table[i, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


def gradient(function: Callable[[Array], float], at: ArrayLike, step: float = 2e-3) -> Array:
    """The gradient of a scalar function, by central differences of fourth order."""
    x = np.array(at, np.float64)
    slopes = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        middle = x[index]
        for steps, share in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            x[index] = middle + steps * step
            slopes[index] += share * function(x) / (12 * step)
        x[index] = middle
    return slopes
