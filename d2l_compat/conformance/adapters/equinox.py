"""Equinox: ``MultiheadAttention`` and ``RotaryPositionalEmbedding``, for one example at a time."""

from typing import Any

import equinox as eqx
import jax

from d2l_compat.conformance.adapters import MASKS, MEAN, Adapter
from d2l_compat.conformance.adapters._jax import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    return {"multi_head": multi_head, "rope": rope}[case.kind](case)


def multi_head(case: Case) -> Arrays:
    widths = (case[name].shape[-1] for name in ("queries", "keys", "values"))
    biases = dict.fromkeys(
        ("use_query_bias", "use_key_bias", "use_value_bias", "use_output_bias"),
        "b_q" in case.inputs,
    )
    num_heads, width = case.options["num_heads"], case["W_o"].shape[1]
    size = width // num_heads
    layer = eqx.nn.MultiheadAttention(
        num_heads, *widths, width, size, size, **biases, key=jax.random.key(0)
    )
    names = {"q": "query_proj", "k": "key_proj", "v": "value_proj", "o": "output_proj"}
    for name, x in case.inputs.items():
        if name[1] == "_":
            kind = {"W": "weight", "b": "bias"}[name[0]]
            path = names[name[2]]
            layer = eqx.tree_at(
                lambda y, p=path, k=kind: getattr(getattr(y, p), k), layer, jax.numpy.asarray(x.T)
            )

    def attend(x: dict[str, Any]) -> Any:
        visible = case.visible_keys("mask", "lengths")
        inputs = x["queries"], x["keys"], x["values"]
        return jax.vmap(layer)(*inputs) if visible is None else jax.vmap(layer)(*inputs, visible)

    return answer(case, attend)


def rope(case: Case) -> Arrays:
    dtype = case["x"].dtype
    layer = eqx.nn.RotaryPositionalEmbedding(
        case["x"].shape[-1], theta=case.options.get("base", 10000.0), dtype=dtype
    )
    return answer(case, lambda x: jax.vmap(jax.vmap(layer))(x["x"]))


OFFERS = {
    "multi_head": MASKS | {"mask_per_head", "projection_bias", "cross_widths", "query_width"},
    "rope": {"halves", "base"},
}
adapter = Adapter("Equinox", ("equinox", "jax"), OFFERS, compute, differences={"empty_rows": MEAN})
