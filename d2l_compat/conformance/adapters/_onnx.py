"""Models of ONNX with one operator, ``Attention`` or ``RotaryEmbedding``, for whatever runs them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from d2l_compat.conformance.adapters import MASKS
from d2l_compat.conformance.files import Arrays, Case

OFFERS = {
    "attention": MASKS
    | {"mask_per_head", "bias", "causal", "causal_lower_right", "causal_upper_left"}
    | {"more_queries", "window", "grouped", "scale", "softcap", "value_width"},
    "rope": {
        *("interleaved", "halves", "offset", "positions", "positions_per_row"),
        *("base", "partial", "position_scale"),
    },
}
Run = Callable[[onnx.ModelProto, Arrays, list[str]], list[Any]]


def compute(case: Case, run: Run) -> Arrays:
    return {"attention": attention, "rope": rope}[case.kind](case, run)


def attention(case: Case, run: Run) -> Arrays:
    inputs = {"Q": case["queries"], "K": case["keys"], "V": case["values"]}
    num_queries, num_keys = inputs["Q"].shape[2], inputs["K"].shape[2]
    options: dict[str, Any] = {
        x: case.options[x] for x in ("scale", "softcap") if x in case.options
    }
    visible = case.visible_keys("mask", "lengths")
    if "bias" in case.inputs:
        bias = case["bias"]
        hidden = 0 if visible is None else np.where(visible, 0, -np.inf)
        inputs["attn_mask"] = (bias + hidden).astype(bias.dtype)
    elif visible is not None:
        inputs["attn_mask"] = visible
    if "causal" in case.options:
        options["is_causal"] = 1
    if "window" in case.options:
        options |= {"is_causal": 1, "left_window_size": case.options["window"] - 1}
    if case.options.get("causal") == "lower_right" or "window" in case.options:
        split = num_keys - num_queries
        if split > 0:  # the keys before the first query are those of a cache
            for name in ("key", "value"):
                whole = inputs[name[0].upper()]
                inputs[f"past_{name}"] = whole[:, :, :split]
                inputs[name[0].upper()] = whole[:, :, split:]
        elif split < 0:
            inputs["nonpad_kv_seqlen"] = np.full(len(inputs["Q"]), num_keys)
    names = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    given = [name if name in inputs else "" for name in names]
    while not given[-1]:
        given.pop()
    has_past = "past_key" in inputs
    outputs = ["Y", "present_key" * has_past, "present_value" * has_past, "weights"]
    options["qk_matmul_output_mode"] = 3
    model = make_model("Attention", given, inputs, outputs, options)
    output, weights = run(model, inputs, ["Y", "weights"])
    return {"output": output, "weights": weights}


def rope(case: Case, run: Run) -> Arrays:
    x = case["x"]
    size = case.options.get("rotary_dim", x.shape[-1])
    positions = np.broadcast_to(case["positions"], (len(x), x.shape[2]))
    base = case.options.get("base", 10000)
    scale = case.options.get("position_scale", 1)
    angles = (
        scale * np.arange(positions.max() + 1)[:, None] * base ** -(np.arange(0, size, 2) / size)
    )
    cos, sin = (np.array(f(angles), x.dtype) for f in (np.cos, np.sin))
    inputs = {"X": x, "cos_cache": cos, "sin_cache": sin, "position_ids": np.array(positions)}
    options = {"interleaved": int(case.options["layout"] == "interleaved")}
    if size < x.shape[-1]:
        options["rotary_embedding_dim"] = size
    model = make_model("RotaryEmbedding", [*inputs], inputs, ["Y"], options)
    return {"output": run(model, inputs, ["Y"])[0]}


def make_model(
    operator: str,
    given: list[str],
    inputs: Arrays,
    outputs: list[str],
    options: dict[str, Any],
) -> onnx.ModelProto:
    """Make a model of the oldest operator set that has the operator's options."""
    opset = 25 if "left_window_size" in options else 24
    node = helper.make_node(operator, given, outputs, **options)

    def describe(name: str, dtype: Any) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)

    dtype = next(iter(inputs.values())).dtype
    graph = helper.make_graph(
        [node],
        "case",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in inputs.items()
        ],
        [describe(name, dtype) for name in outputs if name],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
