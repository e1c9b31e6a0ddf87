"""Flax linen: ``dot_product_attention`` and ``MultiHeadDotProductAttention``."""

from typing import Any

import flax.linen as nn
import jax
import numpy as np

from d2l_compat.conformance.adapters import MASKS, MEAN, Adapter
from d2l_compat.conformance.adapters._jax import answer
from d2l_compat.conformance.files import Arrays, Case

NAMES = {"q": "query", "k": "key", "v": "value", "o": "out"}


def projections(case: Case) -> dict[str, dict[str, Any]]:
    """Return the parameters, in which the heads have an axis of their own."""
    num_heads = case.options["num_heads"]
    parameters: dict[str, dict[str, Any]] = {}
    for role, name in NAMES.items():
        matrix = case[f"W_{role}"]
        shape = (num_heads, -1, matrix.shape[1]) if role == "o" else (len(matrix), num_heads, -1)
        parameters[name] = {"kernel": jax.numpy.asarray(matrix.reshape(shape))}
        if f"b_{role}" in case.inputs:
            bias = case[f"b_{role}"]
            shape = (-1,) if role == "o" else (num_heads, -1)
            parameters[name]["bias"] = jax.numpy.asarray(bias.reshape(shape))
    return parameters


def compute(case: Case) -> Arrays:
    return {"attention": attention, "multi_head": multi_head, "cached": cached}[case.kind](case)


def attention(case: Case) -> Arrays:
    def attend(x: dict[str, Any]) -> Any:
        inputs = [x[name].swapaxes(1, 2) for name in ("queries", "keys", "values")]
        masks = {"bias": x.get("bias"), "mask": make_mask(case)}
        weights = nn.dot_product_attention_weights(*inputs[:2], **masks)
        return nn.dot_product_attention(*inputs, **masks).swapaxes(1, 2), weights

    return answer(case, attend)


def make_mask(case: Case) -> Any:
    """Join the masks; the causal one is Flax's."""
    visible = case.visible_keys("mask", "lengths")
    causal = None
    if "causal" in case.options:
        causal = nn.make_causal_mask(np.ones((len(case["queries"]), case["queries"].shape[-2])))
    return nn.combine_masks(causal, visible, dtype=bool)


def build(case: Case, **options: Any) -> nn.Module:
    width = case["W_q"].shape[1]
    return nn.MultiHeadDotProductAttention(
        case.options["num_heads"],
        qkv_features=width,
        out_features=width,
        use_bias="b_q" in case.inputs,
        **options,
    )


def multi_head(case: Case) -> Arrays:
    layer, variables = build(case), {"params": projections(case)}

    def attend(x: dict[str, Any]) -> Any:
        inputs = x["queries"], x["keys"], x["values"]
        mask = make_mask(case)
        output, sown = layer.apply(
            variables, *inputs, mask=mask, sow_weights=True, mutable="intermediates"
        )
        return output, sown["intermediates"]["attention_weights"][0]

    return answer(case, attend)


def cached(case: Case) -> Arrays:
    """Decode token by token; ``decode`` is for one token at a time."""
    layer, parameters = build(case), projections(case)
    mask = nn.make_causal_mask(case["x"][..., 0])
    answers = answer(case, lambda x: layer.apply({"params": parameters}, x["x"], mask=mask))
    layer = build(case, decode=True)
    x = jax.numpy.asarray(case["x"])
    cache = layer.init(jax.random.key(0), x)["cache"]
    cache = jax.tree.map(lambda y: y.astype(x.dtype) if y.ndim > 1 else y, cache)
    step = jax.jit(
        lambda cache, x: layer.apply({"params": parameters, "cache": cache}, x, mutable="cache")
    )
    parts = []
    for i in range(x.shape[1]):
        output, new = step(cache, x[:, i : i + 1])
        cache = new["cache"]
        parts.append(output)
    return answers | {"chunks_1": np.concatenate(parts, axis=1)}


FEATURES = MASKS | {"mask_per_head", "causal"}
OFFERS = {
    "attention": FEATURES | {"bias", "value_width"},
    "multi_head": FEATURES | {"projection_bias", "cross_widths", "query_width"},
    "cached": {"no_rope"},
}
adapter = Adapter("Flax Linen", ("flax", "jax"), OFFERS, compute, differences={"empty_rows": MEAN})
