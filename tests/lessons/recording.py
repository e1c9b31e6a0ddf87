"""Keeps what a lesson's cells leave behind in the kernel of their notebook (tests/lessons/claims_in_notebooks.py).

It is executed there as a text before the first cell, and so imports nothing that a cell might.
"""

import sys
from typing import Any


class Recording:
    """Of the cells with these sources, by their names; whatever else is executed between them is left out."""

    def __init__(self, shell: Any, sources: dict[str, str]) -> None:
        self.left_behind: dict[str, dict[str, Any]] = {}
        self._to_come = list(sources.items())
        self._variables = shell.user_ns
        self._before = self._names = dict(shell.user_ns)
        self._figures: list[Any] = []
        shell.events.register("pre_run_cell", self._begin)
        # Ours comes before Jupyter's own, which shows all figures and closes them.
        shell.events.register("post_execute", self._keep_figures)
        shell.events.register("post_run_cell", self._keep)

    def _begin(self, _info: Any) -> None:
        self._before = dict(self._variables)

    def _keep_figures(self) -> None:
        if pyplot := sys.modules.get("matplotlib.pyplot"):
            self._figures = [pyplot.figure(number) for number in pyplot.get_fignums()]

    def _keep(self, result: Any) -> None:
        source = result.info.raw_cell
        # Two cells may have the same source.
        cell = next((cell for cell in self._to_come if cell[1] == source), None)
        if cell is None or not result.success:
            return
        self._to_come.remove(cell)
        self._names = {
            name: value
            for name, value in {**self._names, **self._changed()}.items()
            if name in self._variables
        }
        self.left_behind[cell[0]] = {
            "source": source,
            "value": result.result,
            "figures": self._figures,
            "names": self._names,
        }

    def _changed(self) -> dict[str, Any]:
        """What the cell has set: between two of ours the same may have been set in another language."""
        nothing = object()
        return {
            name: value
            for name, value in self._variables.items()
            if self._before.get(name, nothing) is not value
        }
