"""``jax.nn.dot_product_attention``, whose axes are (batch, steps, heads, features), and whose softmax is float32."""

from typing import Any

import jax

from d2l_compat.conformance.adapters import MASKS, MEAN, Adapter
from d2l_compat.conformance.adapters._jax import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    def attend(x: dict[str, Any]) -> Any:
        options: dict[str, Any] = {"scale": case.options.get("scale"), "bias": x.get("bias")}
        if "window" in case.options:
            options["local_window_size"] = (case.options["window"] - 1, 0)
        if "lengths" in x and x["lengths"].ndim == 1:
            options["key_value_seq_lengths"] = x["lengths"].astype("int32")
            visible = case.visible_keys("mask")
        else:
            visible = case.visible_keys("mask", "lengths")
        inputs = (x[name].swapaxes(1, 2) for name in ("queries", "keys", "values"))
        is_causal = "causal" in case.options
        output = jax.nn.dot_product_attention(*inputs, mask=visible, is_causal=is_causal, **options)
        return output.swapaxes(1, 2)

    return answer(case, attend)


FEATURES = MASKS | {"mask_per_head", "bias", "causal", "causal_upper_left", "window"}
adapter = Adapter(
    "jax.nn.dot_product_attention",
    ("jax",),
    {"attention": FEATURES | {"grouped", "scale"}},
    compute,
    dtypes=("float32",),
    differences={"empty_rows": MEAN},
)
