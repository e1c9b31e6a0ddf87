"""tinygrad's ``scaled_dot_product_attention``, on its device in Python, which needs no compiler."""

import os

os.environ.setdefault("DEV", "PYTHON")

from tinygrad import Tensor

from d2l_compat.conformance.adapters import MASKS, Adapter
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    x = {name: Tensor(array) for name, array in case.inputs.items()}
    is_causal = "causal" in case.options and len({*x} & {"lengths", "mask", "bias"}) == 0
    visible = None if is_causal else case.visible_keys("causal", "lengths", "mask")
    mask = None if visible is None else Tensor(visible)
    if "bias" in x:
        mask = x["bias"] if mask is None else mask.where(x["bias"], -float("inf"))
    output = x["queries"].scaled_dot_product_attention(
        x["keys"], x["values"], attn_mask=mask, is_causal=is_causal, enable_gqa=True
    )
    (output * x["direction"]).sum().backward()
    gradients = {f"gradient_{name}": x[name].grad.numpy() for name in case.gradients}
    return {"output": output.numpy()} | gradients


FEATURES = MASKS | {"mask_per_head", "bias", "causal", "causal_upper_left", "grouped"}
adapter = Adapter("tinygrad", ("tinygrad",), {"attention": FEATURES | {"value_width"}}, compute)
