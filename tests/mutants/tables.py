"""List all faults: in the lessons' code (LESSON/faults.toml), in the shim (shim.toml), and in stored notebooks."""

import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

from d2l_compat.frameworks import FRAMEWORKS
from tests.mutants.fault import Fault
from tests.mutants.stored import CHANGES
from tools.weave.lessons import ROOT, Notebook, find_frameworks, list_lessons
from tools.weave.prose import ORIGINAL

FRAMEWORK_BY_FOLDER = {"torch": "pytorch", "java": "djl"}  # if their names differ


def read_rows(table: Path) -> list[dict[str, Any]]:
    return tomllib.loads(table.read_text(encoding="utf-8"))["faults"]


def make_lesson_faults(lesson: Path, row: dict[str, Any]) -> list[Fault]:
    """Return the fault for each framework whose code has the old text exactly once."""
    faults = []
    for framework in find_frameworks(lesson):
        language = "python" if FRAMEWORKS[framework].is_python else "java"
        code = Notebook(lesson, ORIGINAL, framework).code
        old, new = row.get(language, ("", ""))
        if old and code.read_text(encoding="utf-8").count(old) == 1:
            file = code.relative_to(ROOT).as_posix()
            faults.append(Fault(framework, row["name"], file, old, new))
    return faults


def make_shim_fault(row: dict[str, Any]) -> Fault:
    folder = row["file"].partition("/")[0]
    framework = row.get("framework", FRAMEWORK_BY_FOLDER.get(folder, folder))
    return Fault(framework, row["name"], f"d2l_compat/{row['file']}", row["old"], row["new"])


def make_notebook_fault(folder: str, name: str, change: Any) -> Fault:
    lesson = "self-attention-and-positional-encoding"
    return Fault(folder.split("/")[1], name, f"notebooks/{folder}/{lesson}.ipynb", change=change)


# For each row of a faults.toml, the fault in each framework that has it.
LESSON_FAULTS = [
    make_lesson_faults(lesson, row)
    for lesson in list_lessons()
    for row in read_rows(lesson / "faults.toml")
]
OTHER_FAULTS = [
    *(make_shim_fault(row) for row in read_rows(Path(__file__).with_name("shim.toml"))),
    *(make_notebook_fault(*change) for change in CHANGES),
]
ALL_FAULTS = [*chain(*LESSON_FAULTS), *OTHER_FAULTS]
# Each fault of a lesson is tried in only one of its frameworks, in rotation.
FAULTS = [row[number % len(row)] for number, row in enumerate(LESSON_FAULTS)] + OTHER_FAULTS
