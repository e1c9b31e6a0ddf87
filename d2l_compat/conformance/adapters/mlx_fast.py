"""MLX: ``fast.scaled_dot_product_attention``, ``fast.rope`` and ``nn.ALiBi``, which compute in float32."""

from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn

from d2l_compat.conformance.adapters import MASKS, MEAN, Adapter
from d2l_compat.conformance.adapters._mlx import answer, tensor
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    return KINDS[case.kind](case)


def attention(case: Case) -> Arrays:
    def attend(x: dict[str, Any]) -> Any:
        scale = case.options.get("scale", case["queries"].shape[-1] ** -0.5)
        has_mask = len({*x} & {"lengths", "mask", "bias"}) > 0
        mask: Any = "causal" if "causal" in case.options else None
        if has_mask:
            visible = case.visible_keys("causal", "lengths", "mask")
            mask = None if visible is None else tensor(visible)
        if "bias" in x:
            mask = x["bias"] if mask is None else mx.where(mask, x["bias"], -mx.inf)
        inputs = x["queries"], x["keys"], x["values"]
        return mx.fast.scaled_dot_product_attention(*inputs, scale=scale, mask=mask)

    return answer(case, attend)


def rope(case: Case) -> Arrays:
    starts = case["positions"][..., 0]
    options = {
        "dims": case.options.get("rotary_dim", case["x"].shape[-1]),
        "traditional": case.options["layout"] == "interleaved",
        "base": float(case.options.get("base", 10000)),
        "scale": case.options.get("position_scale", 1.0),
        "offset": mx.array(starts) if starts.ndim else int(starts),
    }
    return answer(case, lambda x: mx.fast.rope(x["x"], **options))


def alibi_slopes(case: Case) -> Arrays:
    slopes = nn.ALiBi.create_alibi_slope(case.options["num_heads"])
    return {"output": np.array(slopes).ravel()}


def alibi(case: Case) -> Arrays:
    visible = case.visible_keys("causal")
    mask = None if visible is None else tensor(np.where(visible, 0, -np.inf).astype("float32"))

    def attend(x: dict[str, Any]) -> Any:
        scores = x["queries"] @ x["keys"].swapaxes(2, 3) * x["queries"].shape[-1] ** -0.5
        offset = scores.shape[3] - scores.shape[2]
        weights = mx.softmax(nn.ALiBi()(scores, offset=offset, mask=mask), axis=-1)
        return weights @ x["values"], weights

    return answer(case, attend)


KINDS = {"attention": attention, "rope": rope, "alibi_slopes": alibi_slopes, "alibi": alibi}
FEATURES = MASKS | {"mask_per_head", "bias", "causal", "causal_lower_right", "more_queries"}
OFFERS = {
    "attention": FEATURES | {"grouped", "scale", "value_width"},
    "rope": {
        "interleaved",
        "halves",
        "offset",
        "base",
        "partial",
        "position_scale",
        "positions_per_row",
    },
    "alibi_slopes": {"other_heads"},
    "alibi": {"causal", "symmetric", "more_keys", "other_heads"},
}
adapter = Adapter(
    "mlx.core.fast, mlx.nn.ALiBi",
    ("mlx",),
    OFFERS,
    compute,
    dtypes=("float32",),
    differences={"empty_rows": MEAN},
)
