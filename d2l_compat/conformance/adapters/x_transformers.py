"""x-transformers: rotary embeddings, whose angles are float32, ALiBi, and T5's buckets."""

import torch
from x_transformers.x_transformers import (
    AlibiPositionalBias,
    RelativePositionBias,
    RotaryEmbedding,
    apply_rotary_pos_emb,
)

from d2l_compat.conformance.adapters import Adapter
from d2l_compat.conformance.adapters._torch import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    return KINDS[case.kind](case)


def rope(case: Case) -> Arrays:
    layer = RotaryEmbedding(
        case.options.get("rotary_dim", case["x"].shape[-1]),
        base=case.options.get("base", 10000),
        interpolation_factor=1 / case.options.get("position_scale", 1),
    )
    freqs, scale = layer(torch.tensor(case["positions"]))
    return answer(case, lambda x: apply_rotary_pos_emb(x["x"], freqs, scale))


def alibi_slopes(case: Case) -> Arrays:
    return {"output": AlibiPositionalBias(case.options["num_heads"]).slopes.numpy().ravel()}


def alibi(case: Case) -> Arrays:
    visible = case.visible_keys("causal")

    def attend(x: dict[str, torch.Tensor]) -> torch.Tensor:
        shape = *x["queries"].shape[:3], x["keys"].shape[2]
        bias = AlibiPositionalBias(shape[1])(*shape[2:]).expand(shape)
        if visible is not None:
            bias = bias.masked_fill(~torch.tensor(visible), -torch.inf)
        inputs = x["queries"], x["keys"], x["values"]
        return torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=bias)

    return answer(case, attend)


def t5_buckets(case: Case) -> Arrays:
    buckets = RelativePositionBias._relative_position_bucket(
        torch.tensor(case["distances"]),
        causal=not case.options["bidirectional"],
        num_buckets=case.options["num_buckets"],
        max_distance=case.options["max_distance"],
    )
    return {"output": buckets.numpy()}


KINDS = {"rope": rope, "alibi_slopes": alibi_slopes, "alibi": alibi, "t5_buckets": t5_buckets}
POSITIONS = {"offset", "positions", "positions_per_row"}
OFFERS = {
    "rope": POSITIONS | {"interleaved", "base", "partial", "position_scale"},
    "alibi_slopes": {"other_heads"},
    "alibi": {"causal", "symmetric", "more_keys", "other_heads"},
    "t5_buckets": {"bidirectional", "one_way", "border"},
}
adapter = Adapter(
    "x-transformers", ("x-transformers", "torch"), OFFERS, compute, dtypes=("float32",)
)
