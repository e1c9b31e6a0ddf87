"""Flax's layers are dataclasses: how the arguments of ours become fields, and are checked."""

from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar

import flax.linen as nn

from d2l_compat._shared import signatures


class Formed(nn.Module):
    """The base class of layers whose arguments have one of the ``_forms``, as in signatures.

    All names in these are fields of the layer; one that the form used has not is None.
    """

    _forms: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises TypeError or ValueError for other arguments, or of another range or kind."""
        parts = [part for form in self._forms for part in form.split(", ")]
        names = {part.partition("=")[0] for part in parts}
        # Flax's own fields, parent and name, belong to no form. And it makes copies from all
        # fields by keyword, so that a size may come as None.
        others = {
            field.name: kwargs.pop(field.name, _default(field))
            for field in fields(self)
            if field.name not in names
        }
        given = {name: value for name, value in kwargs.items() if value is not None}
        values = signatures.read(type(self).__name__, self._forms, args, given)
        for name, value in {**values, **others}.items():
            setattr(self, name, value)
        self.__post_init__()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Left alone, Flax would write subclasses (nn.remat makes one) an __init__ that takes
        # the fields in order, and so the long form for something else.
        if "__init__" not in vars(cls):
            cls.__init__ = super(cls, cls).__init__  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
