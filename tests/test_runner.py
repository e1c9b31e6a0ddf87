"""``python -m tools``: what is written and said, and that no fault harms what was there."""

import asyncio
import errno
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from nbclient import NotebookClient

from d2l_compat.frameworks import FACES, FRAMEWORKS
from tests.conftest import PATIENCE, list_lessons, still_running
from tools.__main__ import main
from tools.run import fingerprints
from tools.run.fingerprints import Fingerprint, Fingerprints, fingerprint
from tools.run.kernels import neutral_environment
from tools.run.sharing import Cell
from tools.weave.lessons import ROOT, Edition
from tools.weave.programs import LANGUAGES

TEXT = "# Title\n\n- 0.123\n  - more\n\n<<one>>\n\n<<two>>\n"
CODE = "# %% one\nx = 2 / 3\nif x > 0.456:\n    print(x)\n\n# %% two\n[x, 7]\n"
OLD = b"the old notebook"


class Project:
    """A project of one tiny lesson."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lesson = root / "lessons" / "tiny"

    def write(self, text: str = TEXT, **codes: str) -> None:
        self.lesson.mkdir(parents=True, exist_ok=True)
        list_lessons(self.root, "tiny")
        (self.lesson / "text.en.md").write_text(text)
        for framework, code in (codes or {"a": CODE}).items():
            (self.lesson / f"code.{framework}.py").write_text(code)

    def notebook(self, framework: str = "a", language: str = "en") -> Path:
        return self.root / "notebooks" / language / framework / "tiny.ipynb"

    def store(self, notebook: bytes = OLD, framework: str = "a") -> None:
        self.notebook(framework).parent.mkdir(parents=True, exist_ok=True)
        self.notebook(framework).write_bytes(notebook)

    @property
    def committed(self) -> Path:
        """The fingerprints that travel with the notebooks."""
        return self.root / "notebooks" / "fingerprints.json"

    @property
    def executed_here(self) -> Path:
        return self.root / "build" / "executed.json"

    def clone(self) -> None:
        """Forget what this machine has executed, as a fresh clone does not know it."""
        self.executed_here.unlink()

    def prove(self) -> None:
        """Make the lesson the one that is executed once on each machine."""
        chapter = self.root / "lessons" / "chapter.toml"
        chapter.write_text(chapter.read_text() + 'proof = "tiny"\n')

    def files(self) -> set[Path]:
        """All but the chapter's own."""
        found = {path for path in self.root.rglob("*") if not path.is_dir()}
        return found - {self.root / "lessons" / "chapter.toml"}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tools", "--root", str(self.root), *arguments]


def outcomes(said: str) -> list[str]:
    """The last column of the table, and what is out of date."""
    rows = said.partition("notebook ")[2].splitlines()[1:]
    listed = [" ".join(row.split()[2:]).lstrip("0123456789. ") for row in rows if ".ipynb" in row]
    return [*listed, *re.findall("Out of date", said)]


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process; gives its exit code and what it printed."""

    def run_main(project: Project, *arguments: str) -> tuple[int, str]:
        code = main(["--root", str(project.root), *arguments])
        return code, capsys.readouterr().out

    return run_main


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.write()
    return made


@pytest.fixture(scope="module")
def executed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Project(tmp_path_factory.mktemp("executed"))
    made.write()
    assert main(["--root", str(made.root)]) == 0
    return made.root


@pytest.fixture
def executed(executed_once: Path, tmp_path: Path) -> Project:
    """A project of one's own, executed already."""
    return Project(shutil.copytree(executed_once, tmp_path / "project"))


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_orphans() -> Iterator[None]:
    """No kernel outlives the command, whatever happened to it."""
    before = psutil.Process().children(recursive=True)
    yield
    left = set(psutil.Process().children(recursive=True)) - set(before)
    alive = still_running(left, seconds=1)
    for process in alive:
        process.kill()
    assert not alive


# What is written


