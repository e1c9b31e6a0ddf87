"""The property ``attention_weights`` of layers, which is computed on access and can be assigned.

A layer keeps in ``_last`` what its last call left for the property, or what was assigned since. No framework is
imported here.
"""

from collections.abc import Callable
from typing import Any


class Assigned:
    """A value that replaces the attention weights of a layer's last call."""

    def __init__(self, value: Any) -> None:
        self.value = value


class assignable(property):  # noqa: N801, since it is used as `property` is
    """A property that ``compute`` computes, unless another value was assigned after the layer's last call."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        def read(layer: Any) -> Any:
            last = getattr(layer, "_last", None)
            return last.value if isinstance(last, Assigned) else compute(layer)

        super().__init__(read, _assign, doc=compute.__doc__)


def _assign(layer: Any, value: Any) -> None:
    layer._last = Assigned(value)


def select_assigned(last: Any) -> Assigned | None:
    """Return what a copy of a layer keeps of ``_last``: an assigned value, but nothing of its last call."""
    return last if isinstance(last, Assigned) else None


class AssignableWeights:
    """Mixin for frameworks in which an array would become a parameter or a buffer when it is assigned."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "attention_weights":
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)
