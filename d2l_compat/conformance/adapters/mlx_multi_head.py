"""MLX's ``nn.MultiHeadAttention``, with additive masks."""

from typing import Any

import numpy as np
from mlx import nn

from d2l_compat.conformance.adapters import MASKS, Adapter
from d2l_compat.conformance.adapters._mlx import answer, tensor
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    widths = (case[name].shape[-1] for name in ("queries", "keys", "values"))
    width, num_heads = case["W_o"].shape[1], case.options["num_heads"]
    layer = nn.MultiHeadAttention(width, num_heads, *widths, bias="b_q" in case.inputs)
    names = {"q": "query_proj", "k": "key_proj", "v": "value_proj", "o": "out_proj"}
    kinds = {"W": "weight", "b": "bias"}
    weights = {n: x for n, x in case.inputs.items() if n[1] == "_"}
    layer.load_weights([(f"{names[n[2]]}.{kinds[n[0]]}", tensor(x.T)) for n, x in weights.items()])
    layer.eval()

    def attend(x: dict[str, Any]) -> Any:
        visible = case.visible_keys("lengths", "mask")
        mask = x.get("bias")
        if visible is not None:
            mask = tensor(np.where(visible, 0, -np.inf).astype(case["queries"].dtype))
        return layer(x["queries"], x["keys"], x["values"], mask)

    return answer(case, attend)


FEATURES = MASKS | {"mask_per_head", "bias", "projection_bias", "cross_widths", "query_width"}
adapter = Adapter(
    "MLX MultiHeadAttention", ("mlx",), {"multi_head": FEATURES}, compute, dtypes=("float32",)
)