def test_a_notebook_is_written_with_its_outputs(run, project):
    code, said = run(project)
    assert code == 0
    header, row = (line.split() for line in said.splitlines()[2:4])
    assert header == ["notebook", "cells", "seconds", "result"]
    assert row[:2] + row[3:] == [str(project.notebook()), "2", "written"]
    assert 0 < float(row[2]) < PATIENCE
    notebook = nbformat.read(project.notebook(), as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.language_info == {"name": "python"}  # no version: that may change
    one, two = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert [output.text for output in one.outputs] == [f"{2 / 3}\n"]
    assert [output.data for output in two.outputs] == [{"text/plain": f"[{2 / 3}, 7]"}]
    assert [one.execution_count, two.execution_count] == [1, 2]
    written = {project.notebook(), project.committed, project.executed_here}
    assert project.files() == {*project.lesson.iterdir()} | written


def test_executing_again_leaves_the_same_bytes(run, executed):
    notebook = executed.notebook()
    stored, written = notebook.read_bytes(), notebook.stat().st_mtime_ns
    known = executed.committed.read_bytes()
    code, said = run(executed, "--always")
    assert (code, said.count("executed"), outcomes(said)) == (0, 1, ["same results"])
    assert (notebook.read_bytes(), notebook.stat().st_mtime_ns) == (stored, written)
    assert executed.committed.read_bytes() == known


def test_executing_anew_gives_the_same_bytes(run, executed):
    notebook = executed.notebook()
    stored = notebook.read_bytes()
    notebook.unlink()
    assert outcomes(run(executed)[1]) == ["written"]
    assert notebook.read_bytes() == stored


@pytest.mark.parametrize(
    ("value", "outcome"), [(0.666666, "same results"), (0.65, "written"), (-2 / 3, "written")]
)
def test_outputs_are_rewritten_only_where_they_disagree(run, executed, value, outcome):
    fresh = executed.notebook().read_bytes()
    stored = fresh.replace(str(2 / 3).encode(), str(value).encode())
    executed.store(stored)
    said = run(executed, "--always")[1]
    assert outcomes(said) == [outcome]
    assert executed.notebook().read_bytes() == (stored if outcome == "same results" else fresh)
    assert (f"a/tiny, cell one: '{2 / 3}' instead of '{value}'" in said) == (outcome == "written")


@pytest.mark.parametrize(("old", "new", "still"), [("2 / 3", "4 / 6", 0), ("7", "3 + 4", 1)])
def test_from_new_code_on_outputs_are_stored_as_they_are(run, executed, old, new, still):
    """However near they are to what is stored: they are that code's."""
    near = executed.notebook().read_bytes().replace(str(2 / 3).encode(), b"0.66666667")
    executed.store(near)
    executed.write(TEXT, a=CODE.replace(old, new))
    assert outcomes(run(executed)[1]) == ["written"]
    shown = executed.notebook().read_bytes()
    assert (shown.count(b"0.66666667"), shown.count(str(2 / 3).encode())) == (still, 2 - still)


def test_a_cell_that_is_not_compared_is_rewritten_only_with_new_code(run, project):
    code = '# %% one\nimport uuid\n\n# %% two tags=["nbval-ignore-output"]\nuuid.uuid4().hex\n'
    project.write(a=code)
    run(project)
    stored = project.notebook().read_bytes()
    assert outcomes(run(project, "--always")[1]) == ["same results"]
    assert project.notebook().read_bytes() == stored
    project.write(a=code.replace("import uuid", "import uuid as other\n\nuuid = other"))
    assert outcomes(run(project)[1]) == ["written"]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param("- 0.123", "- 0.124", id="a number in the text"),
        pytest.param("  - more", "- more", id="blanks in the text"),
    ],
)
def test_text_is_rewritten_however_little_differs(run, executed, new, old):
    fresh = executed.notebook().read_bytes()
    executed.store(fresh.replace(new.encode(), old.encode()))
    assert executed.notebook().read_bytes() != fresh
    _, said = run(executed)
    assert (outcomes(said), "started" in said) == (["woven"], False)
    assert executed.notebook().read_bytes() == fresh


@pytest.mark.parametrize(("new", "old"), [("0.456", "0.457"), ("    print", "  print")])
def test_code_that_was_edited_in_the_notebook_is_executed_again(run, executed, new, old):
    fresh = executed.notebook().read_bytes()
    executed.store(fresh.replace(new.encode(), old.encode()))
    assert outcomes(run(executed)[1]) == ["written"]
    assert executed.notebook().read_bytes() == fresh


def test_what_is_no_notebook_is_replaced(run, project):
    stored = [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b'{"nbformat": 4}',
        b'{"nbformat": 3, "worksheets": []}',
        b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{}]}',
    ]
    frameworks = "abcdefgh"
    project.write("<<one>>\n", **dict.fromkeys(frameworks, "# %% one\n1\n"))
    for framework, what in zip(frameworks, stored, strict=True):
        project.store(what, framework)
    code, said = run(project)
    assert code == 0
    assert said.count("written") == len(stored)
    for framework in frameworks:
        nbformat.validate(nbformat.read(project.notebook(framework), as_version=4))


def test_a_damaged_figure_is_replaced(run, project):
    figure = '<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt"><g/></svg>'
    project.write("<<one>>\n", a=f"# %% one\nfrom IPython.display import SVG\nSVG('{figure}')\n")
    run(project)
    fresh = project.notebook().read_bytes()
    project.store(fresh.replace(b"<g/>", b"<g>"))
    assert run(project, "--always")[0] == 0
    assert project.notebook().read_bytes() == fresh


# What is executed


def test_in_a_fresh_clone_nothing_is_executed_and_nothing_changes(run, executed):
    executed.clone()
    before = {file: file.read_bytes() for file in executed.files()}
    code, said = run(executed)
    assert (code, outcomes(said)) == (0, [])
    assert "1 pages are up to date (make ALWAYS=1 executes all)" in said
    assert "started" not in said
    assert {file: file.read_bytes() for file in executed.files()} == before


