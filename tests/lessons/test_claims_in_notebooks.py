"""Test tests/lessons/claims_in_notebooks.py, which tests claims in the notebooks' kernels.

tests/growth has a lesson with a false claim, which must fail there.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.conftest import TIMEOUT
from tests.lessons.recording import Recording
from tools.run.page_kernel import KernelDiedError, PageKernel
from tools.weave.lessons import ROOT, list_notebooks
from tools.weave.prose import ORIGINAL


def test_each_lessons_claims_run_once_per_framework() -> None:
    options = ["--nbval", "--claims", "--collect-only", "-q", "--nbval-current-env"]
    command = [sys.executable, "-m", "pytest", *options, "notebooks"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    tested = re.findall(r"^(notebooks/.*)::claims$", process.stdout, re.MULTILINE)
    originals = list_notebooks(languages=[ORIGINAL])
    assert sorted(tested) == sorted(str(notebook.path.relative_to(ROOT)) for notebook in originals)


# Code outside the cells, executed in a kernel


@pytest.fixture
def kernel() -> Iterator[PageKernel]:
    kernel = PageKernel("python3", ".", startup_timeout=TIMEOUT)
    yield kernel
    if hasattr(kernel, "km"):
        kernel.stop()


def test_hanging_code_is_interrupted_or_its_kernel_stopped(
    kernel: PageKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(kernel, "cell_timeout", 1)
            with pytest.raises(TimeoutError):
                kernel.execute_extra("while True: pass")

    assert "ZeroDivisionError" in kernel.execute_extra("1 / 0").traceback
    monkeypatch.setattr("tools.run.page_kernel.SECONDS_TO_RESPOND", TIMEOUT)
    hang()
    assert kernel.execute_extra("print(1)").printed == "1\n"
    monkeypatch.setattr("tools.run.page_kernel.SECONDS_TO_RESPOND", 1)
    monkeypatch.setattr(kernel, "interrupt", lambda: None)
    hang()
    assert not kernel.is_alive()
    with pytest.raises(KernelDiedError):
        kernel.execute_extra("2")


# In Python


CELLS = {
    "set": "word, numbers = 'five', [5]",
    "use": "len(word)",
    "remove": "del numbers",
}


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """Return Jupyter's shell without a kernel, which prints nothing and keeps figures open."""
    shell = InteractiveShell()
    monkeypatch.setattr(shell.displayhook, "write_format_data", lambda *_: None)
    monkeypatch.setattr(shell, "showtraceback", lambda *_, **__: None)
    yield shell
    plt.close("all")


def record(shell: InteractiveShell, *sources: str) -> dict[str, dict[str, Any]]:
    recording = Recording(shell, CELLS)
    for source in sources:
        shell.run_cell(source, store_history=False)
    return recording.results


def test_cells_of_another_language_are_ignored(shell: InteractiveShell) -> None:
    cells = record(shell, CELLS["set"], "word, more = '五', 1", CELLS["use"])
    assert cells["use"]["value"] == 1  # len("五"), as executed
    assert cells["use"]["names"]["word"] == "five"
    assert "more" not in cells["use"]["names"]


def test_failed_or_changed_cell_leaves_no_names(shell: InteractiveShell) -> None:
    cells = record(shell, CELLS["use"], "word, numbers = 'six', [6]", CELLS["remove"])
    assert [*cells] == ["remove"]
