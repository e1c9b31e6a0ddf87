"""Transformers: Llama's and GPT-J's rotary embeddings, BLOOM's ALiBi, T5's buckets, and Llama's cache."""

from typing import Any

import torch
from transformers import DynamicCache, LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.t5.modeling_t5 import T5Attention

from d2l_compat.conformance.adapters import Adapter
from d2l_compat.conformance.adapters._torch import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    return KINDS[case.kind](case)


def make_config(width: int, num_heads: int, num_kv_heads: int, **parameters: Any) -> LlamaConfig:
    config = LlamaConfig(
        hidden_size=width,
        num_attention_heads=num_heads,
        num_key_value_heads=num_kv_heads,
        num_hidden_layers=1,
        vocab_size=4,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0, **parameters},
    )
    config._attn_implementation = "sdpa"
    return config


def rope(case: Case) -> Arrays:
    x = case["x"]
    parameters: dict[str, Any] = {"rope_theta": float(case.options.get("base", 10000))}
    if "position_scale" in case.options:
        parameters |= {"rope_type": "linear", "factor": 1 / case.options["position_scale"]}
    layer = llama.LlamaRotaryEmbedding(make_config(x.shape[-1], 1, 1, **parameters))
    positions = torch.tensor(case["positions"]).expand(len(x), x.shape[2])

    def rotate(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
        cos, sin = layer(tensors["x"], positions)
        return llama.apply_rotary_pos_emb(tensors["x"], tensors["x"], cos, sin)[0]

    return answer(case, rotate)


def alibi_slopes(case: Case) -> Arrays:
    num_heads = case.options["num_heads"]
    bias = build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), num_heads, torch.float32)
    return {"output": bias[:, 0, 1].numpy()}


def alibi(case: Case) -> Arrays:
    visible = torch.tensor(case.visible_keys("causal"))

    def attend(x: dict[str, torch.Tensor]) -> torch.Tensor:
        batch, num_heads, _, num_keys = visible.shape
        ones = torch.ones(batch, num_keys, dtype=torch.long)
        bias = build_alibi_tensor(ones, num_heads, x["queries"].dtype)
        bias = bias.reshape(batch, num_heads, 1, num_keys).masked_fill(~visible, -torch.inf)
        inputs = x["queries"], x["keys"], x["values"]
        return torch.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=bias)

    return answer(case, attend)


def t5_buckets(case: Case) -> Arrays:
    buckets = T5Attention._relative_position_bucket(torch.tensor(case["distances"]), **case.options)
    return {"output": buckets.numpy()}


def cached(case: Case) -> Arrays:
    x = torch.tensor(case["x"])
    width, num_heads = x.shape[2], case.options["num_heads"]
    config = make_config(width, num_heads, case.options["num_kv_heads"])
    layer = llama.LlamaAttention(config, layer_idx=0).eval().to(x.dtype)
    layer.load_state_dict({f"{r}_proj.weight": torch.tensor(case[f"W_{r}"].T) for r in "qkvo"})
    rotary = llama.LlamaRotaryEmbedding(config)

    def read(x: torch.Tensor, start: int = 0, cache: Any = None) -> torch.Tensor:
        positions = torch.arange(start, start + x.shape[1])
        mask = torch.arange(start + x.shape[1]) <= positions[:, None]
        embeddings = rotary(x, positions[None])
        return layer(x, embeddings, mask[None, None], cache)[0]

    answers = answer(case, lambda tensors: read(tensors["x"]))
    for size in case.options["chunks"]:
        cache = DynamicCache(config=config)
        starts = range(0, x.shape[1], size)
        parts = [read(x[:, start : start + size], start, cache) for start in starts]
        answers[f"chunks_{size}"] = torch.cat(parts, dim=1).detach().numpy()
    return answers


def rope_of_any_layout(case: Case) -> Arrays:
    return rope(case) if case.options["layout"] == "halves" else rope_interleaved(case)


def rope_interleaved(case: Case) -> Arrays:
    """Rotate as GPT-J does, whose axes are (batch, steps, heads, features)."""
    size = case.options.get("rotary_dim", case["x"].shape[-1])
    positions = torch.tensor(case["positions"])
    table = gptj.create_sinusoidal_positions(int(positions.max()) + 1, size)
    sin, cos = table[positions.expand(len(case["x"]), case["x"].shape[2])].chunk(2, dim=-1)

    def rotate(tensors: dict[str, torch.Tensor]) -> torch.Tensor:
        x = tensors["x"].transpose(1, 2)
        rotated = gptj.apply_rotary_pos_emb(x[..., :size], sin, cos)
        return torch.cat([rotated, x[..., size:]], dim=-1).transpose(1, 2)

    return answer(case, rotate)


KINDS = {
    "rope": rope_of_any_layout,
    "alibi_slopes": alibi_slopes,
    "alibi": alibi,
    "t5_buckets": t5_buckets,
    "cached": cached,
}
OFFERS = {
    "rope": {"halves", "offset", "positions", "positions_per_row", "base", "position_scale"},
    "alibi_slopes": {"other_heads"},
    "alibi": {"causal", "more_keys", "other_heads"},
    "t5_buckets": {"bidirectional", "one_way", "border"},
    "cached": {"grouped", "rope", "halves"},
}
adapter = Adapter("Transformers", ("transformers", "torch"), OFFERS, compute, dtypes=("float32",))
