"""Record a lesson's variables and figures in the kernel of its notebook (tests/lessons/claims_in_notebooks.py).

This code runs there before the first cell. So it imports nothing that a cell might import.
"""

import sys
from typing import Any


class Recording:
    """Record the cells with these sources, by name; ignore other code between them."""

    def __init__(self, shell: Any, sources: dict[str, str]) -> None:
        self.results: dict[str, dict[str, Any]] = {}
        self._remaining = list(sources.items())
        self._variables = shell.user_ns
        self._before = dict(shell.user_ns)
        self._names = dict(shell.user_ns)
        self._figures: list[Any] = []
        self._shown: list[Any] = []  # before the cell's end
        self._pyplot: Any = None
        shell.events.register("pre_run_cell", self._start_cell)
        # This runs before Jupyter's own function, which shows all figures and closes them.
        shell.events.register("post_execute", self._record_figures)
        shell.events.register("post_run_cell", self._record_cell)

    def _start_cell(self, _info: Any) -> None:
        self._before = dict(self._variables)
        self._shown = []
        if self._pyplot is None and (pyplot := sys.modules.get("matplotlib.pyplot")):
            self._pyplot = pyplot
            self._record_shown_figures(pyplot.show)

    def _record_shown_figures(self, show: Any) -> None:
        """Record the figures that a cell shows before its end, since Jupyter then closes them."""

        def record_and_show(*args: Any, **kwargs: Any) -> Any:
            self._shown += _list_figures(self._pyplot)
            return show(*args, **kwargs)

        self._pyplot.show = record_and_show

    def _record_figures(self) -> None:
        if pyplot := sys.modules.get("matplotlib.pyplot"):
            self._figures = [*dict.fromkeys([*self._shown, *_list_figures(pyplot)])]

    def _record_cell(self, result: Any) -> None:
        source = result.info.raw_cell
        # Two cells may have the same source.
        cell = next((cell for cell in self._remaining if cell[1] == source), None)
        if cell is None or not result.success:
            return
        self._remaining.remove(cell)
        self._names = {
            name: value
            for name, value in {**self._names, **self._find_changes()}.items()
            if name in self._variables
        }
        self.results[cell[0]] = {
            "source": source,
            "value": result.result,
            "figures": self._figures,
            "names": self._names,
        }

    def _find_changes(self) -> dict[str, Any]:
        """Return the variables that the cell has set, not those set by a cell in another language before it."""
        nothing = object()
        return {
            name: value
            for name, value in self._variables.items()
            if self._before.get(name, nothing) is not value
        }


def _list_figures(pyplot: Any) -> list[Any]:
    """Return the figures that are open."""
    return [pyplot.figure(number) for number in pyplot.get_fignums()]
