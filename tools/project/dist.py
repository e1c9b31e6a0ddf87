"""``python -m tools.project.dist FOLDER [TAG]``: builds the package there, and has twine check it. The web site has its
:func:`wheel`.

The sdist first, and from it the wheel: so it is whole. Nothing is fetched. With the TAG of a release, this has to be
that of the version, and the changelog has to say when it came.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.weave.launch import PROJECT
from tools.weave.lessons import ROOT

CHANGELOG = ROOT / "CHANGELOG.md"
WHEEL = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}-py3-none-any.whl"


def main(arguments: list[str]) -> int:
    """The exit code."""
    folder = Path(arguments[0])
    for tag in arguments[1:]:
        if fault := fault_of(tag, CHANGELOG.read_text(encoding="utf-8")):
            print(fault, file=sys.stderr)
            return 1
    shutil.rmtree(folder, ignore_errors=True)
    code = _build(folder)
    built = map(str, sorted(folder.glob("d2l_compat-*")))
    return code or _run("twine", "check", "--strict", *built)


def wheel(folder: Path) -> int:
    """Builds the wheel alone, under its name; the exit code."""
    return _build(folder, "--wheel")


def _build(folder: Path, *more: str) -> int:
    options = ["--quiet", "--no-build-isolation", "--no-create-gitignore"]
    places = ["--python", sys.executable, "--out-dir", str(folder), str(ROOT)]
    return _run("uv", "build", *options, *more, *places)


def fault_of(tag: str, changelog: str) -> str:
    """What keeps a release from being made of what is tagged so; or nothing."""
    version = PROJECT["version"]
    if tag != f"v{version}":
        return f"The tag {tag} is not of version {version}, which pyproject.toml says."
    newest = next(iter(re.findall(r"^## (.*)$", changelog, re.MULTILINE)), "nothing")
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest):
        return f"{CHANGELOG.name} begins with {newest}: need {version} (YEAR-MONTH-DAY)."
    return ""


def _run(module: str, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", module, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
