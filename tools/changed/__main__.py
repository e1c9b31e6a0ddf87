"""``python -m tools.changed CHECK [PART ...] -- COMMAND``: run a check, and remember what passed.

With ``--only`` it is run only for those parts of which something has changed since they passed. That is
decided by content, never by time stamps. A part is a framework or a file of tests. ``{}`` in an argument
of the command stands for a part; such an argument is given once for each. ``{all}`` are all, with
blanks between them.

What a part depends on is found in what its programs import (tools/changed/imports.py). What they read besides, or
start as a program of its own, is named beside the check: here, or in a file of tests as ``READS``. Without
``READS`` a file of tests depends on everything. ``text of`` programs is what they are without what they
import, ``code of`` notebooks all but their prose, ``markup of`` the site's pages all but the words of their
paragraphs, ``tables of`` a text its tables alone.
"""

import argparse
import ast
import hashlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

from tools.changed.content import digest, installed
from tools.changed.imports import is_anothers, used, used_by_code
from tools.changed.views import VIEWS, code, program
from tools.weave.lessons import ROOT

PASSED = Path(sys.prefix, ".passed")

EVERYTHING = "*", "[!.]*/**/*", ".github/**/*"
CLAIMS = (
    "text of lessons/*/code.*",
    "lessons/*/claims.*",
    "lessons/*/sources.py",
    "tests/claims.java",
)
JAVA = "d2l_compat/java/**/*"
WHEEL = "README.md", "LICENSE", "tools/project/description.py", "d2l_compat/**/*"
BINDER = "environment.yml", "apt.txt", "postBuild", "requirements/*.lock"
# What is read by a framework's part of each check, another framework's own files left out. What is a
# program counts with all that it imports.
READS = {
    "types": ("tools/**/*.py", "d2l_compat/**/*.py"),
    "faces": (
        "conftest.py",
        "tests/conftest.py",
        "tests/faces/**/*",
        "requirements/d2l-0.17.txt",
        JAVA,
        "tables of README.md",
    ),
    "notebooks": (
        "conftest.py",
        "tests/sanitize.cfg",
        "tests/recording.py",
        "tests/faces/*/adapter.py",
        "tools/run/draws.py",
        *CLAIMS,
        "code of notebooks/*/*/*.ipynb",
        JAVA,
    ),
    # The site as it is built.
    "pages": (
        "tools/site/**/*",
        "docs/**/*",
        "lessons/**/*",
        "notebooks/**/*.ipynb",
        *WHEEL,
    ),
    "elsewhere": (
        "conftest.py",
        "tests/conftest.py",
        "tests/elsewhere/*",
        "code of notebooks/*/*/*.ipynb",
        *WHEEL,
        *BINDER,
    ),
    # Of a house for lessons, not of what stands in it: toy lessons take the place of all others.
    "growth": (
        "text of conftest.py",
        "text of tests/*.py",
        "text of tests/compare_frameworks/*",
        "text of tests/elsewhere/*",
        "text of tests/growth/**/*",
        "tests/claims.java",
        "text of tests/mutants/*",
        "text of tests/site/*",
        "text of tools/**/*",
        "docs/**/*",
        "lessons/_live/*",
        "lessons/chapter.toml",
        "text of d2l_compat/frameworks.py",
        *BINDER,
    ),
}
OF_FILES = "code", "site"  # checks whose parts are files of tests
# What tools leave behind.
COMPILED = {".mo", ".pyc"}
LEFT_BEHIND = {"__pycache__", ".ipynb_checkpoints", "build", "target"}


def main(arguments: list[str] | None = None) -> int:
    """The command's exit code, or 0 where there is nothing to run."""
    given = sys.argv[1:] if arguments is None else arguments
    end = given.index("--")
    parser = argparse.ArgumentParser(prog="python -m tools.changed", description=__doc__)
    parser.add_argument("--only", action="store_true", help="only what has changed")
    parser.add_argument("check", choices=[*READS, *OF_FILES])
    parser.add_argument("part", nargs="*")
    asked = parser.parse_args(given[:end])
    now = {part: state(asked.check, part, given[end:]) for part in asked.part or [""]}
    records = {part: PASSED / f"{asked.check}-{part}".strip("-").replace("/", "-") for part in now}
    stale = [part for part in now if not asked.only or _read(records[part]) != now[part]]
    if unchanged := sorted(now.keys() - stale):
        print(f"{asked.check}: unchanged since it passed: {', '.join(unchanged)}".rstrip(": "))
    if not stale:
        return 0
    with suppress(OSError):  # in a checkout that is read-only, nothing is remembered
        for part in stale:
            records[part].unlink(missing_ok=True)
    code = subprocess.run(list(_filled(given[end + 1 :], stale)), check=False).returncode
    with suppress(OSError):
        if code == 0:
            PASSED.mkdir(exist_ok=True)
            for part in stale:
                records[part].write_text(now[part])
    return code


@cache
def _of_view(view: Callable[[Path], bytes], file: Path, stamp: int) -> str:
    """Its digest, found once for all parts, as long as the file stays as it is."""
    return hashlib.sha256(view(file)).hexdigest()


def _filled(command: list[str], parts: list[str]) -> Iterator[str]:
    for argument in command:
        argument = argument.replace("{all}", " ".join(parts))
        yield from dict.fromkeys(argument.replace("{}", part) for part in parts)


def _read(record: Path) -> str:
    return record.read_text() if record.exists() else ""


def state(check: str, part: str, command: list[str]) -> str:
    """A digest of everything that a part of a check depends on."""
    is_file = check in OF_FILES
    framework = "" if is_file else part
    reads = [*(_with_its_conftests(part) if is_file else READS[check]), "pyproject.toml"]
    words, programs, files = [*installed(), *command], set[Path](), set[Path]()
    for found in (found for pattern in reads for found in _found(pattern, framework)):
        if found.view:
            stamp = found.file.stat().st_mtime_ns
            words += [str(found.file.relative_to(ROOT)), _of_view(found.view, found.file, stamp)]
            if found.view is code:
                files |= used_by_code(program(found.file), framework, ROOT)
        else:
            (programs if found.file.suffix == ".py" else files).add(found.file)
    return digest(words, files | used(programs, framework, ROOT), ROOT)


@dataclass(frozen=True)
class Found:
    file: Path
    view: Callable[[Path], bytes] | None = None  # what of it is read, if not all


def _found(pattern: str, framework: str) -> Iterator[Found]:
    view, _, glob = pattern.rpartition(" of ")
    ignored = LEFT_BEHIND - {*PurePath(glob).parts}
    for file in ROOT.glob(glob):
        place = file.relative_to(ROOT)
        hidden = any(part.startswith(".") and part != ".github" for part in place.parts)
        if file.is_file() and not (
            hidden
            or file.suffix in COMPILED
            or ignored & {*place.parts}
            or is_anothers(place, framework)
        ):
            yield Found(file, VIEWS[view] if view else None)


def _with_its_conftests(test: str) -> Iterator[str]:
    """What a file of tests reads, as patterns: itself, and what it says."""
    yield test
    yield from (str(folder / "conftest.py") for folder in PurePath(test).parents)
    with suppress(SyntaxError, ValueError, OSError):
        for node in ast.parse((ROOT / test).read_text(encoding="utf-8")).body:
            match node:
                case ast.Assign(targets=[ast.Name(id="READS")]):
                    yield from ast.literal_eval(node.value)
                    return
    yield from EVERYTHING


if __name__ == "__main__":
    sys.exit(main())