def test_one_lesson_is_executed_once_on_each_machine(run, executed):
    executed.prove()
    executed.clone()
    stored = executed.notebook().read_bytes()
    code, said = run(executed)
    assert code == 0
    assert re.search(r"^a: works here, \d+ s, same results$", said, re.MULTILINE)
    assert executed.notebook().read_bytes() == stored
    assert "started" not in run(executed)[1]


def test_other_results_on_this_machine_are_named_and_not_written(run, executed):
    executed.prove()
    executed.clone()
    stored = executed.notebook().read_bytes().replace(str(2 / 3).encode(), b"0.65")
    executed.store(stored)
    for _ in range(2):
        code, said = run(executed)
        assert code == 1
        assert re.search(r"^a: works here, \d+ s, other results$", said, re.MULTILINE)
        assert f"a/tiny, cell one: '{2 / 3}' instead of '0.65'\n" in said
        assert executed.notebook().read_bytes() == stored
    assert run(executed, "--always")[0] == 0
    assert b"0.65" not in executed.notebook().read_bytes()


def test_a_framework_that_fails_is_said_not_to_work_here(run, project):
    project.write(a="# %% one\n1 / 0\n\n# %% two\n2\n")
    project.prove()
    code, said = run(project)
    assert code == 1
    assert "\na: does not work here, see above\n" in said


def test_a_new_sentence_is_woven_and_nothing_is_executed(run, executed):
    executed.clone()
    text = executed.lesson / "text.en.md"
    text.write_text(text.read_text().replace("- more", "- more than that"))
    before = outputs(executed.notebook())
    code, said = run(executed)
    assert (code, outcomes(said)) == (0, ["woven"])
    assert "started" not in said
    assert "- more than that" in executed.notebook().read_text()
    assert outputs(executed.notebook()) == before


def test_a_new_comment_is_woven_and_nothing_is_executed(run, executed):
    executed.write(TEXT, a=CODE.replace("x = 2 / 3", "x = 2 / 3  # two thirds"))
    code, said = run(executed)
    assert (code, outcomes(said), "started" in said) == (0, ["woven"], False)
    assert "# two thirds" in executed.notebook().read_text()


def test_of_several_code_files_the_changed_one_alone_is_executed(run, project):
    project.write(**dict.fromkeys("ab", CODE))
    assert outcomes(run(project)[1]) == ["written", "written"]
    project.write(a=CODE, b=CODE.replace("x, 7", "x, 8"))
    said = run(project)[1]
    assert (outcomes(said), said.count("started")) == (["written"], 1)
    assert "b/tiny: started" in said


def test_where_a_framework_is_not_chosen_text_is_woven_all_the_same(run, project):
    project.write(**dict.fromkeys("ab", CODE))
    run(project)
    project.write(TEXT.replace("- more", "- more than that"), **dict.fromkeys("ab", CODE))
    code, said = run(project, "--framework", "a")
    assert (code, outcomes(said), "started" in said) == (0, ["woven", "woven"], False)
    assert "- more than that" in project.notebook("b").read_text()


def test_where_a_framework_is_not_chosen_its_new_code_is_left_and_named(run, project):
    project.write(**dict.fromkeys("ab", CODE))
    run(project)
    stored = project.notebook("b").read_bytes()
    project.write(a=CODE, b=CODE.replace("x, 7", "x, 8"))
    code, said = run(project, "--framework", "a")
    assert (code, "started" in said) == (0, False)
    assert "Out of date, and not to be executed here: en/b/tiny" in said
    assert project.notebook("b").read_bytes() == stored
    assert outcomes(run(project)[1]) == ["written"]


@pytest.mark.parametrize("harm", ["no fingerprint", "another fingerprint", "a damaged file"])
def test_a_harmed_fingerprint_is_made_anew(run, executed, harm):
    fresh = executed.committed.read_text()
    executed.clone()
    if harm == "another fingerprint":
        executed.committed.write_text(fresh.replace('"sources": "', '"sources": "0'))
    else:
        executed.committed.write_text("{}" if harm == "no fingerprint" else fresh[:-9])
    said = run(executed)[1]
    assert (said.count("started"), outcomes(said)) == (1, ["same results"])
    assert executed.committed.read_text() == fresh
    assert "started" not in run(executed)[1]


def test_an_output_that_was_edited_is_left_to_nbval(run, executed):
    edited = executed.notebook().read_bytes().replace(str(2 / 3).encode(), b"0.65")
    executed.store(edited)
    assert "started" not in run(executed)[1]
    assert executed.notebook().read_bytes() == edited


