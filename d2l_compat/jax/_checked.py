"""Flax's layers are dataclasses: how the arguments of ours become fields, and are checked."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, ClassVar, get_overloads

import flax.linen as nn

from d2l_compat._shared.signatures import Signatures, declared_signatures


class CheckedModule(nn.Module):
    """The base class of layers whose arguments are read and checked before they become fields.

    A layer's signatures are the overloads of its ``__init__``, or else its fields in their order;
    classes that are made of a layer keep those. A field that the signature used has not is None.
    """

    _signatures: ClassVar[Signatures] = Signatures([])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises TypeError or ValueError for arguments of a wrong name, range or kind."""
        # Flax's own fields, parent and name, belong to no signature. And it makes copies from all
        # fields by keyword, so that a size may come as None.
        others = {
            field.name: kwargs.pop(field.name, _default(field))
            for field in fields(self)
            if field.name not in self._signatures.names
        }
        given = {name: value for name, value in kwargs.items() if value is not None}
        values = self._signatures.parse(type(self).__name__, args, given)
        for name, value in {**values, **others}.items():
            setattr(self, name, value)
        self.__post_init__()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Left alone, Flax would write subclasses (nn.remat makes one) an __init__ that takes
        # the fields in order, and so the long form for something else.
        if "__init__" not in vars(cls):
            cls.__init__ = super(cls, cls).__init__  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)
        if get_overloads(cls.__init__):
            cls._signatures = Signatures(declared_signatures(cls.__init__))
        elif not cls._signatures.names:
            cls._signatures = Signatures([_of_fields(cls)])
        cls.__init__ = _showing(cls._signatures.forms[0], cls.__init__)  # type: ignore[method-assign]


def _showing(form: Signature, init: Callable[..., None]) -> Callable[..., None]:
    """Make an ``__init__`` whose signature, which help() and Shift-Tab in Jupyter show, is this one."""

    @wraps(init)
    def show_and_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)

    of_self = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    show_and_init.__signature__ = Signature([of_self, *form.parameters.values()])  # type: ignore[attr-defined]
    return show_and_init


def _of_fields(cls: type[nn.Module]) -> Signature:
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


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
