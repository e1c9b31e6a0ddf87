"""Gradients of sum(direction * output) by formula, in plain NumPy float64.

The formulas are tested against finite differences (tests/shim/test_frameworks_agree.py), which are exact to about
1e-11. Frameworks can be more precise than that.
"""

import math

import numpy as np

from tests.shim import reference
from tests.shim.each.adapter import Arrays
from tests.shim.reference import Array

INPUTS = "queries", "keys", "values"


def head_gradients(
    direction: Array, queries: Array, keys: Array, values: Array, weights: Array
) -> Arrays:
    """Return one head's gradients with respect to its inputs and its scores; ``weights`` is (batch, queries, keys)."""
    d_weights = np.einsum("bqv,bkv->bqk", direction, values)
    # Softmax: a higher score raises its own weight; then normalization lowers every weight in proportion.
    mean = (d_weights * weights).sum(axis=-1, keepdims=True)
    d_scores = weights * (d_weights - mean)
    root = math.sqrt(queries.shape[-1])
    return {
        "queries": np.einsum("bqk,bkd->bqd", d_scores, keys) / root,
        "keys": np.einsum("bqk,bqd->bkd", d_scores, queries) / root,
        "values": np.einsum("bqk,bqv->bkv", weights, direction),
        "scores": d_scores,
    }


def multi_head_gradients(case: Arrays, weights: Array) -> Arrays:
    """Return gradients with respect to the inputs and a bias, if any; ``weights`` is (batch, heads, queries, keys)."""
    projected = [case[name] @ case[f"W_{name[0]}"] + case[f"b_{name[0]}"] for name in INPUTS]
    pooled = case["direction"] @ case["W_o"].T
    size = len(case["W_o"]) // int(case["num_heads"])
    heads = []
    for head in range(int(case["num_heads"])):
        columns = slice(head * size, (head + 1) * size)
        parts = (x[..., columns] for x in (pooled, *projected))
        heads.append(head_gradients(*parts, weights[:, head]))
    gradients = {
        name: np.concatenate([head[name] for head in heads], axis=-1) @ case[f"W_{name[0]}"].T
        for name in INPUTS
    }
    if "score_bias" in case:
        d_scores = np.stack([head["scores"] for head in heads], axis=1)
        # A bias without these axes is shared by all examples, or all heads.
        missing = tuple(range(d_scores.ndim - case["score_bias"].ndim))
        gradients["score_bias"] = d_scores.sum(axis=missing)
    return gradients


def causal_gradient(case: Arrays, weights: Array) -> Array:
    """Return the gradient of causal self-attention with respect to X; ``weights`` is (batch, heads, steps, steps)."""
    X, num_heads = case["X"], int(case["num_heads"])
    positions, size = range(X.shape[1]), len(case["W_o"]) // num_heads
    pooled = case["direction"] @ case["W_o"].T
    rotated = ("queries", "keys") if case["rope"] else ()
    gradient = np.zeros(X.shape)
    for head in range(num_heads):
        first = head * int(case["num_kv_heads"]) // num_heads * size
        own, shared = slice(head * size, (head + 1) * size), slice(first, first + size)
        columns = dict(zip(INPUTS, (own, shared, shared), strict=True))
        matrices = {name: case[f"W_{name[0]}"][:, columns[name]] for name in INPUTS}
        inputs = {name: X @ matrix for name, matrix in matrices.items()}
        for name in rotated:
            inputs[name] = reference.rotary(inputs[name], positions)
        parts = head_gradients(pooled[..., own], **inputs, weights=weights[:, head])
        for name in rotated:
            parts[name] = rotary_gradient(parts[name], positions, "interleaved")
        gradient += sum(parts[name] @ matrices[name].T for name in INPUTS)
    return gradient


def linear_gradient(case: Arrays, weights: Array) -> Array:
    """Return the gradient of linear attention with respect to X; ``weights`` is (batch, heads, steps, steps)."""
    X, num_heads = case["X"], len(case["decay"])
    size = X.shape[-1] // num_heads
    pooled = case["direction"] @ case["W_o"].T
    query, key = np.ogrid[: X.shape[1], : X.shape[1]]
    gradient = np.zeros(X.shape)
    for head, decay in enumerate(case["decay"]):
        columns = slice(head * size, (head + 1) * size)
        matrices = [case[f"W_{role}"][:, columns] for role in "qkv"]
        q, k, v = (X @ matrix for matrix in matrices)
        f_q, f_k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
        powers = np.where(query >= key, decay ** np.maximum(query - key, 0.0), 0)
        totals = (np.einsum("bid,bjd->bij", f_q, f_k) * powers).sum(axis=-1, keepdims=True)
        d_weights = np.einsum("biv,bjv->bij", pooled[..., columns], v)
        mean = (d_weights * weights[:, head]).sum(axis=-1, keepdims=True)
        d_products = (d_weights - mean) / totals * powers
        # The derivative of elu(x) + 1 is 1 above 0, and the function itself below.
        d_q = np.einsum("bij,bjd->bid", d_products, f_k) * np.minimum(f_q, 1)
        d_k = np.einsum("bij,bid->bjd", d_products, f_q) * np.minimum(f_k, 1)
        d_v = np.einsum("bij,biv->bjv", weights[:, head], pooled[..., columns])
        parts = zip((d_q, d_k, d_v), matrices, strict=True)
        gradient += sum(part @ matrix.T for part, matrix in parts)
    return gradient


def relative_gradients(
    direction: Array, queries: Array, keys: Array, values: Array, table: Array, weights: Array
) -> Arrays:
    """Return gradients of attention with relative positions with respect to its inputs and the table of vectors."""
    gradients = head_gradients(direction, queries, keys, values, weights)
    d_products = gradients.pop("scores") / math.sqrt(queries.shape[-1])
    rows = reference.distance_rows(queries.shape[1], len(table) // 2)
    # A query is multiplied by the sum of a key and a vector.
    gradients["queries"] += np.einsum("bqk,qkd->bqd", d_products, table[rows])
    gradients["table"] = np.zeros(table.shape)
    # A row is used for many pairs, so its gradients are added.
    np.add.at(gradients["table"], rows, np.einsum("bqk,bqd->qkd", d_products, queries))
    return gradients


def rotary_gradient(direction: Array, positions: range, layout: str) -> Array:
    """Return the gradient of a rotation: the direction, rotated back."""
    return reference.rotary(direction, [-position for position in positions], layout=layout)