def change_versions(
    monkeypatch: pytest.MonkeyPatch, installed: str, locked: tuple[str, ...]
) -> None:
    monkeypatch.setattr(fingerprints, "installed_packages", lambda _: {"torch": installed})
    versions = frozenset(("torch", version) for version in locked)
    monkeypatch.setattr("tools.run.runner.locked_versions", lambda _: versions)


@pytest.mark.parametrize(
    ("locked", "is_renewed"),
    [
        pytest.param(("1", "2"), False, id="of another Python, for which the lock has others"),
        pytest.param(("2",), True, id="of a lock that was updated"),
    ],
)
def test_with_other_versions_pages_are_executed_once_and_compared(
    run, project, monkeypatch, locked, is_renewed
):
    change_versions(monkeypatch, "1", ("1",))
    run(project)
    stored, known = project.notebook().read_bytes(), project.committed.read_text()
    change_versions(monkeypatch, "2", locked)
    said = run(project)[1]
    assert (said.count("started"), outcomes(said)) == (1, ["same results"])
    assert project.notebook().read_bytes() == stored
    assert (project.committed.read_text() != known) == is_renewed
    assert "started" not in run(project)[1]


@pytest.mark.parametrize("only_here", [True, False])
def test_what_only_this_python_needs_besides_renews_no_fingerprint(
    run, project, monkeypatch, only_here
):
    change_versions(monkeypatch, "1", ("1",))
    run(project)
    known = project.committed.read_text()
    packages = {"torch": "1", "setuptools": "2"}
    monkeypatch.setattr(fingerprints, "installed_packages", lambda _: packages)
    conditional = {"setuptools"} if only_here else set()
    monkeypatch.setattr("tools.run.runner.conditional_packages", lambda _: conditional)
    run(project)
    assert (project.committed.read_text() == known) == only_here


def test_a_fingerprint_is_of_the_code_and_of_the_shim_that_it_imports(tmp_path, monkeypatch):
    shim = tmp_path / "shim.py"
    shim.write_text("x = 1  # a comment\n")
    monkeypatch.setattr(fingerprints, "ROOT", tmp_path)
    monkeypatch.setattr(fingerprints, "shim_sources", lambda _: [shim])
    edition = Edition(tmp_path / "lessons" / "tiny", "en", "a")

    def sources(code: str) -> str:
        fingerprints._content.cache_clear()
        return fingerprint(edition, [Cell("one", code)]).sources

    first = sources("1")
    assert sources("1  # a comment") == first
    assert sources("2") != first
    shim.write_text("x = 1  # another comment\n")
    assert sources("1") == first
    shim.write_text("x = 2\n")
    assert sources("1") != first


def test_a_fingerprint_in_java_is_of_the_sources_of_its_classes(tmp_path, monkeypatch):
    source = tmp_path / "java" / "src" / "main" / "Plots.java"
    source.parent.mkdir(parents=True)
    (tmp_path / "java" / "pom.xml").touch()
    source.write_text("class Plots {}")
    fingerprints.shim_sources.cache_clear()
    monkeypatch.setattr(fingerprints, "JAVA", tmp_path / "java")
    monkeypatch.setattr(fingerprints, "ROOT", tmp_path)
    lesson = tmp_path / "lessons" / "tiny"
    lesson.mkdir(parents=True)
    (lesson / "code.djl.java").touch()
    edition, cells = Edition(lesson, "en", "djl"), [Cell("one", "int x = 1;")]
    before = fingerprint(edition, cells)
    assert before.packages.keys() <= {"jjava"}  # none where DJL is not installed
    fingerprints._content.cache_clear()
    source.write_text("class Plots { int x; }")
    fingerprints.shim_sources.cache_clear()
    assert fingerprint(edition, cells).sources != before.sources


SLOW_TO_IMPORT = {"jax", "mxnet", "paddle", "tensorflow"}


@pytest.mark.parametrize(
    "framework",
    [
        pytest.param(name, marks=[pytest.mark.release] if name in SLOW_TO_IMPORT else [])
        for name in FACES
    ],
)
def test_of_the_shim_a_page_depends_on_what_its_framework_imports(framework):
    """The modules that a fresh process has loaded are among them, and no other framework's."""
    face = FRAMEWORKS[framework].face
    program = f"import sys, d2l_compat.{face}; print(*(m.__file__ for n, m in sys.modules.items() if n[:10] == 'd2l_compat'))"
    try:
        loaded = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)
    except subprocess.CalledProcessError:
        pytest.skip(f"{framework} is not installed")
    found = {str(file) for file in fingerprints.shim_sources(framework)}
    assert {*loaded.split()} <= found
    others = {each.face for each in FRAMEWORKS.values()} - {face}
    assert [file for file in found if Path(file).parent.name in others] == []


