"""``rotary_embedding_torch``, whose angles are float32."""

from rotary_embedding_torch import RotaryEmbedding

from d2l_compat.conformance.adapters import Adapter
from d2l_compat.conformance.adapters._torch import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    layer = RotaryEmbedding(
        case.options.get("rotary_dim", case["x"].shape[-1]),
        theta=case.options.get("base", 10000),
        interpolate_factor=1 / case.options.get("position_scale", 1),
    )
    start = int(case["positions"][0])
    return answer(case, lambda x: layer.rotate_queries_or_keys(x["x"], offset=start))


OFFERS = {"rope": {"interleaved", "offset", "base", "partial", "position_scale"}}
adapter = Adapter(
    "rotary-embedding-torch", ("rotary-embedding-torch", "torch"), OFFERS, compute, ("float32",)
)
