"""Some layers have had several signatures; this tells which one a call uses, and checks it."""

from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from d2l_compat._shared import checks

# The forms of each; where only the second names a size, the first takes it from the first input.
ADDITIVE = ("num_hiddens, dropout", "key_size, query_size, num_hiddens, dropout")
FFN = ("ffn_num_hiddens, ffn_num_outputs", "ffn_num_input, ffn_num_hiddens, ffn_num_outputs")
_SIZES = "key_size, query_size, value_size, num_hiddens, norm_shape"
_BLOCK = "ffn_num_hiddens, num_heads, dropout, use_bias=False"
_BLOCKS = "ffn_num_hiddens, num_heads, num_blks, dropout, use_bias=False"
ENCODER_BLOCK = (f"num_hiddens, {_BLOCK}", f"{_SIZES}, ffn_num_input, {_BLOCK}")
ENCODER = (
    f"vocab_size, num_hiddens, {_BLOCKS}",
    f"vocab_size, {_SIZES}, ffn_num_input, {_BLOCKS}",
)
# TensorFlow's have no ffn_num_input, and say bias.
_KERAS_BLOCK, _KERAS_BLOCKS = (form.replace("use_bias", "bias") for form in (_BLOCK, _BLOCKS))
KERAS_ENCODER_BLOCK = (f"num_hiddens, {_KERAS_BLOCK}", f"{_SIZES}, {_KERAS_BLOCK}")
KERAS_ENCODER = (
    f"vocab_size, num_hiddens, {_KERAS_BLOCKS}",
    f"vocab_size, {_SIZES}, {_KERAS_BLOCKS}",
)


def read(what: str, forms: tuple[str, ...], args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by name, read by the first of several signatures that they fit.

    A form is written as in Python, ``"num_hiddens, dropout, bias=False"``. Raises TypeError
    where none fits; ValueError or TypeError for a value of another range or kind.
    """
    signature = _choose([_parse(form) for form in forms], len(args), kwargs)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        need = " or ".join(f"({form})" for form in forms)
        raise TypeError(f"{what}: {error}; need {need}") from None
    bound.apply_defaults()
    return {name: _checked(name, value) for name, value in bound.arguments.items()}


def _choose(signatures: list[Signature], args: int, kwargs: dict[str, Any]) -> Signature:
    known = {name for signature in signatures for name in signature.parameters}
    asked_for = kwargs.keys() & known  # a name in none of them is an error in any
    for signature in signatures:
        names = signature.parameters.keys()
        if args + len(kwargs) <= len(names) and asked_for <= names:
            return signature
    return signatures[-1]


def _parse(form: str) -> Signature:
    parameters = []
    for part in form.split(", "):
        name, _, default = part.partition("=")
        value = {"": Parameter.empty, "False": False, "0": 0}[default]
        parameters.append(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=value))
    return Signature(parameters)


def _checked(name: str, value: Any) -> Any:
    if name == "dropout":
        checks.dropout(value)
    elif name.endswith("bias"):
        checks.instance(name, value, bool, "True or False")
    elif name != "norm_shape":  # the framework's own, checked by its layer
        return checks.integer(name, value, 1)
    return value


def of_attention(block: dict[str, Any], bias: str = "bias") -> dict[str, Any]:
    """Of an encoder block's arguments those of its ``MultiHeadAttention``."""
    names = (*_SIZES.split(", ")[:4], "num_heads", "dropout")
    use_bias = block["use_bias" if "use_bias" in block else "bias"]
    return {name: block[name] for name in names if name in block} | {bias: use_bias}


def of_ffn(block: dict[str, Any]) -> dict[str, Any]:
    """Of an encoder block's arguments those of its ``PositionWiseFFN``."""
    given = {name: block[name] for name in ("ffn_num_input", "ffn_num_hiddens") if name in block}
    return given | {"ffn_num_outputs": block["num_hiddens"]}


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
    short = f"num_hiddens, num_heads, dropout, {bias}=False"
    forms = (short, f"key_size, query_size, value_size, {short}")
    given = read("MultiHeadAttention", forms, args, kwargs)
    given["bias"] = given.pop(bias)
    checks.heads(given["num_hiddens"], given["num_heads"])
    return MultiHeadArguments(**given)