def test_packages_are_those_that_a_framework_requires():
    assert {"matplotlib", "numpy"} <= fingerprints.installed_packages("pytorch").keys()
    assert "torch" in {name for name, _ in fingerprints.locked_versions("pytorch")}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"en/a/tiny": 1}', '{"en/a/tiny": {"x": 1}}']
)
def test_a_file_that_holds_no_fingerprints_has_none(tmp_path, text):
    file = tmp_path / "fingerprints.json"
    file.write_text(text)
    edition = Edition(tmp_path / "tiny", "en", "a")
    assert Fingerprints(file).get(edition) is None
    its = Fingerprint("0", {"torch": "1"})
    Fingerprints(file).update({edition: its})
    assert Fingerprints(file).get(edition) == its


def test_a_page_that_fails_is_executed_again(run, project):
    project.write(a="# %% one\n1 / 0\n\n# %% two\n2\n")
    assert [run(project)[1].count("started") for _ in range(2)] == [1, 1]
    assert not project.committed.exists()


def test_a_project_that_can_keep_no_record_is_made_all_the_same(run, project):
    (project.root / "build").touch()
    assert outcomes(run(project)[1]) == ["written"]
    assert outcomes(run(project)[1]) == []


# In several languages


LOGS = """\
# %% one
n, runs = 1, []

# %% two
runs.append("word")  # a comment
print("number", n)

# %% say
def say():
    return "hello"


# %% hear
print(say(), "world")

# %% three
runs += [1]  # a comment
n + len(runs)
"""
WORDS = """\
[words]
"word" = "詞"
"a comment" = "註解"
"number" = "數字"
"hello" = "你好"
"world" = "世界"
"""
NAMES = "one", "two", "say", "hear", "three"


@pytest.fixture
def translated(project: Project) -> Project:
    text = "# Title\n\n" + "\n\n".join(f"<<{name}>>" for name in NAMES)
    project.write(text, a=LOGS)
    (project.lesson / "text.zh-TW.md").write_text(text.replace("Title", "標題"), encoding="utf-8")
    (project.lesson / "words.zh-TW.toml").write_text(WORDS, encoding="utf-8")
    return project


def outputs(notebook: Path) -> dict[str, Any]:
    cells = nbformat.read(notebook, as_version=4).cells
    return {cell.id: cell.outputs for cell in cells if cell.cell_type == "code"}


def test_languages_share_an_execution_and_each_has_its_own_words(run, translated):
    code, said = run(translated)
    assert code == 0, said
    assert said.count("a/tiny: started") == 1
    english = outputs(translated.notebook())
    chinese = outputs(translated.notebook(language="zh-TW"))
    assert english["two"][0].text == "number 1\n"
    assert chinese["two"][0].text == "數字 1\n"
    # Each has its own definitions, whichever language's were there last.
    assert english["hear"][0].text == "hello world\n"
    assert chinese["hear"][0].text == "你好 世界\n"
    # A cell with words is executed twice, one that differs in its comments once.
    assert english["three"] == chinese["three"]
    assert english["three"][0].data["text/plain"] == "4"
    assert english["three"][0].execution_count == 5


def test_a_comment_in_other_words_is_woven_and_nothing_is_executed(run, translated):
    run(translated)
    words = WORDS.replace("註解", "新的註解")
    (translated.lesson / "words.zh-TW.toml").write_text(words, encoding="utf-8")
    code, said = run(translated)
    assert (code, outcomes(said), "started" in said) == (0, ["woven"], False)
    assert "新的註解" in translated.notebook(language="zh-TW").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        pytest.param(
            'print("number", n)',
            'n += 1\nprint("number", n)',
            ":5: in en/a/tiny, cell 'two': in zh-TW it shows something else than in en: "
            "'3' instead of '2'; a cell with words is executed in each language, and has to show "
            "the same each time. Draw and train in a cell without words, and print in the next",
            id="another number",
        ),
        pytest.param(
            "runs += [1]",
            "runs += [1]\nprint(runs[0])",
            ":17: in en/a/tiny, cell 'three': in zh-TW it shows 'word', of another language; "
            "write the words that a cell shows into this cell",
            id="words of an earlier cell",
        ),
        pytest.param(
            "runs += [1]",
            "runs += [1]\nprint(say())",
            ":17: in en/a/tiny, cell 'three': in en it shows '你好', of another language; "
            "write the words that a cell shows into this cell",
            id="words of a function",
        ),
    ],
)
def test_a_cell_that_is_not_the_same_in_every_language_is_refused(run, translated, old, new, fault):
    translated.write((translated.lesson / "text.en.md").read_text(), a=LOGS.replace(old, new))
    code, said = run(translated)
    assert code == 1
    assert fault in " ".join(said.split()), said
    assert not translated.notebook().exists()


