"""Compute the cases of compare_frameworks in one framework: ``python -m tests.shim.each.answers FRAMEWORK IN OUT``.

IN and OUT are .npz files. Each framework has its own process, since some cannot be imported together. The names of
the arrays are explained in tests/shim/compare_frameworks. DJL has a Java program that does the same.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tests.shim.each.adapter import Adapter, Arrays


def compute_attention(adapter: Adapter, case: Arrays) -> Arrays:
    """Compute multi-head attention with the case's masks."""
    queries, keys, values = inputs = [case[name] for name in ("queries", "keys", "values")]
    sizes = [x.shape[-1] for x in (keys, queries, values)]
    layer = adapter.build_multi_head(
        *sizes,
        len(case["W_o"]),
        int(case["num_heads"]),
        0.5,
        True,
        weights={name: array for name, array in case.items() if name[:2] in ("W_", "b_")},
        dtype=str(queries.dtype),
    )
    masks: dict[str, Any] = {"causal": True} if "causal" in case else {}
    if "window" in case:
        masks["window"] = int(case["window"])
    names = ["queries", "keys", "values"]
    if "score_bias" in case:
        masks["score_bias"] = case["score_bias"]
        names.append("score_bias")
    args = *inputs, case.get("valid_lens")
    output = layer(*args, **masks)
    weights = layer.attention_weights
    gradients = layer.gradients(case["direction"], *args, **masks)
    return {"output": output, "weights": weights} | name_gradients(names, gradients)


def compute_alibi(adapter: Adapter, case: Arrays) -> Arrays:
    """Compute multi-head attention with ALiBi's bias: the package's slopes times the case's distances."""
    distances = case["distances"]
    slopes = adapter.call("alibi_slopes", int(case["num_heads"])).astype(distances.dtype)
    bias = -slopes[:, None, None] * distances
    return {"slopes": slopes} | compute_attention(adapter, case | {"score_bias": bias})


def compute_relative(adapter: Adapter, case: Arrays) -> Arrays:
    """Compute dot-product attention with a table of vectors, a row for each distance from query to key."""
    names = ["queries", "keys", "values"]
    inputs = [case[name] for name in names]
    largest = len(case["table"]) // 2
    steps = np.arange(case["queries"].shape[1])
    rows = (steps[:, None] - steps).clip(-largest, largest) + largest
    distances = {"table": case["table"], "rows": rows}
    layer = adapter.build_relative()
    output = layer(*inputs, **distances)
    weights = layer.attention_weights
    gradients = layer.gradients(case["direction"], *inputs, **distances)
    return {"output": output, "weights": weights} | name_gradients([*names, "table"], gradients)


def compute_rotary(adapter: Adapter, case: Arrays) -> Arrays:
    X = case["X"]
    offset = int(case["offset"])
    layout = "halves" if case["halves"] else "interleaved"
    sizes = X.shape[-1], int(case["max_len"])
    layer = adapter.build_rotary(*sizes, layout=layout, dtype=str(X.dtype))
    output = layer(X, offset=offset)
    gradients = layer.gradients(case["direction"], X, offset=offset)
    return {"output": output} | name_gradients(["X"], gradients)


def compute_encoding(adapter: Adapter, case: Arrays) -> Arrays:
    _, max_len, num_hiddens = case["X"].shape
    layer = adapter.build_encoding(num_hiddens, 0.0, max_len, dtype=str(case["X"].dtype))
    return {"output": layer(case["X"])}


def compute_cached(adapter: Adapter, case: Arrays) -> Arrays:
    """Compute causal self-attention without a cache, and with one, in chunks of 1, 3 and all tokens."""
    X, direction = case["X"], case["direction"]
    batch, num_steps, num_hiddens = X.shape
    masks = {name: int(case[name]) for name in ("window", "num_sinks") if name in case}
    layer = adapter.build_causal(
        num_hiddens,
        int(case["num_heads"]),
        num_kv_heads=int(case["num_kv_heads"]),
        rope=bool(case["rope"]),
        **masks,
        weights={name: array for name, array in case.items() if name.startswith("W_")},
        dtype=str(X.dtype),
    )
    answers = {"output": layer(X)} | name_gradients(["X"], layer.gradients(direction, X))
    for name, size in {"1": 1, "3": 3, "all": num_steps}.items():
        cache = adapter.make_cache(layer, batch, num_steps)
        chunks = [cache(X[:, start : start + size]) for start in range(0, num_steps, size)]
        answers[f"chunks_{name}"] = np.concatenate(chunks, axis=1)
    return answers


def compute_linear(adapter: Adapter, case: Arrays) -> Arrays:
    """Compute linear attention without a state, and with one, in chunks of 1, 3 and all tokens."""
    X, direction, decay = case["X"], case["direction"], case["decay"]
    batch, num_steps, num_hiddens = X.shape
    layer = adapter.build_linear_attention(
        num_hiddens,
        len(decay),
        decay=decay.tolist(),
        weights={name: array for name, array in case.items() if name.startswith("W_")},
        dtype=str(X.dtype),
    )
    answers = {"output": layer(X)} | name_gradients(["X"], layer.gradients(direction, X))
    for name, size in {"1": 1, "3": 3, "all": num_steps}.items():
        reader = adapter.make_state(layer, batch)
        chunks = [reader(X[:, start : start + size]) for start in range(0, num_steps, size)]
        answers[f"chunks_{name}"] = np.concatenate(chunks, axis=1)
    return answers


def name_gradients(names: list[str], gradients: list[Any]) -> Arrays:
    return {f"gradient_{name}": g for name, g in zip(names, gradients, strict=True)}


KINDS: dict[str, Callable[[Adapter, Arrays], Arrays]] = {
    "attention": compute_attention,
    "alibi": compute_alibi,
    "relative": compute_relative,
    "rotary": compute_rotary,
    "encoding": compute_encoding,
    "cached": compute_cached,
    "linear": compute_linear,
}


def main(framework: str, inputs: str, outputs: str) -> None:
    adapter = import_module(f"tests.shim.each.{framework}.adapter").Adapter()
    cases: dict[tuple[str, str], Arrays] = {}
    for path, array in np.load(inputs).items():
        kind, case, name = path.split(".")
        cases.setdefault((kind, case), {})[name] = array
    answers = {
        f"{case}.{name}": x
        for (kind, case), arrays in cases.items()
        for name, x in KINDS[kind](adapter, arrays).items()
    }
    np.savez(outputs, **answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
