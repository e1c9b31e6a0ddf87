"""``d2l.plt``: matplotlib's ``pyplot``, which takes what D2L's pages give it as before."""

from types import ModuleType
from typing import Any

from matplotlib import pyplot


class _Pyplot(ModuleType):
    """All is ``pyplot``'s own, but :meth:`stem`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pyplot, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(pyplot, name, value)

    def __dir__(self) -> list[str]:
        return dir(pyplot)

    @staticmethod
    def stem(*args: Any, use_line_collection: bool = True, **kwargs: Any) -> Any:
        """``pyplot.stem``. Lines have been a collection since matplotlib 3.8, which no longer asks."""
        return pyplot.stem(*args, **kwargs)


plt = _Pyplot("pyplot", pyplot.__doc__)