def test_what_is_stored_in_one_language_is_stored_in_all(run, translated):
    (translated.lesson / "words.zh-TW.toml").unlink()
    translated.write(TEXT, a=CODE)
    (translated.lesson / "text.zh-TW.md").write_text(TEXT)
    run(translated)
    stored = translated.notebook().read_bytes().replace(str(2 / 3).encode(), b"0.66666667")
    translated.store(stored)
    code, said = run(translated, "--always")
    assert (code, outcomes(said)) == (0, ["same results", "woven"])
    chinese = translated.notebook(language="zh-TW")
    assert translated.notebook().read_bytes() == stored
    assert outputs(chinese) == outputs(translated.notebook())


def test_what_new_words_show_anew_in_one_language_is_new_in_all(run, translated):
    """Or one would show the numbers of another processor than the other."""
    text = (translated.lesson / "text.en.md").read_text()
    translated.write(text, a=LOGS.replace('number", n', 'number", 2 / 3'))
    run(translated)
    for language in ("en", "zh-TW"):
        notebook = translated.notebook(language=language)
        elsewhere = notebook.read_bytes().replace(str(2 / 3).encode(), b"0.66666667")
        notebook.write_bytes(elsewhere)
    (translated.lesson / "words.zh-TW.toml").write_text(
        WORDS.replace("數字", "數"), encoding="utf-8"
    )
    assert run(translated)[0] == 0
    shown = [outputs(translated.notebook(language=each)) for each in ("en", "zh-TW")]
    assert [each["two"][0].text for each in shown] == [f"number {2 / 3}\n", f"數 {2 / 3}\n"]


def test_a_fault_in_one_language_is_named_once_and_no_notebook_changes(run, translated):
    fails = LOGS.replace('number", n', 'number", 1 / (len(runs) < 2)')
    translated.write((translated.lesson / "text.en.md").read_text(), a=fails)
    translated.store()
    code, said = run(translated)
    assert code == 1
    assert said.count("code.a.py:6: in zh-TW/a/tiny, cell 'two': ") == 1
    assert said.count("failed") == 2
    assert translated.notebook().read_bytes() == OLD
    assert not translated.notebook(language="zh-TW").exists()


def test_a_text_that_cannot_be_woven_does_not_stop_the_other(run, translated):
    (translated.lesson / "text.zh-TW.md").write_text("# 標題\n")
    code, said = run(translated)
    assert code == 1
    assert (said.count("written"), said.count("failed")) == (1, 1)
    assert translated.notebook().exists()


def test_the_users_own_settings_do_not_reach_the_notebook(run, project, tmp_path, monkeypatch):
    startup = tmp_path / "ipython" / "profile_default" / "startup" / "own.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("own = True")
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 7")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path / "matplotlibrc"))
    monkeypatch.setenv("MPLBACKEND", "template")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    before = dict(os.environ)
    project.write(
        "<<one>>\n\n<<two>>\n",
        a="# %% one\nimport matplotlib as mpl\n"
        "'own' in globals(), mpl.rcParams['lines.linewidth'], 'inline' in mpl.get_backend()\n\n"
        "# %% two\nhash('words')\n",
    )
    assert run(project)[0] == 0
    one, two = (cell.outputs[0].data["text/plain"] for cell in code_cells(project.notebook()))
    assert one == "(False, 1.5, True)"
    assert int(two) == hash_of("words", seed="0") != hash_of("words", seed="7")
    assert os.environ == before


def code_cells(notebook: Path) -> list[nbformat.NotebookNode]:
    cells = nbformat.read(notebook, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def hash_of(words: str, seed: str) -> int:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", f"print(hash({words!r}))"]
    return int(subprocess.check_output(command, env=environment))


@pytest.mark.parametrize("name", ["MPLBACKEND", "TMPDIR"])
def test_what_stands_in_a_users_shell_does_no_harm(project, tmp_path, name):
    long = tmp_path / ("long" * 40)  # no socket has such a path
    long.mkdir()
    value = {"MPLBACKEND": "no-such-backend", "TMPDIR": str(long)}[name]
    project.write("<<one>>\n", a="# %% one\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n")
    done = subprocess.run(
        project.command(),
        cwd=ROOT,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert not [*long.iterdir()]


def test_pip_installs_nothing_in_a_notebook_that_no_hash_stands_for(tmp_path):
    """As the first cell's ``%pip`` would, where the shim is missing."""
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(tmp_path / "there")]
    with neutral_environment():
        done = subprocess.run(
            [*pip, f"git+file://{tmp_path}"], capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert "hash" in done.stderr
    assert not (tmp_path / "there").exists()


def test_no_tool_is_harmed_by_a_backend_that_there_is_not():
    tools = sorted(path for path in ROOT.glob("tools/**/*.py") if path.name != "__main__.py")
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in tools]
    drawing = [
        name
        for name in names
        if "matplotlib" in (ROOT / f"{name.replace('.', '/')}.py").read_text()
    ]
    environment = {**os.environ, "MPLBACKEND": "no-such-backend"}
    program = f"import {', '.join(drawing)}, matplotlib"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, check=True)


