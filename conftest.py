"""What nbval is taught: to compare as tools/agreement.py says, figures included.

Also, its kernels start as the runner's do, without the user's own settings.
"""

from contextlib import ExitStack

import nbformat
import pytest
from nbval.plugin import IPyNbCell

from tools.agreement import FIGURE, difference
from tools.execute import neutral_environment


def pytest_configure(config: pytest.Config) -> None:
    if config.option.nbval:
        environment = ExitStack()
        environment.enter_context(neutral_environment())
        config.add_cleanup(environment.close)


def settle(fresh: str, stored: str) -> tuple[str, str]:
    """The two texts, made one where they agree, and speaking where they are figures."""
    fault = difference(stored, fresh)
    if fault is None:
        return stored, stored
    if FIGURE.fullmatch(fresh):
        return f"the fresh figure differs: {fault}", "the stored figure"
    return fresh, stored


def settle_outputs(fresh: list[dict], stored: list[dict]) -> tuple[list[dict], list[dict]]:
    if len(fresh) != len(stored):
        return fresh, stored
    settled = [], []
    for pair in zip(fresh, stored, strict=True):
        new, old = (dict(output) for output in pair)
        if isinstance(new.get("text"), str) and isinstance(old.get("text"), str):
            new["text"], old["text"] = settle(new["text"], old["text"])
        new["data"], old["data"] = dict(new.get("data", {})), dict(old.get("data", {}))
        for mime in new["data"].keys() & old["data"].keys():
            pair = new["data"][mime], old["data"][mime]
            if all(isinstance(text, str) for text in pair):
                new["data"][mime], old["data"][mime] = settle(*pair)
        for outputs, output in zip(settled, (new, old), strict=True):
            outputs.append(nbformat.from_dict(output))
    return settled


nbvals_own = IPyNbCell.compare_outputs


def compare_outputs(
    cell: IPyNbCell, fresh: list, stored: list, skip_compare: object = None
) -> bool:
    return nbvals_own(cell, *settle_outputs(fresh, stored), skip_compare)


IPyNbCell.compare_outputs = compare_outputs
