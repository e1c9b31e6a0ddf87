"""Helpers to read what training draws, and to call a function just before training begins."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from d2l_compat._shared import classification, optimization, ranking, recurrent
from d2l_compat._shared.boards import Animator


def watch_boards(patch: pytest.MonkeyPatch) -> list[Animator]:
    """Return a list to which each board that the shim makes from now on is appended."""
    boards: list[Animator] = []

    class Watched(Animator):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            boards.append(self)

    for module in classification, optimization, ranking, recurrent:
        patch.setattr(module, "Animator", Watched)
    return boards


class HookedBatches:
    """Batches that call a function before the first iteration over them."""

    def __init__(self, batches: Any, hook: Callable[[], None]) -> None:
        self.batches, self.hook = batches, hook

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        self.hook()
        self.hook = lambda: None
        return iter(self.batches)
