"""labml.ai: ``RotaryPositionalEmbeddings``, whose axes are (steps, batch, heads, features), and ALiBi's slopes."""

from labml_nn.transformers.alibi import get_slopes
from labml_nn.transformers.rope import RotaryPositionalEmbeddings

from d2l_compat.conformance.adapters import Adapter
from d2l_compat.conformance.adapters._torch import answer
from d2l_compat.conformance.files import Arrays, Case


def compute(case: Case) -> Arrays:
    if case.kind == "alibi_slopes":
        return {"output": get_slopes(case.options["num_heads"]).numpy()}
    size = case.options.get("rotary_dim", case["x"].shape[-1])
    layer = RotaryPositionalEmbeddings(size, base=case.options.get("base", 10000))
    return answer(case, lambda x: layer(x["x"].permute(2, 0, 1, 3)).permute(1, 2, 0, 3))


OFFERS = {"rope": {"halves", "base", "partial"}, "alibi_slopes": {"other_heads"}}
adapter = Adapter("labml.ai", ("labml-nn", "torch"), OFFERS, compute, dtypes=("float32",))
