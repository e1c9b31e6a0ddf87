"""``d2l.plt``: matplotlib's ``pyplot``, which still accepts the calls on D2L's pages."""

from types import ModuleType
from typing import Any

from matplotlib import pyplot


class _Pyplot(ModuleType):
    """A proxy for ``pyplot`` that replaces :meth:`stem`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pyplot, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(pyplot, name, value)

    def __dir__(self) -> list[str]:
        return dir(pyplot)

    @staticmethod
    def stem(*args: Any, use_line_collection: bool = True, **kwargs: Any) -> Any:
        """Call ``pyplot.stem`` without ``use_line_collection``, which matplotlib 3.8 removed."""
        return pyplot.stem(*args, **kwargs)


plt = _Pyplot("pyplot", pyplot.__doc__)
