"""PyTorch's ``flex_attention``, not compiled; masks and biases are functions of the indices."""

import math
from typing import Any

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from d2l_compat.conformance.adapters import MASKS, Adapter
from d2l_compat.conformance.adapters._torch import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    def attend(x: dict[str, torch.Tensor]) -> Any:
        shape = *x["queries"].shape[:3], x["keys"].shape[2]
        cap = torch.tensor(case.options.get("softcap", 0.0))  # a number would be compiled in
        bias = x["bias"].expand(shape) if "bias" in x else None

        def change_score(score: Any, batch: Any, head: Any, query: Any, key: Any) -> Any:
            if "softcap" in case.options:
                score = cap * torch.tanh(score / cap)
            return score if bias is None else score + bias[batch, head, query, key]

        visible = case.visible_keys("causal", "lengths", "mask", "window")
        block_mask = None
        if visible is not None:
            mask = torch.tensor(visible)
            block_mask = create_block_mask(
                lambda batch, head, query, key: mask[batch, head, query, key], *shape, device="cpu"
            )
        return flex_attention(
            x["queries"],
            x["keys"],
            x["values"],
            score_mod=change_score,
            block_mask=block_mask,
            scale=case.options.get("scale", 1 / math.sqrt(x["queries"].shape[-1])),
            enable_gqa=True,
        )

    return answer(case, attend, has_gradients=False)  # there are none on a CPU


CAUSAL = {"causal", "causal_lower_right", "causal_upper_left", "more_queries", "window"}
OTHERS = {"mask_per_head", "bias", "grouped", "scale", "softcap", "value_width"}
adapter = Adapter(
    "torch flex_attention", ("torch",), {"attention": MASKS | CAUSAL | OTHERS}, compute
)
