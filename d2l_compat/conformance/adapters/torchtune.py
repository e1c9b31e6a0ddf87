"""torchtune: ``RotaryPositionalEmbeddings``, and ``MultiHeadAttention`` with its cache; angles are float32."""

import torch
from torch import nn
from torchtune.modules import MultiHeadAttention, RotaryPositionalEmbeddings

from d2l_compat.conformance.adapters import Adapter
from d2l_compat.conformance.adapters._torch import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    return {"rope": rope, "cached": cached}[case.kind](case)


def rope(case: Case) -> Arrays:
    layer = RotaryPositionalEmbeddings(case["x"].shape[-1], base=case.options.get("base", 10000))
    positions = torch.tensor(case["positions"])
    return answer(
        case, lambda x: layer(x["x"].transpose(1, 2), input_pos=positions).transpose(1, 2)
    )


def linear(weight: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(*weight.shape, bias=False)
    layer.weight = nn.Parameter(weight.T)
    return layer


def cached(case: Case) -> Arrays:
    x = torch.tensor(case["x"])
    num_steps, width = x.shape[1:]
    num_heads = case.options["num_heads"]
    size = width // num_heads
    names = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "output_proj"}
    layer = MultiHeadAttention(
        embed_dim=width,
        num_heads=num_heads,
        num_kv_heads=case.options["num_kv_heads"],
        head_dim=size,
        pos_embeddings=RotaryPositionalEmbeddings(size) if "rope" in case.options else None,
        **{name: linear(torch.tensor(case[f"W_{role}"])) for role, name in names.items()},
    ).eval()
    answers = answer(case, lambda tensors: layer(tensors["x"], tensors["x"]))
    layer.setup_cache(len(x), x.dtype, num_steps)
    visible = torch.ones(num_steps, num_steps, dtype=torch.bool).tril()
    for length in case.options["chunks"]:
        layer.reset_cache()
        parts = []
        for start in range(0, num_steps, length):
            part = x[:, start : start + length]
            positions = torch.arange(start, start + part.shape[1]).expand(len(x), -1)
            mask = visible[positions]
            parts.append(layer(part, part, mask=mask, input_pos=positions))
        answers[f"chunks_{length}"] = torch.cat(parts, dim=1).detach().numpy()
    return answers


OFFERS = {
    "rope": {"interleaved", "offset", "positions", "positions_per_row", "base"},
    "cached": {"grouped", "no_rope", "rope", "interleaved"},
}
adapter = Adapter("torchtune", ("torchtune", "torch"), OFFERS, compute, dtypes=("float32",))
