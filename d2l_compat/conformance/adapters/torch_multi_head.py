"""PyTorch's ``MultiheadAttention``; in its boolean masks, True hides a key."""

import numpy as np
import torch
from torch import nn

from d2l_compat.conformance.adapters import MASKS, Adapter
from d2l_compat.conformance.adapters._torch import answer
from d2l_compat.conformance.files import Arrays, Case


def build(case: Case) -> nn.MultiheadAttention:
    width, key_width, value_width = (case[x].shape[-1] for x in ("queries", "keys", "values"))
    layer = nn.MultiheadAttention(
        width,
        case.options["num_heads"],
        bias="b_q" in case.inputs,
        kdim=key_width,
        vdim=value_width,
        batch_first=True,
    )
    matrices = [case[f"W_{role}"].T for role in "qkv"]
    state = {"out_proj.weight": case["W_o"].T}
    if width == key_width == value_width:
        state["in_proj_weight"] = np.concatenate(matrices)
    else:
        state |= {f"{role}_proj_weight": x for role, x in zip("qkv", matrices, strict=True)}
    if "b_q" in case.inputs:
        state["in_proj_bias"] = np.concatenate([case[f"b_{role}"] for role in "qkv"])
        state["out_proj.bias"] = case["b_o"]
    layer.load_state_dict({name: torch.tensor(x) for name, x in state.items()}, assign=True)
    return layer.eval()


def compute(case: Case) -> Arrays:
    layer = build(case)

    def attend(x: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        padding = None
        if "lengths" in x:
            padding = torch.arange(x["keys"].shape[1]) >= x["lengths"][:, None]
        visible = case.visible_keys("causal", "mask")
        mask = None if visible is None else ~torch.tensor(visible).flatten(0, 1)
        if "bias" in x:
            mask = x["bias"].expand(len(x["queries"]), -1, -1, -1).flatten(0, 1)
        inputs = x["queries"], x["keys"], x["values"]
        masks = {"key_padding_mask": padding, "attn_mask": mask}
        output, _ = layer(*inputs, **masks, need_weights=False)
        _, weights = layer(*inputs, **masks, need_weights=True, average_attn_weights=False)
        return output, weights

    return answer(case, attend)


FEATURES = MASKS | {"mask_per_head", "bias", "causal", "causal_lower_right"}
adapter = Adapter(
    "torch MultiheadAttention",
    ("torch",),
    {"multi_head": (FEATURES | {"projection_bias", "cross_widths"})},
    compute,
)
