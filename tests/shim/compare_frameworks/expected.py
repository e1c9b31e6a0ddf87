"""The reference's answers to the cases, in float64."""

from typing import Any

import numpy as np

from tests.shim import reference
from tests.shim.compare_frameworks import gradients
from tests.shim.compare_frameworks.cases import Case, draw_cases
from tests.shim.each.adapter import Arrays
from tests.shim.each.cases import reference_multi_head

Answers = dict[str, Arrays]  # by case and name

# ALiBi's slopes for five heads, as in the authors' code: the four for four heads, and the first for eight heads.
SLOPES = 2.0 ** -np.array([2, 4, 6, 8, 1])


def expected_answers() -> Answers:
    return {name: answer(case) for name, case in draw_cases("float64").items()}


def answer(case: Case) -> Arrays:
    """Return output, weights, slopes and gradients, if the case has them."""
    match case.kind:
        case "attention":
            return _attention(case.arrays)
        case "alibi":
            return {"slopes": SLOPES} | answer(as_attention(case))
        case "relative":
            return _relative(**case.arrays)
        case "rotary":
            return _rotary(**case.arrays)
        case "cached":
            return _cached(case.arrays)
        case "linear":
            return _linear(case.arrays)
        case "encoding":
            return {"output": reference.positional_encoding(*case.arrays["X"].shape[1:])[None]}
    raise ValueError(case.kind)


def as_attention(alibi: Case) -> Case:
    """Return an ``alibi`` case as an ``attention`` case with ALiBi's bias."""
    bias = -SLOPES[:, None, None] * alibi.arrays["distances"]
    return Case("attention", alibi.arrays | {"score_bias": bias})


def _attention(case: Arrays) -> Arrays:
    masks: dict[str, Any] = {"causal": "causal" in case, "score_bias": case.get("score_bias")}
    masks["window"] = int(case["window"]) if "window" in case else None
    inputs = case["queries"], case["keys"], case["values"], case.get("valid_lens")
    output, weights = reference_multi_head(case, int(case["num_heads"]), *inputs, **masks)
    slopes = gradients.multi_head_gradients(case, weights)
    return {"output": output, "weights": weights} | _name_gradients(slopes)


def _relative(queries: Any, keys: Any, values: Any, table: Any, direction: Any) -> Arrays:
    output, weights = reference.relative_attention(queries, keys, values, table)
    slopes = gradients.relative_gradients(direction, queries, keys, values, table, weights)
    return {"output": output, "weights": weights} | _name_gradients(slopes)


def _rotary(X: Any, direction: Any, offset: Any, halves: Any, max_len: Any) -> Arrays:
    layout = "halves" if halves else "interleaved"
    positions = range(int(offset), int(offset) + X.shape[1])
    output = reference.rotary(X, positions, layout=layout)
    gradient = gradients.rotary_gradient(direction, positions, layout)
    return {"output": output} | _name_gradients({"X": gradient})


def _cached(case: Arrays) -> Arrays:
    masks = {name: int(case[name]) for name in ("window", "num_sinks") if name in case}
    projections = {f"w_{role}": reference.Linear(case[f"W_{role}"]) for role in "qkvo"}
    options: dict[str, Any] = {"num_heads": int(case["num_heads"]), "rope": bool(case["rope"])}
    output, weights = reference.causal_self_attention(case["X"], **projections, **options, **masks)
    gradient = gradients.causal_gradient(case, weights)
    chunks = dict.fromkeys(("chunks_1", "chunks_3", "chunks_all"), output)
    return {"output": output} | chunks | _name_gradients({"X": gradient})


def _linear(case: Arrays) -> Arrays:
    projections = {f"w_{role}": reference.Linear(case[f"W_{role}"]) for role in "qkvo"}
    decay = case["decay"]
    output, weights = reference.linear_attention(
        case["X"], **projections, num_heads=len(decay), decay=decay
    )
    gradient = gradients.linear_gradient(case, weights)
    chunks = dict.fromkeys(("chunks_1", "chunks_3", "chunks_all"), output)
    return {"output": output} | chunks | _name_gradients({"X": gradient})


def _name_gradients(arrays: Arrays) -> Arrays:
    return {f"gradient_{name}": gradient for name, gradient in arrays.items()}
