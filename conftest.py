"""What nbval is taught: to compare as tools/agreement.py says, figures included.

Also, its kernels start as the runner's do, without the user's own settings.
"""

from contextlib import ExitStack

import nbformat
import pytest
from nbval.kernel import RunningKernel
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


nbvals_get_message = RunningKernel.get_message


def get_message(kernel: RunningKernel, stream: str, timeout: float | None = None) -> dict:
    message = nbvals_get_message(kernel, stream, timeout)
    if stream == "shell":
        # nbval asks for one; Java's kernel says none when it tells about itself.
        message["content"].setdefault("status", "ok")
    return message


RunningKernel.get_message = get_message
