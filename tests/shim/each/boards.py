"""What training draws, read as numbers, and a moment before it begins."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from d2l_compat._shared import classification, optimization, ranking, recurrent
from d2l_compat._shared.boards import Animator


def watch_boards(patch: pytest.MonkeyPatch) -> list[Animator]:
    """Every board that the shim makes from now on, in order."""
    made: list[Animator] = []

    class Watched(Animator):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.append(self)

    for room in classification, optimization, ranking, recurrent:
        patch.setattr(room, "Animator", Watched)
    return made


class Begun:
    """Batches; before they are given for the first time, something is done."""

    def __init__(self, batches: Any, first: Callable[[], None]) -> None:
        self.batches, self.first = batches, first

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        self.first()
        self.first = lambda: None
        return iter(self.batches)
