"""Flax NNX: ``dot_product_attention`` and ``MultiHeadAttention``, whose softmax is float32."""

from typing import Any

import jax
import numpy as np
from flax import nnx

from d2l_compat.conformance.adapters import MASKS, MEAN, Adapter
from d2l_compat.conformance.adapters._jax import answer
from d2l_compat.conformance.adapters.flax_linen import projections
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    return {"attention": attention, "multi_head": multi_head, "cached": cached}[case.kind](case)


def attention(case: Case) -> Arrays:
    def attend(x: dict[str, Any]) -> Any:
        inputs = [x[name].swapaxes(1, 2) for name in ("queries", "keys", "values")]
        masks = {
            "bias": x.get("bias"),
            "mask": case.visible_keys("mask", "lengths"),
            "is_causal": "causal" in case.options,
        }
        return nnx.dot_product_attention(*inputs, **masks).swapaxes(1, 2)

    return answer(case, attend)


def build(case: Case, inputs: str, **options: Any) -> nnx.MultiHeadAttention:
    width = case["W_q"].shape[1]
    layer = nnx.MultiHeadAttention(
        case.options["num_heads"],
        in_features=case[inputs].shape[-1],
        qkv_features=width,
        out_features=width,
        in_kv_features=len(case["W_k"]),
        use_bias="b_q" in case.inputs,
        dtype=case["W_q"].dtype,
        rngs=nnx.Rngs(0),
        **options,
    )
    for name, arrays in projections(case).items():
        for kind, x in arrays.items():
            getattr(getattr(layer, name), kind)[...] = x
    return layer


def multi_head(case: Case) -> Arrays:
    layer = build(case, "queries", decode=False)

    def attend(x: dict[str, Any]) -> Any:
        mask = case.visible_keys("mask", "lengths")
        inputs = x["queries"], x["keys"], x["values"]
        return layer(*inputs, mask=mask, is_causal="causal" in case.options)

    return answer(case, attend)


def cached(case: Case) -> Arrays:
    """Read at once and token by token, with the same causal flag."""
    layer = build(case, "x", decode=False)
    answers = answer(case, lambda x: layer(x["x"], is_causal=True))
    layer = build(case, "x", decode=True)
    x = jax.numpy.asarray(case["x"])
    layer.init_cache(x.shape, dtype=x.dtype)
    parts = [layer(x[:, i : i + 1], is_causal=True) for i in range(x.shape[1])]
    return answers | {"chunks_1": np.concatenate(parts, axis=1)}


FEATURES = MASKS | {"mask_per_head", "causal"}
OFFERS = {
    "attention": FEATURES | {"bias", "causal_upper_left"},
    "multi_head": FEATURES | {"projection_bias", "query_width"},
    "cached": {"no_rope"},
}
adapter = Adapter(
    "Flax NNX",
    ("flax", "jax"),
    OFFERS,
    compute,
    dtypes=("float32",),
    differences={"empty_rows": MEAN},
)
