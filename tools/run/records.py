"""What pages showed when they were last executed: as long as nothing is other than it was, they need
not be executed again.

A record is kept in build/executed, which a fresh clone lacks: each machine executes for itself. It holds
what the cells showed, so that a notebook that was edited or lost is made from it anew.
"""

import json
import os
import shutil
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from nbformat import NotebookNode, from_dict

from tools.changed.content import digest, installed
from tools.changed.imports import used, used_by_code
from tools.run import execute
from tools.run.sharing import Identity, Turn
from tools.weave.lessons import ROOT, Page

# What a page in Java imports is built from these sources.
JAVA = ROOT / "d2l_compat" / "java"

Shown = dict[Identity, list[NotebookNode]]


class Record:
    def __init__(self, page: Page, turns: list[Turn], kernel_name: str) -> None:
        """Of the page that is executed so, as all is now."""
        edition = page.editions[0]
        folder = edition.folder.parent.parent / "build" / "executed" / edition.framework
        self._file = folder / f"{edition.folder.name}.json"
        cells = [turn.identity for turn in turns]
        files = {*_executing()}
        if edition.code.suffix == ".java":
            sources = (JAVA / "src" / "main").rglob("*")
            files |= {JAVA / "pom.xml", *(source for source in sources if source.is_file())}
        else:
            code = "\n".join(turn.source for turn in turns)
            files |= used_by_code(code, edition.framework)
        words = [*installed(), _kernel(kernel_name), *map(str, chain.from_iterable(cells))]
        self._state = digest(words, files, ROOT)

    def read(self) -> Shown | None:
        """None where there is none, or what it depended on is another."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            if kept["state"] == self._state:
                return {
                    Identity(*cell): [from_dict(output) for output in outputs]
                    for cell, outputs in kept["shown"]
                }
        return None

    def write(self, shown: Shown) -> None:
        kept = {"state": self._state, "shown": [*shown.items()]}
        with suppress(OSError):  # a checkout that is read-only does without
            write_whole(self._file, json.dumps(kept))


@cache
def _executing() -> frozenset[Path]:
    """What executes every page."""
    return frozenset(used([Path(execute.__file__)], root=ROOT))


@cache
def _kernel(name: str) -> str:
    """What starts it, and the program that this is on this machine."""
    try:
        spec = KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        return ""
    program = os.path.realpath(shutil.which(spec.argv[0]) or spec.argv[0])
    return json.dumps([spec.to_dict(), spec.resource_dir, program])


def write_whole(path: Path, text: str) -> None:
    """The new text or, after any failure, the old one: never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
