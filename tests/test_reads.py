"""What the checks say that they read (tools/changed) is there, and nothing is left out."""

import ast
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

import pytest

from d2l_compat.frameworks import FACES
from tools.changed import __main__ as changed
from tools.changed.__main__ import READS, _found
from tools.changed.imports import is_anothers, used
from tools.changed.views import VIEWS
from tools.weave.lessons import ROOT

SAYING = [
    file for file in ROOT.glob("tests/**/test_*.py") if "\nREADS = " in file.read_text("utf-8")
]


@pytest.mark.parametrize("file", SAYING, ids=lambda file: file.stem)
def test_what_a_file_of_tests_reads_is_there(file: Path) -> None:
    said = [
        node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.Assign)
    ]
    (reads,) = (node.value for node in said if ast.unparse(node.targets[0]) == "READS")
    for pattern in ast.literal_eval(reads):
        view, _, glob = pattern.rpartition(" of ")
        assert view in ("", *VIEWS)
        assert glob.startswith("build/") or any(ROOT.glob(glob)), pattern


@pytest.mark.parametrize("framework", FACES)
def test_a_faces_check_depends_on_no_other_face_and_not_on_the_site(framework: str) -> None:
    """It would on all of them, if one of its programs imported a name that is not known."""
    found = [each.file for pattern in READS["faces"] for each in _found(pattern, framework)]
    programs = [file for file in found if file.suffix == ".py"]
    files = [file.relative_to(ROOT) for file in used(programs, framework, ROOT)]
    faces = [file for file in files if file.parts[:1] == ("d2l_compat",) or "faces" in file.parts]
    assert not [file for file in faces if is_anothers(file, framework)]
    assert not [file for file in files if "site" in file.parts]


# What is left out: of all that is committed, every file counts, save those that are named here

NOWHERE = ".*", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE-TEXT", "Makefile"
FOR_BINDER = "apt.txt", "environment.yml", "postBuild"
OF_BINDER = *FOR_BINDER, "requirements/*"
LOOKS = tuple(f"tools/site/{name}/*" for name in ("deck", "locale", "static", "templates"))
OTHER_TESTS = "tests/test_*.py", "tests/claims.java", "tests/site/*", "tests/growth/*"
TOOLS = "tools/__main__.py", "tools/bench/*", "tools/book/*", "tools/changed/*", "tools/project/*"
NOT_EXECUTING = (
    *TOOLS,
    "tools/compare/languages.py",
    *(f"tools/run/{name}.py" for name in ("devices", "execute", "languages", "records", "runner")),
)
BESIDE_CLAIMS = (
    *("lessons/_live/*", "lessons/*/live/*", "lessons/*.toml", "lessons/*.md", "lessons/*.svg"),
    *("lessons/*/faults.py", "lessons/*.java"),
)
NOT_IMPORTED = "d2l_compat/py.typed", "d2l_compat/_shared/fonts/OFL.txt"
NOT_READ = {
    "types": (
        *(
            *NOWHERE,
            *OF_BINDER,
            *LOOKS,
            "tools/site/index.html",
            "tools/site/scorer.js",
            "README.md",
            "LICENSE",
            "conftest.py",
            "tests/*",
        ),
        *("docs/*", "lessons/*", "notebooks/*", "d2l_compat/java/*", *NOT_IMPORTED),
    ),
    "faces": (
        *(*NOWHERE, *FOR_BINDER, *OTHER_TESTS, *NOT_EXECUTING, "LICENSE", "docs/*"),
        "requirements/*.lock",
        *("lessons/*", "notebooks/*", "tools/site/*"),
        *("tests/compare_frameworks/__main__.py", "tests/elsewhere/*", "tests/mutants/*"),
        *("tests/live.py", "tests/recording.py", "tests/sanitize.cfg"),
        *(f"tools/weave/{name}.py" for name in ("credit", "launch", "notebooks")),
        *("d2l_compat/java/*", "d2l_compat/kernel.py", *NOT_IMPORTED),
    ),
    "notebooks": (
        *(*NOWHERE, *OF_BINDER, *OTHER_TESTS, *NOT_EXECUTING, "README.md", "LICENSE", "docs/*"),
        *(
            *BESIDE_CLAIMS,
            "lessons/ruff.toml",
            "notebooks/*/djl/*",
            "tools/run/java.py",
            "tools/site/*",
        ),
        *("tests/elsewhere/*", "tests/mutants/*", "tests/compare_frameworks/*"),
        *("tests/faces/*test_*.py", "tests/faces/*exports.txt", "tests/faces/*oracle.py"),
        *(f"tests/faces/*/{name}.py" for name in ("language", "models", "recurrent")),
        *(f"tests/faces/{name}.py" for name in ("answers", "calls", "conftest", "stand_ins")),
        *("tests/conftest.py", "tests/live.py", "tools/archives.py"),
        *(f"tools/weave/{name}.py" for name in ("credit", "launch", "notebooks")),
        *("d2l_compat/java/*", "d2l_compat/kernel.py", *NOT_IMPORTED),
    ),
    "pages": (
        *(*NOWHERE, *OF_BINDER, *OTHER_TESTS, "conftest.py", "tools/run/*"),
        # Of the tools for the project, the package is made by two.
        *(each for each in TOOLS if each != "tools/project/*"),
        *("tools/project/[!_d]*", "d2l_compat/java/.gitignore"),
        *("tools/archives.py", "tools/compare/agreement.py", "tools/compare/languages.py"),
        *("tests/elsewhere/*", "tests/faces/*/*", "tests/faces/test_*.py", "tests/sanitize.cfg"),
        *(
            f"tests/faces/{name}.py"
            for name in ("adapter", "answers", "boards", "calls", "conftest")
        ),
        *(f"tests/faces/{name}.py" for name in ("oracle", "stand_ins", "translator")),
        *(f"tests/mutants/{name}.py" for name in ("__main__", "faults_in_*", "trial")),
        *("tests/compare_frameworks/*", "tests/conftest.py", "tests/frameworks.py"),
        *("tests/claims_in_notebooks.py", "tests/recording.py"),
    ),
    "elsewhere": (
        *(*NOWHERE, *OTHER_TESTS, "docs/*", "lessons/*", "notebooks/*/djl/*"),
        # Of the tools for the project, the wheel is made by one.
        *(each for each in NOT_EXECUTING if each != "tools/project/*"),
        *("tools/project/[!_d]*", "tools/project/dist.py"),
        *(
            "requirements/djl.lock",
            "requirements/*.txt",
            "tests/faces/*",
            "tests/mutants/*",
            "tests/sanitize.cfg",
            "tools/archives.py",
            "tools/run/draws.py",
        ),
        *(
            "tests/compare_frameworks/*",
            "tests/live.py",
            "tests/recording.py",
            "tests/reference.py",
        ),
        *("tools/site/*", "tools/weave/credit.py", "tools/weave/notebooks.py"),
        "d2l_compat/java/*",
    ),
    "growth": (
        *(
            *NOWHERE,
            "requirements/*.txt",
            "README.md",
            "LICENSE",
            "lessons/ruff.toml",
            "lessons/[!_]*/*",
            "notebooks/*",
        ),
        *("d2l_compat/[!f]*", "tests/faces/*", "tests/sanitize.cfg"),
    ),
}
BY_FRAMEWORK = "faces", "notebooks", "elsewhere"
# Of a file of tests that does not say what it reads, as this one.
NOT_READ["code"] = ".ci/*", "*.gitignore"


