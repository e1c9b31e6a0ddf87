"""The base class of our Flax layers, which parses and checks their arguments before they become fields."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, ClassVar, get_overloads

import flax.linen as nn

from d2l_compat._shared.signatures import Signatures, declared_signatures, show_signature

SELF = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)


class CheckedModule(nn.Module):
    """The base class of layers whose arguments are parsed and checked before they become fields.

    A layer's signatures are the overloads of its ``__init__``, or else its fields in their order. Subclasses
    inherit them. Fields outside the signature that a call uses are None.
    """

    _signatures: ClassVar[Signatures] = Signatures([])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Parse the arguments. Raises TypeError or ValueError for a wrong name, type or range."""
        # Flax's own fields, parent and name, belong to no signature.
        other_fields = {
            field.name: kwargs.pop(field.name, _get_default(field))
            for field in fields(self)
            if field.name not in self._signatures.names
        }
        # Flax copies a layer by passing all its fields as keywords, so a size may be None.
        kwargs = {name: value for name, value in kwargs.items() if value is not None}
        values = self._signatures.parse(type(self).__name__, args, kwargs)
        for name, value in {**values, **other_fields}.items():
            setattr(self, name, value)
        self.__post_init__()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Otherwise Flax would generate an __init__ that takes the fields in their order and misreads
        # D2L 0.17's signature, also for the subclasses that nn.remat makes.
        if "__init__" not in vars(cls):
            cls.__init__ = _wrap_init(super(cls, cls).__init__)  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)
        if get_overloads(cls.__init__):
            cls._signatures = Signatures(declared_signatures(cls.__init__))
        elif not cls._signatures.names:
            cls._signatures = Signatures([_make_field_signature(cls)])
        parameters = [SELF, *cls._signatures.alternatives[0].parameters.values()]
        show_signature(cls.__init__, Signature(parameters))


def _wrap_init(inherited: Callable[..., None]) -> Callable[..., None]:
    """Wrap an inherited ``__init__``, so that the subclass's signature can be stored on the wrapper."""

    @wraps(inherited)
    def call_init(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        inherited(self, *args, **kwargs)

    return call_init


def _make_field_signature(cls: type[nn.Module]) -> Signature:
    return Signature(
        [
            Parameter(
                field.name,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=Parameter.empty if field.default is MISSING else field.default,
            )
            for field in fields(cls)
            if field.name not in ("parent", "name")  # Flax's own
        ]
    )


def _get_default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
