"""Haiku's ``MultiHeadAttention``."""

from typing import Any

import haiku as hk
import jax

from d2l_compat.conformance.adapters import MASKS, MEAN, Adapter
from d2l_compat.conformance.adapters._jax import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    num_heads, width = case.options["num_heads"], case["W_o"].shape[1]
    names = {"q": "query", "k": "key", "v": "value", "o": "linear"}
    parameters: dict[str, dict[str, Any]] = {}
    for name, x in case.inputs.items():
        if name[1] == "_":
            kind = {"W": "w", "b": "b"}[name[0]]
            module = parameters.setdefault(f"multi_head_attention/{names[name[2]]}", {})
            module[kind] = jax.numpy.asarray(x)

    def attend(*args: Any) -> Any:
        layer = hk.MultiHeadAttention(
            num_heads,
            width // num_heads,
            w_init=hk.initializers.Constant(0),
            with_bias="b_q" in case.inputs,
        )
        return layer(*args)

    transformed = hk.without_apply_rng(hk.transform(attend))
    visible = case.visible_keys("mask", "lengths")
    return answer(
        case,
        lambda x: transformed.apply(parameters, x["queries"], x["keys"], x["values"], visible),
    )


FEATURES = MASKS | {"mask_per_head", "projection_bias", "cross_widths", "query_width"}
adapter = Adapter(
    "Haiku",
    ("dm-haiku", "jax"),
    {"multi_head": FEATURES},
    compute,
    differences={"empty_rows": MEAN},
)