def test_the_environment_is_restored_after_a_fault():
    before = dict(os.environ)
    with suppress(KeyError), neutral_environment():
        assert os.environ != before
        raise KeyError
    assert os.environ == before


# Faults in a lesson


def dies(how: str) -> dict[str, Any]:
    return {
        "code": f"# %% one\n1\n\n# %% two\nimport os\n\n{how}\n",
        "line": 5,
        "words": ["cell 'two'", "the kernel died"],
    }


RAISES_IN = (
    "# %% one\ndef f():\n    try:\n        return 1 / 0\n    finally:\n        print()\n\n\n"
)
CHAIN = """\
# %% one
def f():
    # A line,
    # and a line more.
    try:
        return 1 / 0
    except ZeroDivisionError as error:
        raise ValueError("no") from error


# %% two
x = 1
f()
"""
LACKS = """\
# %% one
from d2l_compat import _install

_install.find_spec = lambda module: None
_install._install = print
_install.install("jax")

# %% two
2
"""
FAULTS = {
    "lacks what it needs": {
        "code": LACKS,
        "line": 6,
        "words": [
            "RuntimeError: numpy is not installed, and D2L_COMPAT_INSTALL=never: run",
            "run `make env FRAMEWORKS=jax` in the project's folder",
        ],
    },
    "raises": {
        "code": "# %% one\n1\n\n# %% two\nx = 1\n\n1 / 0\nx\n",
        "line": 7,
        "words": ["cell 'two'", "ZeroDivisionError: division by zero", "----> 3 1 / 0"],
    },
    "raises in a function of its own": {
        "code": "# %% one\n1\n\n# %% two\ndef f():\n    return 1 / 0\n\n\nf()\n",
        "line": 9,
        "words": ["cell 'two'", "ZeroDivisionError", "in f()"],
    },
    "raises in a function of another cell, from another exception": {
        "code": CHAIN,
        "line": 13,
        "words": ["cell 'two'", "ValueError: no", "ZeroDivisionError", "in f()"],
    },
    "raises below blank lines": {
        "code": "# %% one\n\n\n1 / 0\n\n# %% two\n2\n",
        "line": 4,
        "words": ["cell 'one'", "ZeroDivisionError"],
    },
    "syntax error": {
        "code": "# %% one\n1\n\n# %% two\nx = 1\ny = = 2\n",
        "line": 6,
        "words": ["cell 'two'", "SyntaxError: invalid syntax"],
    },
    "exits": dies("os._exit(1)"),
    "is killed": dies("os.kill(os.getpid(), 9)"),
    "prints without measure": {
        "code": "# %% one\n1\n\n# %% two\nfor _ in range(100):\n    print('x' * 1_000_000)\n",
        "line": 5,
        "words": ["cell 'two'", "it prints more than 5,000,000 characters"],
    },
    "never ends": {
        "code": "# %% one\nwhile True:\n    pass\n\n# %% two\n2\n",
        "arguments": ["--timeout", "3"],
        "line": 2,
        "words": ["cell 'one'", "over the limit of 3 s for the notebook"],
    },
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named_and_the_old_notebook_stays(run, project, fault):
    project.write(a=fault["code"])
    project.store()
    before = project.files()
    start = time.monotonic()
    code, said = run(project, *fault.get("arguments", []))
    assert time.monotonic() - start < PATIENCE
    assert code == 1
    place = f"{project.lesson / 'code.a.py'}:{fault['line']}: in en/a/tiny, "
    assert any(line.startswith(place) for line in said.splitlines()), said
    for words in (str(project.notebook()), "failed", *fault["words"]):
        assert words in said
    assert "\x1b" not in said
    assert project.notebook().read_bytes() == OLD
    assert project.files() == before


def test_the_limit_is_the_one_asked_for(run, project, monkeypatch):
    limits, timeout = [], asyncio.timeout
    waits, start = [], NotebookClient.async_start_new_kernel_client

    def noted(delay: float | None) -> asyncio.Timeout:
        limits.append(delay)
        return timeout(delay)

    async def noted_start(client: NotebookClient) -> object:
        waits.append(client.startup_timeout)
        return await start(client)

    monkeypatch.setattr(asyncio, "timeout", noted)
    monkeypatch.setattr(NotebookClient, "async_start_new_kernel_client", noted_start)
    assert run(project, "--timeout", "77")[0] == 0
    assert 77 in limits
    assert waits == [77]  # a slow machine's kernel has no other limit


def no_such_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES[".py"].kernelspec, "name", "no-such-kernel")


def kernel_of(*command: str, **more: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        kernel = {"argv": command, "display_name": "", "language": "python", **more}
        spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
        spec.parent.mkdir(parents=True)
        spec.write_text(json.dumps(kernel))
        monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))

    return install


