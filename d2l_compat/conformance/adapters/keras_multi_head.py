"""Keras: ``MultiHeadAttention``, ``GroupQueryAttention`` and ``ops.dot_product_attention``, on TensorFlow."""

from typing import Any

import keras

from d2l_compat.conformance.adapters import MASKS, MEAN, Adapter
from d2l_compat.conformance.adapters._tensorflow import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    return {"attention": attention, "multi_head": multi_head}[case.kind](case)


def attention(case: Case) -> Arrays:
    def attend(x: dict[str, Any]) -> Any:
        inputs = (keras.ops.swapaxes(x[name], 1, 2) for name in ("queries", "keys", "values"))
        options = {
            "bias": x.get("bias"),
            "mask": case.visible_keys("mask", "lengths"),
            "scale": case.options.get("scale"),
            "is_causal": "causal" in case.options,
        }
        output = keras.ops.dot_product_attention(*inputs, **options)
        return keras.ops.swapaxes(output, 1, 2)

    return answer(case, attend)


def build(case: Case) -> keras.Layer:
    num_heads, width = case.options["num_heads"], case["W_q"].shape[1]
    kv_heads = case.options.get("num_kv_heads")
    size = width // num_heads
    options = {"use_bias": "b_q" in case.inputs, "dtype": case["W_q"].dtype.name}
    if "window" in case.options:
        options["sliding_window"] = case.options["window"]
    if kv_heads:
        layer = keras.layers.GroupQueryAttention(size, num_heads, kv_heads, **options)
    else:
        layer = keras.layers.MultiHeadAttention(num_heads, size, output_shape=width, **options)
    layer.build(*((None, *case[name].shape[1:]) for name in ("queries", "values", "keys")))
    weights = []
    for role in "qkvo":
        matrix = case[f"W_{role}"]
        heads = num_heads if role in "qo" else kv_heads or num_heads
        shape = (heads, -1, width) if role == "o" else (len(matrix), heads, -1)
        weights.append(matrix.reshape(shape))
        if f"b_{role}" in case.inputs:
            bias = case[f"b_{role}"]
            weights.append(bias if role == "o" else bias.reshape(heads, -1))
    layer.set_weights(weights)
    return layer


def multi_head(case: Case) -> Arrays:
    layer = build(case)

    def attend(x: dict[str, Any]) -> Any:
        inputs = x["queries"], x["values"], x["keys"]
        visible = case.visible_keys("mask", "lengths")
        mask = None if visible is None else visible[:, 0]
        is_causal = not case.options.keys().isdisjoint({"causal", "window"})
        masks = {"attention_mask": mask, "use_causal_mask": is_causal}
        output = layer(*inputs, **masks)
        _, weights = layer(*inputs, **masks, return_attention_scores=True)
        return output, weights

    return answer(case, attend)


OFFERS = {
    "attention": MASKS | {"mask_per_head", "bias", "scale", "causal", "grouped"},
    "multi_head": MASKS
    | {"causal", "window", "projection_bias", "cross_widths", "query_width", "grouped"},
}
adapter = Adapter(
    "Keras", ("keras", "tensorflow"), OFFERS, compute, differences={"empty_rows": MEAN}
)
