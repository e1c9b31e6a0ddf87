"""``MultiHeadAttention`` has had two signatures; this tells which one a call uses."""

from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from d2l_compat import _checks

_SIZES = ("key_size", "query_size", "value_size")


@dataclass(frozen=True)
class MultiHeadArguments:
    num_hiddens: int
    num_heads: int
    dropout: float
    bias: bool
    # None: taken from the first input.
    key_size: int | None = None
    query_size: int | None = None
    value_size: int | None = None


def multi_head(
    args: tuple[Any, ...], kwargs: dict[str, Any], bias: str = "bias"
) -> MultiHeadArguments:
    """Read either historic signature; ``bias`` is the framework's name for that argument."""
    shared = ("num_hiddens", "num_heads", "dropout")
    is_long = len(args) + len(kwargs) > len(shared) + 1 or any(size in kwargs for size in _SIZES)
    names = _SIZES + shared if is_long else shared
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    parameters.append(Parameter(bias, Parameter.POSITIONAL_OR_KEYWORD, default=False))
    try:
        given = Signature(parameters).bind(*args, **kwargs).arguments
    except TypeError as error:
        short = ", ".join((*shared, f"{bias}=False"))
        raise TypeError(
            f"MultiHeadAttention: {error}; need ({short}) or ({', '.join(_SIZES)}, {short})"
        ) from None
    given["bias"] = given.pop(bias, False)
    _checks.instance(bias, given["bias"], bool, "True or False")
    _checks.dropout(given["dropout"])
    for size in ("num_hiddens", "num_heads", *_SIZES):
        if size in given:
            given[size] = _checks.integer(size, given[size], 1)
    _checks.heads(given["num_hiddens"], given["num_heads"])
    return MultiHeadArguments(**given)
