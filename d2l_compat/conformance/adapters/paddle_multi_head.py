"""PaddlePaddle's ``MultiHeadAttention``."""

from typing import Any

import numpy as np
import paddle

from d2l_compat.conformance.adapters import MASKS, MEAN, Adapter
from d2l_compat.conformance.adapters._paddle import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    key_width, value_width = case["keys"].shape[-1], case["values"].shape[-1]
    layer = paddle.nn.MultiHeadAttention(
        case["W_o"].shape[1],
        case.options["num_heads"],
        kdim=key_width,
        vdim=value_width,
        need_weights=True,
        bias_attr=None if "b_q" in case.inputs else False,
    ).to(dtype=case["W_q"].dtype.name)
    layer.eval()
    names = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
    state = {
        f"{names[n[2]]}.{'weight' if n[0] == 'W' else 'bias'}": x
        for n, x in case.inputs.items()
        if n[1] == "_"
    }
    layer.set_state_dict({name: paddle.to_tensor(np.array(x)) for name, x in state.items()})

    def attend(x: dict[str, Any]) -> Any:
        visible = case.visible_keys("lengths", "mask")
        mask = x.get("bias") if visible is None else paddle.to_tensor(visible)
        return layer(x["queries"], x["keys"], x["values"], attn_mask=mask)

    return answer(case, attend)


FEATURES = MASKS | {"mask_per_head", "bias", "projection_bias", "cross_widths"}
adapter = Adapter(
    "paddle MultiHeadAttention",
    ("paddlepaddle",),
    {"multi_head": FEATURES},
    compute,
    differences={"empty_rows": MEAN},
)
