"""All faults: in the lessons' code (LESSON/faults.toml), in the shim (shim.toml), and in what notebooks store."""

import tomllib
from itertools import chain, count
from pathlib import Path
from typing import Any

from d2l_compat.frameworks import FRAMEWORKS
from tests.mutants.fault import Fault
from tests.mutants.stored import CHANGES
from tools.weave.lessons import ROOT, Edition, frameworks_of, lessons
from tools.weave.prose import ORIGINAL

FOLDERS = {"torch": "pytorch", "java": "djl"}  # whose name is not the framework's


def rows_of(table: Path) -> list[dict[str, Any]]:
    return tomllib.loads(table.read_text(encoding="utf-8"))["faults"]


def in_code(lesson: Path, row: dict[str, Any]) -> list[Fault]:
    """The fault in each framework whose code has what it changes, once."""
    found = []
    for framework in frameworks_of(lesson):
        language = "python" if FRAMEWORKS[framework].is_python else "java"
        code = Edition(lesson, ORIGINAL, framework).code
        old, new = row.get(language, ("", ""))
        if old and code.read_text(encoding="utf-8").count(old) == 1:
            file = code.relative_to(ROOT).as_posix()
            found.append(Fault(framework, row["name"], file, old, new))
    return found


def in_the_shim(row: dict[str, Any]) -> Fault:
    folder = row["file"].partition("/")[0]
    framework = row.get("framework", FOLDERS.get(folder, folder))
    return Fault(framework, row["name"], f"d2l_compat/{row['file']}", row["old"], row["new"])


def in_notebook(folder: str, name: str, change: Any) -> Fault:
    lesson = "self-attention-and-positional-encoding"
    return Fault(folder.split("/")[1], name, f"notebooks/{folder}/{lesson}.ipynb", change=change)


ROWS = [in_code(lesson, row) for lesson in lessons() for row in rows_of(lesson / "faults.toml")]
OTHERS = [
    *(in_the_shim(row) for row in rows_of(Path(__file__).with_name("shim.toml"))),
    *(in_notebook(*change) for change in CHANGES),
]
EVERYWHERE = [*chain(*ROWS), *OTHERS]
# Each fault of a lesson in one of its frameworks, which take turns.
FAULTS = [*(row[turn % len(row)] for turn, row in zip(count(), ROWS)), *OTHERS]
