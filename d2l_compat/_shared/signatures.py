"""Parse and check the arguments of layers, some of which have had several signatures.

A layer's ``__init__`` declares its signatures: as overloads, or its own if it has only one. They are read once, when
the class is created. Keyword-only arguments are the framework's, and are passed on unchecked.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_overloads

from d2l_compat._shared import checks

Init = TypeVar("Init", bound=Callable[..., None])


def _check_size(name: str, value: Any) -> int:
    return checks.size(name, value)


def _check_dropout(name: str, value: Any) -> Any:
    checks.check_dropout(value)
    return value


def _check_flag(name: str, value: Any) -> bool:
    checks.check_flag(name, value)
    return value


def _check_strides(name: str, value: Any) -> int | tuple[int, ...]:
    strides = checks.integers(name, value, 1)
    return strides if isinstance(strides, int) else tuple(strides)


def _accept_any(name: str, value: Any) -> Any:
    return value


# Validator for each argument: it returns the value, or raises.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "bias": _check_flag,
    "dropout": _check_dropout,
    "ffn_num_hiddens": _check_size,
    "ffn_num_input": _check_size,
    "ffn_num_outputs": _check_size,
    "hid_in_features": _check_size,
    "input_channels": _check_size,
    "key_size": _check_size,
    "max_len": _check_size,
    "mlm_in_features": _check_size,
    "norm_shape": _accept_any,
    "nsp_in_features": _check_size,
    "num_blks": _check_size,
    "num_channels": _check_size,
    "num_heads": _check_size,
    "num_hiddens": _check_size,
    "num_layers": _check_size,
    "query_size": _check_size,
    "strides": _check_strides,
    "training": _check_flag,
    "use_1x1conv": _check_flag,
    "use_bias": _check_flag,
    "value_size": _check_size,
    "vocab_size": _check_size,
}


class Signatures:
    """The signatures that an ``__init__`` declares."""

    def __init__(self, signatures: list[Signature]) -> None:
        """Collect the parameters. Raises TypeError for one that has no check."""
        parameters = [p for declared in signatures for p in declared.parameters.values()]
        self.framework_names = {p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
        self.alternatives = [_drop_keyword_only(declared) for declared in signatures]
        self.names = {name for declared in self.alternatives for name in declared.parameters}
        if unchecked := self.names - CHECKS.keys():
            need = "one for it in signatures.CHECKS"
            raise TypeError(checks.message(min(unchecked), "no check", need))

    def parse(self, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the checked arguments by name, according to the first signature that fits.

        Raises TypeError if none fits, ValueError or TypeError for a value of the wrong type or range.
        """
        framework_args = {name: kwargs[name] for name in kwargs if name in self.framework_names}
        named = {name: kwargs[name] for name in kwargs if name not in framework_args}
        try:
            bound = self._choose(args, named).bind(*args, **named)
        except TypeError as error:
            need = " or ".join(map(_format_signature, self.alternatives))
            raise TypeError(f"{what}: {error}; need {need}") from None
        bound.apply_defaults()
        arguments = {name: CHECKS[name](name, value) for name, value in bound.arguments.items()}
        return arguments | framework_args

    def _choose(self, args: tuple[Any, ...], named: dict[str, Any]) -> Signature:
        known_names = named.keys() & self.names  # binding reports any other name as an error
        fitting = [
            candidate
            for candidate in self.alternatives
            if len(args) + len(named) <= len(candidate.parameters)
            and known_names <= candidate.parameters.keys()
        ]
        plausible = [candidate for candidate in fitting if _is_plausible(candidate, args, named)]
        return (plausible or fitting or self.alternatives[-1:])[0]


def _drop_keyword_only(declared: Signature) -> Signature:
    parameters = declared.parameters.values()
    return Signature([p for p in parameters if p.kind is Parameter.POSITIONAL_OR_KEYWORD])


def _is_plausible(candidate: Signature, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Return whether no argument is missing, and exactly the parameters of type bool get a bool."""
    try:
        candidate.bind(*args, **named)
    except TypeError:
        return False
    return all(
        isinstance(value, bool) == (parameter.annotation is bool)
        for value, parameter in zip(args, candidate.parameters.values(), strict=False)
    )


def declared_signatures(init: Callable[..., None]) -> list[Signature]:
    """Return the signatures of an ``__init__``, without ``self``."""
    signatures = []
    for overload in get_overloads(init) or [init]:
        declared = signature(overload)
        _, *parameters = declared.parameters.values()
        signatures.append(declared.replace(parameters=parameters))
    return signatures


def show_signature(init: Callable[..., None], declared: Signature) -> None:
    """Let help(), and Shift-Tab in Jupyter, show the wrapper ``init`` with the signature ``declared``."""
    init.__signature__ = declared  # type: ignore[attr-defined]


def parse_overloads(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate an ``__init__`` with overloads, so that it gets its arguments by name and checked."""
    signatures = Signatures(declared_signatures(init))
    what = init.__qualname__.split(".")[-2]

    @wraps(init)
    def parse_and_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, **signatures.parse(what, args, kwargs))

    first, *_ = get_overloads(init) or [init]  # D2L 1.0's signature
    show_signature(parse_and_init, signature(first))
    return parse_and_init


def parse_arguments(init: Init) -> Init:
    """Decorate an ``__init__`` with one signature, so that it gets its arguments by name and checked."""
    return wraps(init)(parse_overloads(init))  # type: ignore[return-value]


# Sizes in the long signature of an encoder block, which follow from ``num_hiddens``.
DERIVED_SIZES = "key_size", "query_size", "value_size", "norm_shape", "ffn_num_input"


def attention_arguments(block: dict[str, Any]) -> dict[str, Any]:
    """Return those arguments of an encoder block that its ``MultiHeadAttention`` needs."""
    names = ("key_size", "query_size", "value_size", "num_hiddens", "num_heads", "dropout")
    bias = block["use_bias" if "use_bias" in block else "bias"]
    return {name: block[name] for name in names if name in block} | {"bias": bias}


def ffn_arguments(block: dict[str, Any]) -> dict[str, Any]:
    """Return those arguments of an encoder block that its ``PositionWiseFFN`` needs."""
    names = ("ffn_num_input", "ffn_num_hiddens")
    sizes = {name: block[name] for name in names if name in block}
    return sizes | {"ffn_num_outputs": block["num_hiddens"]}


def bert_block_arguments(config: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a BERT encoder's blocks, without sizes that ``config`` lacks."""
    names = ("num_hiddens", "ffn_num_hiddens", "num_heads", "dropout", *DERIVED_SIZES)
    return {name: config[name] for name in names if name in config} | {"use_bias": True}


def _format_signature(declared: Signature) -> str:
    """Return the signature in Python's syntax, without types."""
    parameters = [p.replace(annotation=Parameter.empty) for p in declared.parameters.values()]
    return str(Signature(parameters))
