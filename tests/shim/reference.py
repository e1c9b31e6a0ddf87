"""The formulas of the shim in plain NumPy float64, as a reference for each framework.

They follow the definitions, with loops where these are clearer, and share no code with the shim.
"""

import cmath
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

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
    """Return the number of keys that each query may see, shape (batch, queries)."""
    if valid_lens is None:
        return np.full((batch, queries), keys)
    if valid_lens.ndim == 1:
        return np.repeat(valid_lens[:, None], queries, axis=1)
    return valid_lens


def softmax(
    scores: ArrayLike,
    valid_lens: Lengths = None,
    *,
    causal: bool = False,
    score_bias: ArrayLike | None = None,
    window: int | None = None,
) -> Array:
    """Return the softmax over the visible scores of each row; the weights of all others are zero."""
    scores = np.asarray(scores, np.float64)
    _, num_queries, num_keys = scores.shape
    bias = np.broadcast_to(0.0 if score_bias is None else np.asarray(score_bias), scores.shape)
    query, key = np.ogrid[:num_queries, :num_keys]
    is_visible = (key < lengths(valid_lens, *scores.shape)[:, :, None]) & (bias != -np.inf)
    if causal or window is not None:
        is_visible = is_visible & (key <= num_keys - num_queries + query)
    if window is not None:
        is_visible = is_visible & (key > num_keys - num_queries + query - window)
    visible = np.where(is_visible, scores + bias, -np.inf)
    highest = visible.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(visible - np.where(highest == -np.inf, 0, highest))
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def dot_product_attention(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    valid_lens: Lengths = None,
    *,
    causal: bool = False,
    score_bias: ArrayLike | None = None,
    window: int | None = None,
) -> tuple[Array, Array]:
    """Return softmax(Q K^T / sqrt(d)) V, and the weights, shape (batch, queries, keys)."""
    q, k, v = (np.asarray(x, np.float64) for x in (queries, keys, values))
    scores = np.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
    weights = softmax(scores, valid_lens, causal=causal, score_bias=score_bias, window=window)
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
    causal: bool = False,
    score_bias: ArrayLike | None = None,
    window: int | None = None,
) -> tuple[Array, Array]:
    """Return the output, and the weights, shape (batch, heads, queries, keys)."""
    q, k, v = w_q(queries), w_k(keys), w_v(values)
    size = q.shape[-1] // num_heads
    shape = len(q), num_heads, q.shape[1], k.shape[1]
    biases = np.broadcast_to(0.0 if score_bias is None else np.asarray(score_bias), shape)
    outputs, weights = [], []
    for head in range(num_heads):
        columns = slice(head * size, (head + 1) * size)
        output, weight = dot_product_attention(
            q[..., columns],
            k[..., columns],
            np.split(v, num_heads, axis=-1)[head],
            valid_lens,
            causal=causal,
            score_bias=biases[:, head],
            window=window,
        )
        outputs.append(output)
        weights.append(weight)
    return w_o(np.concatenate(outputs, axis=-1)), np.stack(weights, axis=1)


def causal_self_attention(
    x: ArrayLike,
    *,
    w_q: Linear,
    w_k: Linear,
    w_v: Linear,
    w_o: Linear,
    num_heads: int,
    rope: bool = False,
    positions: Sequence[int] | None = None,
    window: int | None = None,
    num_sinks: int = 0,
) -> tuple[Array, Array]:
    """Return the output for x, shape (batch, steps, features), and weights, (batch, heads, steps, steps).

    Each head of keys and values serves equally many heads of queries, in their order. ``rope`` rotates queries and
    keys by their ``positions``, 0, 1, 2, ... by default. With a window, query i sees key j only if i - j < window, or if j < num_sinks.
    """
    q, k, v = w_q(x), w_k(x), w_v(x)
    num_steps, size = q.shape[1], q.shape[2] // num_heads
    num_served = q.shape[2] // k.shape[2]
    positions = range(num_steps) if positions is None else positions
    query, key = np.ogrid[:num_steps, :num_steps]
    bias = np.zeros((num_steps, num_steps))
    if window is not None:
        bias[(query - key >= window) & (key >= num_sinks)] = -np.inf
    outputs, weights = [], []
    for head in range(num_heads):
        columns = slice(head * size, (head + 1) * size)
        start = head // num_served * size
        shared = slice(start, start + size)
        q_head, k_head = q[..., columns], k[..., shared]
        if rope:
            q_head, k_head = (rotary(part, positions) for part in (q_head, k_head))
        output, weight = dot_product_attention(
            q_head, k_head, v[..., shared], causal=True, score_bias=bias
        )
        outputs.append(output)
        weights.append(weight)
    return w_o(np.concatenate(outputs, axis=-1)), np.stack(weights, axis=1)


def linear_attention(
    x: ArrayLike,
    *,
    w_q: Linear,
    w_k: Linear,
    w_v: Linear,
    w_o: Linear,
    num_heads: int,
    decay: ArrayLike = 1.0,
) -> tuple[Array, Array]:
    """Return the output for x, shape (batch, steps, features), and weights, (batch, heads, steps, steps)."""

    def split(linear: Linear) -> Array:
        projected = linear(x)
        return projected.reshape(*projected.shape[:2], num_heads, -1).swapaxes(1, 2)

    q, k, v = map(split, (w_q, w_k, w_v))
    weights = np.zeros((*q.shape[:3], q.shape[2]))
    decays = np.broadcast_to(decay, num_heads)
    for b, h in np.ndindex(weights.shape[:2]):
        weights[b, h] = linear_weights(q[b, h], k[b, h], decays[h])
    pooled = np.einsum("bhij,bhjd->bihd", weights, v)
    return w_o(pooled.reshape(np.shape(x))), weights


