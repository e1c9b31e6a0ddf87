"""``python -m tools.changed CHECK [FRAMEWORK ...] -- COMMAND``: run a check, and remember.

With ``--only`` it is run only where something has changed since it passed: for the frameworks
whose files, or whose installed packages, are other than they were. That is decided by content,
never by time stamps. ``{}`` in an argument of the command stands for a framework; such an argument
is given once for each of them.
"""

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path

from d2l_compat.frameworks import FRAMEWORKS
from tools.lessons import ROOT

PASSED = Path(sys.prefix, ".passed")

SHARED = [
    "pyproject.toml",
    "conftest.py",
    "tools/*.py",
    "d2l_compat/*.py",
    "d2l_compat/_shared/**/*.py",
]
FACE = ["d2l_compat/{}/**/*.py", "lessons/*/*.{}.*", "requirements/{}.lock"]
SITE = ["tools/**/*", "docs/**/*", "lessons/**/*", "notebooks/**/*.ipynb", "tests/site/**/*"]
JAVA = ["d2l_compat/java/pom.xml", "d2l_compat/java/src/**/*"]
WHEEL = ["pyproject.toml", "README.md", "LICENSE", "d2l_compat/**/*"]
BINDER = ["environment.yml", "apt.txt", "postBuild", "tools/*.py", "requirements/*.lock"]
ELSEWHERE = ["conftest.py", "tests/conftest.py", "tests/elsewhere/*", "notebooks/en/*/*.ipynb"]
# Toy lessons stand for all others, which are not run there.
GROWTH = [
    "conftest.py",
    "lessons/_live/*",
    "lessons/chapter.toml",
    "docs/**/*",
    "tools/**/*",
    "tests/**/*",
]
# What each check depends on; of a framework, where there is a {}.
INPUTS = {
    "lint": ["*.py", "*.md", "pyproject.toml", "[!.]*/**/*.py", "[!.]*/**/*.md"],
    "code": ["*", "[!.]*/**/*", ".github/**/*"],
    "faces": [*SHARED, *FACE, *JAVA, "tests/*.py", "tests/faces/**/*.py", "lessons/*/claims.py"],
    "notebooks": [*SHARED, *FACE, *JAVA, "notebooks/*/{}/*.ipynb", "tests/sanitize.cfg"],
    "elsewhere": [*WHEEL, *BINDER, *ELSEWHERE],
    "growth": [*WHEEL, *BINDER, *GROWTH],
    "site": [*SITE, "README.md", "pyproject.toml", "d2l_compat/**/*.py", "tests/*.py"],
}
# What tools leave behind.
LEFT_BEHIND = {"__pycache__", ".ipynb_checkpoints", "build", "target"}


def main(arguments: list[str] | None = None) -> int:
    """The command's exit code, or 0 where there is nothing to run."""
    given = sys.argv[1:] if arguments is None else arguments
    end = given.index("--")
    parser = argparse.ArgumentParser(prog="python -m tools.changed", description=__doc__)
    parser.add_argument("--only", action="store_true", help="only what has changed")
    parser.add_argument("check", choices=INPUTS)
    parser.add_argument("framework", nargs="*")
    asked = parser.parse_args(given[:end])
    now = {name: digest(asked.check, name, given[end:]) for name in asked.framework or [""]}
    records = {name: PASSED / f"{asked.check}-{name}".rstrip("-") for name in now}
    stale = [name for name in now if not asked.only or _read(records[name]) != now[name]]
    for name in sorted(now.keys() - stale):
        print(f"{asked.check} {name}".rstrip() + ": unchanged since it passed")
    if not stale:
        return 0
    command = [
        argument.replace("{}", name)
        for argument in given[end + 1 :]
        for name in (stale if "{}" in argument else [""])
    ]
    with suppress(OSError):  # in a checkout that is read-only, nothing is remembered
        for name in stale:
            records[name].unlink(missing_ok=True)
    code = subprocess.run(command, check=False).returncode
    with suppress(OSError):
        if code == 0:
            PASSED.mkdir(exist_ok=True)
            for name in stale:
                records[name].write_text(now[name])
    return code


def digest(check: str, framework: str, command: list[str]) -> str:
    """Of everything that the check of a framework depends on."""
    found = hashlib.sha256()
    for part in (sys.version, *command, *_installed()):
        found.update(part.encode() + b"\0")
    for file in sorted(set(_inputs(check, framework))):
        found.update(str(file.relative_to(ROOT)).encode() + b"\0")
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def _inputs(check: str, framework: str) -> Iterator[Path]:
    for pattern in INPUTS[check]:
        known = FRAMEWORKS.get(framework)
        if "java" in pattern and (known is None or known.is_python):
            continue
        name = known.face if known and pattern.startswith("d2l") else framework
        for file in ROOT.glob(pattern.replace("{}", name)):
            parts = file.relative_to(ROOT).parts
            hidden = any(part.startswith(".") and part != ".github" for part in parts)
            if file.is_file() and not hidden and not LEFT_BEHIND & {*parts}:
                yield file


def _installed() -> list[str]:
    return sorted({f"{found.name}=={found.version}" for found in distributions()})


def _read(record: Path) -> str:
    return record.read_text() if record.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
