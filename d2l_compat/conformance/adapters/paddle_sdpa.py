"""PaddlePaddle's ``scaled_dot_product_attention``, whose axes are (batch, steps, heads, features)."""

from typing import Any

import numpy as np
import paddle
from paddle.nn.functional import scaled_dot_product_attention

from d2l_compat.conformance.adapters import MASKS, Adapter
from d2l_compat.conformance.adapters._paddle import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    def attend(x: dict[str, Any]) -> Any:
        inputs = (x[name].transpose([0, 2, 1, 3]) for name in ("queries", "keys", "values"))
        is_causal = "causal" in case.options and len({*x} & {"lengths", "mask", "bias"}) == 0
        parts = ("lengths", "mask") if is_causal else ("causal", "lengths", "mask")
        visible = case.visible_keys(*parts)
        mask = None if visible is None else paddle.to_tensor(visible)
        if "bias" in x:
            mask = x["bias"]
            if visible is not None:
                hidden = np.where(visible, 0, -np.inf).astype(case["bias"].dtype)
                mask = mask + paddle.to_tensor(hidden)
        output = scaled_dot_product_attention(
            *inputs,
            attn_mask=mask,
            is_causal=is_causal,
            scale=case.options.get("scale"),
            training=False,
        )
        return output.transpose([0, 2, 1, 3])

    return answer(case, attend)


FEATURES = MASKS | {"mask_per_head", "bias", "causal", "causal_upper_left", "grouped", "scale"}
adapter = Adapter(
    "paddle scaled_dot_product_attention", ("paddlepaddle",), {"attention": FEATURES}, compute
)
