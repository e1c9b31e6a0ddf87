"""What the lessons claim, asked of their programs in Java: LESSON/claims.java, cell by cell.

Each of its cells runs after the lesson's cell of the same name, in the same kernel, and throws an error in words
of its own where something is not true. It finds what the lesson's cell has shown in ``shown``, and what all claims
are made of, in claims.java beside this file, defined.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

from tools.run.execute import ANSI
from tools.run.kernels import Workplace, neutral_environment
from tools.weave.lessons import Edition, editions
from tools.weave.programs import Cell, read_code
from tools.weave.prose import ORIGINAL

READS = (
    "lessons/chapter.toml",
    "lessons/*/code.djl.java",
    "lessons/*/claims.java",
    "tests/claims.java",
    "d2l_compat/java/**/*",
)
MADE_OF = Path(__file__).with_name("claims.java")
LIMIT = 600  # seconds for a cell: a guard against hanging
EDITIONS = [
    edition
    for edition in editions(languages=[ORIGINAL], frameworks=["djl"])
    if (edition.folder / "claims.java").exists()
]


def claims_of(edition: Edition) -> dict[str, Cell]:
    return read_code(edition.folder / "claims.java")


class Kernel:
    """Java's, as it is for a notebook."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, source: str) -> tuple[str, str]:
        """What a cell shows, and what is wrong with it, if anything."""
        shown, fault = [], []

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                shown.append(content["text"])
            elif message["msg_type"] in ("display_data", "execute_result"):
                shown.append(content["data"]["text/plain"] + "\n")
            elif message["msg_type"] == "error":
                fault.append(ANSI.sub("", "\n".join(content["traceback"])))

        self._client.execute_interactive(source, output_hook=take, timeout=LIMIT)
        return "".join(shown), "\n".join(fault)


@contextmanager
def java() -> Iterator[Kernel]:
    with neutral_environment():
        workplace = Workplace("java")
        manager = KernelManager(**workplace.settings)
        manager.start_kernel(cwd=workplace.folder)
        client = manager.client()
        try:
            client.start_channels()
            client.wait_for_ready(timeout=LIMIT)
            yield Kernel(client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            workplace.cleanup()


class Run:
    """Of a lesson and its claims, in their order, as far as somebody asks."""

    def __init__(self, edition: Edition, kernel: Kernel) -> None:
        self._faults: dict[str, str] = {}
        self._to_come = self._each(edition, kernel)

    def fault(self, name: str) -> str:
        """What is wrong with this cell, or with a claim about it; nothing where all is well."""
        while name not in self._faults:
            cell, fault = next(self._to_come)
            self._faults[cell] = fault
        return self._faults[name]

    @staticmethod
    def _each(edition: Edition, kernel: Kernel) -> Iterator[tuple[str, str]]:
        claims = claims_of(edition)
        to_define = MADE_OF.read_text(encoding="utf-8")  # once the first cell has all imports
        for name, cell in read_code(edition.code).items():
            shown, fault = kernel.run(cell.source)
            if not fault and to_define:
                _, fault = kernel.run(to_define)
                to_define = ""
            if not fault and name in claims:
                # What JSON writes in quotes, Java reads.
                given = f"String shown = {json.dumps(shown)};\n"
                _, fault = kernel.run(given + claims[name].source)
            yield name, fault


@pytest.fixture(scope="module")
def runs(pytestconfig: pytest.Config) -> Iterator[Callable[[Edition], Run]]:
    if "djl" not in pytestconfig.getoption("frameworks").split():
        pytest.skip("DJL is not installed")
    with ExitStack() as kernels:

        @cache
        def run(edition: Edition) -> Run:
            return Run(edition, kernels.enter_context(java()))

        yield run


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_claims_stand_in_the_order_of_the_lessons_cells(edition: Edition) -> None:
    claims = claims_of(edition)
    assert [name for name in read_code(edition.code) if name in claims] == list(claims)


@pytest.mark.parametrize(
    ("edition", "name"),
    [
        pytest.param(edition, name, id=f"{edition}: {name}")
        for edition in EDITIONS
        for name in read_code(edition.code)
    ],
)
def test_what_the_lesson_claims_is_true(
    runs: Callable[[Edition], Run], edition: Edition, name: str
) -> None:
    fault = runs(edition).fault(name)
    assert not fault, re.sub(r"^java\.lang\.AssertionError: (.*)\n[\s\S]*", r"not true: \1", fault)
