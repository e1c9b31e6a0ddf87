"""Gradients by formula, in plain NumPy float64: of the sum of direction * output.

Finite differences are good to about 1e-11, and hold these formulas (tests/shim/test_frameworks_agree.py); what the
frameworks compute can be nearer than that.
"""

import math

import numpy as np

from tests.shim import reference
from tests.shim.each.adapter import Arrays
from tests.shim.reference import Array

INPUTS = "queries", "keys", "values"


def of_attention(
    direction: Array, queries: Array, keys: Array, values: Array, weights: Array
) -> Arrays:
    """Of one head, whose weights have shape (batch, queries, keys): of its inputs, and of its scores."""
    of_weights = np.einsum("bqv,bkv->bqk", direction, values)
    # Softmax: a score that grows raises its own weight, and lowers all in proportion to what they were.
    mean = (of_weights * weights).sum(axis=-1, keepdims=True)
    of_scores = weights * (of_weights - mean)
    root = math.sqrt(queries.shape[-1])
    return {
        "queries": np.einsum("bqk,bkd->bqd", of_scores, keys) / root,
        "keys": np.einsum("bqk,bqd->bkd", of_scores, queries) / root,
        "values": np.einsum("bqk,bqv->bkv", weights, direction),
        "scores": of_scores,
    }


def of_multi_head(case: Arrays, weights: Array) -> Arrays:
    """With weights of shape (batch, heads, queries, keys): of the inputs, and of a bias where there is one."""
    projected = [case[name] @ case[f"W_{name[0]}"] + case[f"b_{name[0]}"] for name in INPUTS]
    pooled = case["direction"] @ case["W_o"].T
    size = len(case["W_o"]) // int(case["num_heads"])
    heads = []
    for head in range(int(case["num_heads"])):
        columns = slice(head * size, (head + 1) * size)
        of_it = (x[..., columns] for x in (pooled, *projected))
        heads.append(of_attention(*of_it, weights[:, head]))
    found = {
        name: np.concatenate([head[name] for head in heads], axis=-1) @ case[f"W_{name[0]}"].T
        for name in INPUTS
    }
    if "score_bias" in case:
        of_scores = np.stack([head["scores"] for head in heads], axis=1)
        # A bias without these axes is that of every example, or of every head.
        missing = tuple(range(of_scores.ndim - case["score_bias"].ndim))
        found["score_bias"] = of_scores.sum(axis=missing)
    return found


def of_relative(
    direction: Array, queries: Array, keys: Array, values: Array, table: Array, weights: Array
) -> Arrays:
    """Of attention with a vector for each distance: of its inputs, and of the table of these."""
    found = of_attention(direction, queries, keys, values, weights)
    of_products = found.pop("scores") / math.sqrt(queries.shape[-1])
    rows = reference.distance_rows(queries.shape[1], len(table) // 2)
    # A query meets the sum of a key and a vector.
    found["queries"] += np.einsum("bqk,qkd->bqd", of_products, table[rows])
    found["table"] = np.zeros(table.shape)
    # A row stands at many places, and gathers what comes from each.
    np.add.at(found["table"], rows, np.einsum("bqk,bqd->qkd", of_products, queries))
    return found


def of_rotary(direction: Array, positions: range, layout: str) -> Array:
    """A turn's is the turn back."""
    return reference.rotary(direction, [-each for each in positions], layout=layout)