def committed() -> set[str]:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in files.split("\0") if name and (ROOT / name).is_file()}


def read_by(check: str, parts: Iterable[str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    read: set[str] = set()

    def digest(words: Iterable[str], files: Iterable[Path], root: Path) -> str:
        read.update(words)  # also the places of files of which a view is read
        read.update(str(file.relative_to(root)) for file in files)
        return ""

    monkeypatch.setattr(changed, "digest", digest)
    for part in parts:
        changed.state(check, part, [])
    return read & committed()


@pytest.mark.parametrize("check", [*READS, "code"])
def test_every_file_concerns_a_check_or_is_named_as_one_that_does_not(
    check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"code": ["tests/test_reads.py"], **dict.fromkeys(BY_FRAMEWORK, FACES)}
    read = read_by(check, parts.get(check, [""]), monkeypatch)

    def is_forgiven(file: str) -> bool:
        return any(fnmatchcase(file, pattern) for pattern in NOT_READ[check])

    assert [file for file in sorted(committed() - read) if not is_forgiven(file)] == []
    assert [file for file in sorted(read) if is_forgiven(file)] == []


@pytest.mark.parametrize("check", BY_FRAMEWORK)
def test_all_of_java_concerns_djl(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {file for file in committed() if fnmatchcase(file, "d2l_compat/java/[!.]*")}
    assert sources - read_by(check, ["djl"], monkeypatch) == set()


def test_every_file_of_tests_is_given_to_a_check() -> None:
    targets = [f"test-{check}" for check in ("code", "faces", "site", "elsewhere", "growth")]
    asked = ["make", "-n", "--no-print-directory", *targets, "FRAMEWORKS=pytorch"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = said.replace("\\\n", " ").splitlines()
    given = {word for line in lines if "-m pytest" in line for word in line.split() if "/" in word}
    tests = [
        file
        for file in committed()
        if fnmatchcase(file, "tests/*/test_*.py")
        or fnmatchcase(file, "tests/test_*.py")
        or fnmatchcase(file, "lessons/*/live/claims.py")
    ]
    for file in map(PurePath, tests):
        places = [file, *file.parents[:-1]]
        assert any(place.match(word) for place in places for word in given), file


def test_style_is_checked_whatever_has_changed() -> None:
    """So that none of its files can be left out."""
    asked = ["make", "-n", "--no-print-directory", "lint", "CHANGED=1"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert ".venv/bin/ruff check && .venv/bin/ruff format --check\n" in said
