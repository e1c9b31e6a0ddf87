"""Some layers have had several signatures: this tells which one a call uses, and checks its arguments.

The signatures are those that ``__init__`` declares: its overloads, or its own where it has one alone.
They are read once, when the class is made. What is keyword-only is the framework's, and goes on as it is.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_overloads

from d2l_compat._shared import checks

Init = TypeVar("Init", bound=Callable[..., None])


def _size(name: str, value: Any) -> int:
    return checks.size(name, value)


def _dropout(name: str, value: Any) -> Any:
    checks.check_dropout(value)
    return value


def _flag(name: str, value: Any) -> bool:
    checks.check_instance(name, value, bool, "True or False")
    return value


def _strides(name: str, value: Any) -> int | tuple[int, ...]:
    found = checks.integers(name, value, 1)
    return found if isinstance(found, int) else tuple(found)


def _accept(name: str, value: Any) -> Any:
    return value


# Of every argument, what checks it and gives it back.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "bias": _flag,
    "dropout": _dropout,
    "ffn_num_hiddens": _size,
    "ffn_num_input": _size,
    "ffn_num_outputs": _size,
    "hid_in_features": _size,
    "input_channels": _size,
    "key_size": _size,
    "max_len": _size,
    "mlm_in_features": _size,
    "norm_shape": _accept,
    "nsp_in_features": _size,
    "num_blks": _size,
    "num_channels": _size,
    "num_heads": _size,
    "num_hiddens": _size,
    "num_layers": _size,
    "query_size": _size,
    "strides": _strides,
    "training": _flag,
    "use_1x1conv": _flag,
    "use_bias": _flag,
    "value_size": _size,
    "vocab_size": _size,
}


class Signatures:
    """Those that an ``__init__`` declares."""

    def __init__(self, declared: list[Signature]) -> None:
        """Raises TypeError for an argument that nothing checks."""
        kinds = [list(form.parameters.values()) for form in declared]
        self.forms = [
            Signature([p for p in form if p.kind is Parameter.POSITIONAL_OR_KEYWORD])
            for form in kinds
        ]
        self.names = {name for form in self.forms for name in form.parameters}
        self.framework_names = {
            p.name for form in kinds for p in form if p.kind is Parameter.KEYWORD_ONLY
        }
        if unchecked := self.names - CHECKS.keys():
            need = "one for it in signatures.CHECKS"
            raise TypeError(checks.fault(min(unchecked), "no check", need))

    def parse(self, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, read by the first signature that they fit.

        Raises TypeError where none fits; ValueError or TypeError for a value of another range or
        kind.
        """
        passed_on = {name: kwargs[name] for name in kwargs if name in self.framework_names}
        named = {name: kwargs[name] for name in kwargs if name not in passed_on}
        try:
            bound = self._choose(args, named).bind(*args, **named)
        except TypeError as error:
            need = " or ".join(map(_format_signature, self.forms))
            raise TypeError(f"{what}: {error}; need {need}") from None
        bound.apply_defaults()
        given = {name: CHECKS[name](name, value) for name, value in bound.arguments.items()}
        return given | passed_on

    def _choose(self, args: tuple[Any, ...], named: dict[str, Any]) -> Signature:
        asked_for = named.keys() & self.names  # a name in none of them is an error in any
        fitting = [
            form
            for form in self.forms
            if len(args) + len(named) <= len(form.parameters)
            and asked_for <= form.parameters.keys()
        ]
        as_meant = [form for form in fitting if _is_plausible_match(form, args, named)]
        return (as_meant or fitting or self.forms[-1:])[0]


def _is_plausible_match(form: Signature, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Nothing is missing; True and False stand where they are meant to, and nothing else does."""
    try:
        form.bind(*args, **named)
    except TypeError:
        return False
    return all(
        isinstance(value, bool) == (parameter.annotation is bool)
        for value, parameter in zip(args, form.parameters.values(), strict=False)
    )


def declared_signatures(init: Callable[..., None]) -> list[Signature]:
    """The signatures of an ``__init__``, without ``self``."""
    found = [signature(form) for form in get_overloads(init) or [init]]
    return [form.replace(parameters=list(form.parameters.values())[1:]) for form in found]


def parse_overloads(init: Callable[..., None]) -> Callable[..., None]:
    """Decorates an ``__init__`` that has overloads: it gets its arguments by name, and checked."""
    signatures = Signatures(declared_signatures(init))
    what = init.__qualname__.split(".")[-2]

    @wraps(init)
    def read_and_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, **signatures.parse(what, args, kwargs))

    del read_and_init.__wrapped__  # its signature has keyword-only arguments
    # What help() and Shift-Tab in Jupyter show: D2L 1.0's signature, which is declared first.
    first, *_ = get_overloads(init) or [init]
    read_and_init.__signature__ = signature(first)  # type: ignore[attr-defined]
    return read_and_init


def parse_arguments(init: Init) -> Init:
    """The same, of an ``__init__`` with one signature."""
    return wraps(init)(parse_overloads(init))  # type: ignore[return-value]


def attention_arguments(block: dict[str, Any]) -> dict[str, Any]:
    """Of an encoder block's arguments those of its ``MultiHeadAttention``."""
    names = ("key_size", "query_size", "value_size", "num_hiddens", "num_heads", "dropout")
    bias = block["use_bias" if "use_bias" in block else "bias"]
    return {name: block[name] for name in names if name in block} | {"bias": bias}


def ffn_arguments(block: dict[str, Any]) -> dict[str, Any]:
    """Of an encoder block's arguments those of its ``PositionWiseFFN``."""
    given = {name: block[name] for name in ("ffn_num_input", "ffn_num_hiddens") if name in block}
    return given | {"ffn_num_outputs": block["num_hiddens"]}


def bert_block_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Of a BERT encoder's arguments those of its blocks; sizes that are not told follow from ``num_hiddens``."""
    told = ("num_hiddens", "ffn_num_hiddens", "num_heads", "dropout")
    sizes = ("key_size", "query_size", "value_size", "norm_shape", "ffn_num_input")
    of_all = {name: given.get(name, given["num_hiddens"]) for name in sizes}
    return of_all | {name: given[name] for name in told} | {"use_bias": True}


def _format_signature(form: Signature) -> str:
    """As in Python, without types."""
    plain = [p.replace(annotation=Parameter.empty) for p in form.parameters.values()]
    return str(Signature(plain))
