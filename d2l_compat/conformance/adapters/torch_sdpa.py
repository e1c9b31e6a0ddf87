"""PyTorch's ``scaled_dot_product_attention``."""

import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from d2l_compat.conformance.adapters import MASKS, Adapter
from d2l_compat.conformance.adapters._torch import answer
from d2l_compat.conformance.files import Arrays, Case

CAUSAL = {"causal", "causal_lower_right", "causal_upper_left", "more_queries"}


def compute(case: Case) -> Arrays:
    def attend(x: dict[str, torch.Tensor]) -> torch.Tensor:
        inputs = x["queries"], x["keys"], x["values"]
        options = {"scale": case.options.get("scale"), "enable_gqa": True}
        causal = case.options.get("causal")
        num_queries, num_keys = inputs[0].shape[2], inputs[1].shape[2]
        has_mask = case.visible_keys("lengths", "mask") is not None or "bias" in x
        if causal and not has_mask:
            if causal == "upper_left" or num_queries == num_keys:
                return scaled_dot_product_attention(*inputs, is_causal=True, **options)
            mask = causal_lower_right(num_queries, num_keys)
            return scaled_dot_product_attention(*inputs, attn_mask=mask, **options)
        visible = case.visible_keys("causal", "lengths", "mask")
        mask = None if visible is None else torch.tensor(visible)
        if "bias" in x:
            mask = x["bias"] if mask is None else x["bias"].masked_fill(~mask, -torch.inf)
        return scaled_dot_product_attention(*inputs, attn_mask=mask, **options)

    return answer(case, attend)


FEATURES = MASKS | CAUSAL | {"mask_per_head", "bias", "grouped", "scale", "value_width"}
adapter = Adapter(
    "torch scaled_dot_product_attention", ("torch",), {"attention": FEATURES}, compute
)
