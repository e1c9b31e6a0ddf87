"""Faults in the lessons: those that each one has in its ``faults.py``."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.mutants.fault import Fault
from tools.weave.lessons import ROOT, Edition, lessons
from tools.weave.prose import ORIGINAL


def faults_in(lesson: Path) -> Iterator[Fault]:
    """In its code, and in what its notebooks store."""
    table = import_module(f"lessons.{lesson.name}.faults")
    for framework, rows in table.IN_CODE.items():
        file = Edition(lesson, ORIGINAL, framework).code.relative_to(ROOT).as_posix()
        for name, old, new in rows:
            yield Fault(framework, name, file, old, new)
    for folder, rows in table.IN_NOTEBOOKS.items():
        file = f"notebooks/{folder}/{lesson.name}.ipynb"
        for name, change in rows:
            yield Fault(folder.split("/")[1], name, file, change=change)


FAULTS = [fault for lesson in lessons() for fault in faults_in(lesson)]