def linear_weights(queries: ArrayLike, keys: ArrayLike, decay: float) -> Array:
    """Return the weights of one head, whose queries and keys have the shape (steps, size).

    The weight of key j for query i >= j is decay^(i - j) f(q_i) f(k_j), with f(x) = elu(x) + 1, divided by the sum of the row.
    """
    inputs = (np.asarray(x, np.float64) for x in (queries, keys))
    q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in inputs)
    weights = np.zeros((len(q), len(k)))
    for i, j in np.ndindex(weights.shape):
        if j <= i:
            weights[i, j] = decay ** (i - j) * (q[i] @ k[j])
    return weights / weights.sum(axis=-1, keepdims=True)


def rotary(
    x: ArrayLike,
    positions: Sequence[int],
    *,
    base: float = 10000,
    layout: str = "interleaved",
    position_scale: float = 1,
) -> Array:
    """Rotate each row of x, shape (batch, steps, d), by its position, pair by pair."""
    x = np.asarray(x, np.float64)
    d = x.shape[-1]
    rotated = x.copy()
    for (step, position), pair in product(enumerate(positions), range(d // 2)):
        first, second = (pair, pair + d // 2) if layout == "halves" else (2 * pair, 2 * pair + 1)
        angle = position * position_scale / base ** (2 * pair / d)
        number = x[:, step, first] + 1j * x[:, step, second]  # a rotation is a product
        number = number * cmath.exp(1j * angle)
        rotated[:, step, first], rotated[:, step, second] = number.real, number.imag
    return rotated


def positional_encoding(max_len: int, num_hiddens: int) -> Array:
    """Return p(i, 2j) = sin(i / 10000^(2j/d)) and p(i, 2j+1) = cos(i / 10000^(2j/d))."""
    table = np.zeros((max_len, num_hiddens))
    for i in range(max_len):
        for column in range(num_hiddens):
            j = column // 2
            angle = i / 10000 ** (2 * j / num_hiddens)
            table[i, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


def additive_attention(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    valid_lens: Lengths = None,
    *,
    w_q: Linear,
    w_k: Linear,
    w_v: Linear,
) -> tuple[Array, Array]:
    """Return the output, and the weights, shape (batch, queries, keys); scores are w_v tanh(W_q q + W_k k)."""
    q, k = w_q(queries), w_k(keys)
    scores = np.zeros((q.shape[0], q.shape[1], k.shape[1]))
    for b, i, j in np.ndindex(scores.shape):
        scores[b, i, j] = w_v(np.tanh(q[b, i] + k[b, j])).item()
    weights = softmax(scores, valid_lens)
    return np.einsum("bqk,bkv->bqv", weights, np.asarray(values, np.float64)), weights


@dataclass(frozen=True)
class LayerNorm:
    """Normalization to mean 0 and variance 1 over the last axis, then scale and shift."""

    gamma: Array
    beta: Array
    epsilon: float

    def __call__(self, x: ArrayLike) -> Array:
        x = np.asarray(x, np.float64)
        mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + self.epsilon) * self.gamma + self.beta


def position_wise(x: ArrayLike, *, dense1: Linear, dense2: Linear) -> Array:
    """Return max(0, x W_1 + b_1) W_2 + b_2."""
    return dense2(np.maximum(dense1(x), 0))


@dataclass(frozen=True)
class Gates:
    """A layer of gated recurrent units."""

    input_gates: dict[str, Linear]  # "reset", "update" and "new"
    state_gates: dict[str, Linear]


def gru(x: ArrayLike, layers: list[Gates]) -> tuple[Array, Array]:
    """Return outputs (steps, batch, hiddens) for x (steps, batch, inputs), and each layer's last state.

    The reset gate is applied to the product of weights and state, as in cuDNN.
    """
    outputs = np.asarray(x, np.float64)
    states = []
    for gates in layers:
        state = np.zeros((outputs.shape[1], gates.state_gates["new"].weight.shape[1]))
        steps = []
        for inputs in outputs:
            i = {name: linear(inputs) for name, linear in gates.input_gates.items()}
            h = {name: linear(state) for name, linear in gates.state_gates.items()}
            reset, update = (1 / (1 + np.exp(-(i[name] + h[name]))) for name in ("reset", "update"))
            new = np.tanh(i["new"] + reset * h["new"])
            state = (1 - update) * new + update * state
            steps.append(state)
        outputs = np.stack(steps)
        states.append(state)
    return outputs, np.stack(states)


def gradient(function: Callable[[Array], float], at: ArrayLike, step: float = 2e-3) -> Array:
    """Return the gradient of a scalar function, by central differences of fourth order."""
    x = np.array(at, np.float64)
    slopes = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        middle = x[index]
        for steps, factor in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            x[index] = middle + steps * step
            slopes[index] += factor * function(x) / (12 * step)
        x[index] = middle
    return slopes
