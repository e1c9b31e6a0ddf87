"""The inputs for every framework: random numbers, the same in both dtypes.

A case has arrays, and a kind, which determines what a program computes (tests/shim/each/answers.py, and Answers.java).
``attention`` is multi-head attention: queries, keys, values, their projections ``W_q`` to ``b_o``, num_heads, the
direction of the gradients, and perhaps valid_lens, causal and score_bias. ``alibi`` adds distances, shape (queries,
keys), and a bias: their product with the framework's slopes, negated. ``relative`` is dot-product attention with a
bias: the products of queries and a table of vectors, one for each distance from -far to far, shape (2 far + 1, d).
``rotary`` rotates X from an offset on, in either layout. ``encoding`` adds P to X. ``cached`` is causal self-attention
of X without a cache, and with one, in chunks: its projections have no bias; ``window`` and ``num_sinks`` may be absent.
``linear`` is linear attention of X, likewise in chunks, with a ``decay`` for each head.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.shim.each.adapter import Arrays
from tests.shim.each.cases import make_weights

Sizes = tuple[int, int, int]

NUM_HIDDENS = 100
NUM_QUERIES, NUM_KEYS = 4, 6
# So many that attention within the window is computed in blocks.
MANY_QUERIES, MANY_KEYS, WINDOW = 170, 200, 30


@dataclass(frozen=True)
class Case:
    kind: str
    arrays: Arrays


def draw_cases(dtype: str) -> dict[str, Case]:
    """Draw the cases by name, in the order of the table; floating-point arrays have this dtype."""
    rng = np.random.default_rng(2017)
    sizes = 20, 30, 25  # of a query, a key and a value
    cross_inputs = _inputs(rng, NUM_QUERIES, sizes)
    self_inputs = _inputs(rng, NUM_KEYS, (20, 20, 20))
    rotary = dict(zip(("X", "direction"), rng.normal(size=(2, 2, 7, 20)), strict=True))
    rotary |= {"offset": np.array(990), "max_len": np.array(1000)}
    # One query has no valid key, and another has no key with a finite bias.
    per_query = np.array([[6, 3, 0, 1], [2, 5, 4, 6]])
    bias, biases = (_bias(rng, *heads, NUM_QUERIES, NUM_KEYS) for heads in ((), (2, 5)))
    causal = np.array(1)
    relative = _relative(rng, far=2)
    cached = dict(zip(("X", "direction"), rng.normal(size=(2, 2, 13, 48)), strict=True))
    long_inputs = _inputs(rng, MANY_QUERIES, sizes, MANY_KEYS)
    long_bias = _bias(rng, 2, 5, MANY_QUERIES, MANY_KEYS)
    window = np.array(WINDOW)
    cases = {
        **{f"heads_{n}": _attention(cross_inputs, n) for n in (1, 2, 5)},
        "valid_lens": _attention(cross_inputs, 5, valid_lens=per_query),
        "causal": _attention(cross_inputs, 5, causal=causal),
        "score_bias": _attention(cross_inputs, 5, score_bias=bias),
        "all_masks": _attention(
            cross_inputs, 5, valid_lens=np.array([5, 3]), causal=causal, score_bias=biases
        ),
        "in_window": _attention(long_inputs, 5, window=window),
        "in_window_masks": _attention(
            long_inputs, 5, valid_lens=np.array([190, 120]), window=window, score_bias=long_bias
        ),
        "alibi": Case("alibi", _attention(self_inputs, 5, causal=causal).arrays | _distances()),
        "relative": Case("relative", relative),
        "interleaved": Case("rotary", rotary | {"halves": np.array(0)}),
        "halves": Case("rotary", rotary | {"halves": np.array(1)}),
        # An odd width; the answer for zeros is P.
        "P": Case("encoding", {"X": np.zeros((1, 1000, 101))}),
        "cached": _cached(cached, num_kv_heads=6, rope=False),
        "grouped": _cached(cached, num_kv_heads=2, rope=True),
        # Windows are shorter than the text, and one ends within a chunk.
        "window": _cached(cached, num_kv_heads=2, rope=True, window=5, num_sinks=0),
        "sinks": _cached(cached, num_kv_heads=1, rope=True, window=4, num_sinks=2),
        "linear": _linear(cached, [1.0] * 6),
        "decay": _linear(cached, [1.0, 0.9, 0.7, 0.5, 0.3, 0.1]),
    }
    return {name: Case(case.kind, _round(case.arrays, dtype)) for name, case in cases.items()}


def _inputs(
    rng: np.random.Generator, num_queries: int, sizes: Sizes, num_keys: int = NUM_KEYS
) -> Arrays:
    """Draw two examples with projections."""
    steps = {"queries": num_queries, "keys": num_keys, "values": num_keys}
    arrays = {
        name: rng.normal(size=(2, num, size))
        for (name, num), size in zip(steps.items(), sizes, strict=True)
    }
    arrays["direction"] = rng.normal(size=(2, num_queries, NUM_HIDDENS))
    query_size, key_size, value_size = sizes
    return arrays | make_weights((key_size, query_size, value_size), NUM_HIDDENS, bias=True)


def _attention(inputs: Arrays, num_heads: int, **masks: NDArray[Any]) -> Case:
    return Case("attention", {**inputs, "num_heads": np.array(num_heads), **masks})


def _bias(rng: np.random.Generator, *shape: int) -> NDArray[Any]:
    """Draw numbers, with minus infinity for one key in four, and for all keys of the second query."""
    bias = rng.normal(size=shape)
    bias[rng.random(shape) < 0.25] = -np.inf
    bias[..., 1, :] = -np.inf
    return bias


def _distances() -> Arrays:
    steps = np.arange(float(NUM_KEYS))
    return {"distances": steps[:, None] - steps}


def _relative(rng: np.random.Generator, far: int) -> Arrays:
    """Draw two examples with longer distances than the table has."""
    assert far < NUM_KEYS - 1
    widths = {"queries": 20, "keys": 20, "values": 25, "direction": 25}
    arrays = {name: rng.normal(size=(2, NUM_KEYS, width)) for name, width in widths.items()}
    return arrays | {"table": rng.normal(size=(2 * far + 1, widths["queries"]))}


def _cached(inputs: Arrays, num_kv_heads: int, **options: int) -> Case:
    """Return a case with six heads of width 8."""
    num_hiddens, num_heads = inputs["X"].shape[-1], 6
    weights = make_weights((num_hiddens, num_hiddens, num_hiddens), num_hiddens)
    for name in ("W_k", "W_v"):
        weights[name] = weights[name][:, : num_kv_heads * num_hiddens // num_heads]
    options |= {"num_heads": num_heads, "num_kv_heads": num_kv_heads}
    scalars = {name: np.array(int(value)) for name, value in options.items()}
    return Case("cached", inputs | weights | scalars)


def _linear(inputs: Arrays, decay: list[float]) -> Case:
    num_hiddens = inputs["X"].shape[-1]
    weights = make_weights((num_hiddens, num_hiddens, num_hiddens), num_hiddens)
    return Case("linear", {**inputs, **weights, "decay": np.array(decay, "float32")})


def _round(arrays: Arrays, dtype: str) -> Arrays:
    """Round floating-point arrays to single precision, so that values do not depend on the dtype."""
    return {
        name: x.astype("float32").astype(dtype) if x.dtype.kind == "f" else x
        for name, x in arrays.items()
    }
