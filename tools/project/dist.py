"""``python -m tools.project.dist FOLDER [TAG]``: build the package into a folder, and check it with twine.

The wheel is built from the sdist, which proves that the sdist is complete. Nothing is downloaded. The TAG of a release
must be "v" and the version, and the changelog must begin with this version and a date.
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
    """Build and check the package; return the exit code."""
    folder = Path(arguments[0])
    for tag in arguments[1:]:
        if error := find_release_error(tag, CHANGELOG.read_text(encoding="utf-8")):
            print(error, file=sys.stderr)
            return 1
    shutil.rmtree(folder, ignore_errors=True)
    code = _build(folder)
    packages = map(str, sorted(folder.glob("d2l_compat-*")))
    return code or _run("twine", "check", "--strict", *packages)


def build_wheel(folder: Path) -> int:
    """Build only the wheel, WHEEL, for the web site; return the exit code."""
    return _build(folder, "--wheel")


def _build(folder: Path, *options: str) -> int:
    quiet = ["--quiet", "--no-build-isolation", "--no-create-gitignore"]
    paths = ["--python", sys.executable, "--out-dir", str(folder), str(ROOT)]
    return _run("uv", "build", *quiet, *options, *paths)


def find_release_error(tag: str, changelog: str) -> str:
    """Return why this tag cannot be released, or ""."""
    version = PROJECT["version"]
    if tag != f"v{version}":
        return f"The tag {tag} does not match version {version} in pyproject.toml."
    newest = next(iter(re.findall(r"^## (.*)$", changelog, re.MULTILINE)), "nothing")
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", newest):
        return f"{CHANGELOG.name} begins with {newest}: need {version} (YEAR-MONTH-DAY)."
    return ""


def _run(module: str, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", module, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