@pytest.mark.parametrize(
    ("install", "words"),
    [
        pytest.param(no_such_kernel, "no-such-kernel", id="not installed"),
        pytest.param(kernel_of("false"), "died", id="dies while starting"),
        # As Java's: such a kernel is asked to stop over a channel.
        pytest.param(kernel_of("false", interrupt_mode="message"), "died", id="dies, as Java's"),
        pytest.param(kernel_of("/no/such/program"), "/no/such/program", id="program missing"),
    ],
)
def test_a_kernel_that_does_not_start_is_named(run, project, tmp_path, monkeypatch, install, words):
    install(tmp_path, monkeypatch)
    project.store()
    before = project.files()
    code, said = run(project)
    assert code == 1
    assert f"{project.lesson / 'code.a.py'}:2: in en/a/tiny, cell 'one': " in said
    assert words in said
    assert "cannot be written" not in said
    assert project.notebook().read_bytes() == OLD
    assert project.files() == before


def test_one_failing_notebook_does_not_stop_the_others(run, project):
    project.write(
        "<<one>>\n", a="# %% one\n1 / 0\n", b="# %% one\n2\n", c="# %% two\n3\n", d="\xe9"
    )
    code, said = run(project, "--jobs", "2")
    assert code == 1
    rows = [line.split() for line in said.splitlines()[-4:]]
    assert [(Path(row[0]).parts[-2], row[-1]) for row in rows] == [
        ("a", "failed"),
        ("b", "written"),
        ("c", "failed"),
        ("d", "failed"),
    ]
    assert [framework for framework in "abcd" if project.notebook(framework).exists()] == ["b"]


# Faults of the disk


@pytest.mark.parametrize("old", [None, OLD], ids=["the first time", "over an old one"])
@pytest.mark.parametrize(("step", "number"), [("fsync", errno.ENOSPC), ("replace", errno.EROFS)])
def test_a_disk_that_takes_no_more_leaves_the_old_notebook(
    run, executed, monkeypatch, old, step, number
):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    executed.notebook().unlink()
    if old:
        executed.store(old)
    before = executed.files()
    monkeypatch.setattr(os, step, refuse)
    code, said = run(executed)
    assert code == 1
    assert f"{executed.notebook()}: cannot be written: {os.strerror(number)}\n" in said
    assert executed.files() == before
    if old:
        assert executed.notebook().read_bytes() == old


@pytest.mark.parametrize("where", ["the folder is a file", "the notebook is a folder"])
def test_a_place_that_cannot_be_written_is_named(run, project, where):
    if where == "the folder is a file":
        place = project.notebook().parent
        place.parent.mkdir(parents=True)
        place.write_bytes(OLD)
    else:
        place = project.notebook()
        place.mkdir(parents=True)
    before = project.files()
    code, said = run(project)
    assert code == 1
    assert f"{project.notebook()}: cannot be written: " in said
    assert project.files() == before
    assert place.exists()


# The command


def test_no_jobs_at_all_cannot_be_asked_for(project):
    asked = project.command("--jobs", "0")
    done = subprocess.run(
        asked, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    assert "--jobs" in done.stderr


def test_control_c_stops_all_at_once_and_keeps_the_old_notebooks(project, control_c):
    waits = (
        "# %% one\nfrom pathlib import Path\nPath('{}').touch()\nimport time; time.sleep(1000)\n"
    )
    frameworks = ("a", "b")
    marks = [project.root / f"started-{framework}" for framework in frameworks]
    project.write(
        "<<one>>\n", **{f: waits.format(m) for f, m in zip(frameworks, marks, strict=True)}
    )
    for framework in frameworks:
        project.store(framework=framework)
    before = project.files() | set(marks)
    runner = subprocess.Popen(
        project.command("--jobs", "2", "--timeout", "1000"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = control_c(runner, marks, lambda: runner.send_signal(signal.SIGINT), at_least=2)
    assert runner.returncode == 130
    assert "Traceback" not in said
    assert project.files() == before
    assert {project.notebook(framework).read_bytes() for framework in frameworks} == {OLD}


def test_a_pipe_gets_plain_lines(project):
    done = subprocess.run(project.command(), cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("a/tiny: started\na/tiny: executed\nnotebook ")
    assert "\x1b" not in done.stdout
    assert not done.stderr


def test_a_terminal_gets_a_bar_and_the_whole_summary(project):
    ours, theirs = pty.openpty()  # 80 columns
    runner = subprocess.Popen(
        project.command(),
        cwd=ROOT,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError), open(ours, "rb", buffering=0) as screen:
        while chunk := screen.read(65536):  # Linux's end of it is an error
            shown += chunk
    assert runner.wait() == 0
    bar, header, summary = shown.decode().partition("notebook ")
    for words in ("\x1b[", "a/tiny", "━", "2/2"):
        assert words in bar
    assert "started" not in bar
    plain = re.sub(r"\x1b\[[\d;?]*\w", "", header + summary).split()
    assert "written" in plain
    assert "".join(plain).count("tiny.ipynb") == 1
