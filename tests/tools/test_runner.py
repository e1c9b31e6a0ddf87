"""``make``: what it executes and writes, what it says, and that no fault harms what was there.

A kernel takes a second to start. So most tests execute in this process, and those with kernels show several things
at once.
"""

import ast
import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from nbformat import NotebookNode, v4

from d2l_compat.frameworks import FACES, FRAMEWORKS
from tests.conftest import list_lessons, still_running
from tools.__main__ import main
from tools.run import fingerprints
from tools.run.execute import ExecutionError
from tools.run.fingerprints import fingerprint
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
        self.committed = root / "notebooks" / "fingerprints.json"
        self.executed_here = root / "build" / "executed.json"

    def write(self, text: str = TEXT, **codes: str) -> None:
        self.lesson.mkdir(parents=True, exist_ok=True)
        list_lessons(self.root, "tiny")
        (self.lesson / "text.en.md").write_text(text)
        for framework, code in (codes or {"a": CODE}).items():
            (self.lesson / f"code.{framework}.py").write_text(code)

    def translate(self, text: str, words: str) -> None:
        (self.lesson / "text.zh-TW.md").write_text(text, encoding="utf-8")
        (self.lesson / "words.zh-TW.toml").write_text(words, encoding="utf-8")

    def notebook(self, framework: str = "a", language: str = "en") -> Path:
        return self.root / "notebooks" / language / framework / "tiny.ipynb"

    def store(self, notebook: bytes = OLD, framework: str = "a") -> None:
        self.notebook(framework).parent.mkdir(parents=True, exist_ok=True)
        self.notebook(framework).write_bytes(notebook)

    def replace(self, old: str, new: str) -> bytes:
        """Edit the notebook; return what it was."""
        before = self.notebook().read_bytes()
        assert old.encode() in before
        self.store(before.replace(old.encode(), new.encode()))
        return before

    def clone(self) -> None:
        """Forget what this machine has executed, as a fresh clone does not know it."""
        self.executed_here.unlink()

    def prove(self) -> None:
        """Make the lesson the one that is executed once on each machine."""
        chapter = self.root / "lessons" / "chapter.toml"
        chapter.write_text(chapter.read_text() + 'proof = "tiny"\n')

    def files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tools", "--root", str(self.root), *arguments]


def outcomes(said: str) -> list[str]:
    """The last column of the table, and what is out of date."""
    rows = said.partition("notebook ")[2].splitlines()[1:]
    listed = [" ".join(row.split()[2:]).lstrip("0123456789. ") for row in rows if ".ipynb" in row]
    return [*listed, *re.findall("Out of date", said)]


def code_cells(notebook: Path) -> dict[str, NotebookNode]:
    cells = nbformat.read(notebook, as_version=4).cells
    return {cell.id: cell for cell in cells if cell.cell_type == "code"}


async def execute_here(
    sources: list[str], _kernelspec: object, _limit: float, on_start: Callable[[int], None]
) -> list[list[NotebookNode]]:
    """Execute cells in this process in place of a kernel."""
    variables: dict[str, Any] = {}
    shown = []
    for turn, source in enumerate(sources):
        on_start(turn)
        program, value, printed = ast.parse(source), None, StringIO()
        last = program.body.pop() if isinstance(program.body[-1], ast.Expr) else None
        try:
            with redirect_stdout(printed):
                exec(compile(program, "cell", "exec"), variables)
                if last:
                    value = eval(compile(ast.Expression(last.value), "cell", "eval"), variables)
        except ArithmeticError as error:
            raise ExecutionError(turn, repr(error)) from None
        outputs = []
        if printed.getvalue():
            outputs.append(v4.new_output("stream", text=printed.getvalue()))
        if value is not None:
            data = {"text/plain": repr(value)}
            outputs.append(v4.new_output("execute_result", data, execution_count=turn + 1))
        shown.append(outputs)
    return shown


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run_kernels(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process; gives its exit code and what it printed."""

    def run_main(project: Project, *arguments: str) -> tuple[int, str]:
        code = main(["--root", str(project.root), *arguments])
        return code, capsys.readouterr().out

    return run_main


@pytest.fixture
def run(run_kernels: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same without kernels."""
    monkeypatch.setattr("tools.run.runner.execute", execute_here)
    return run_kernels


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.write()
    return made


@pytest.fixture
def executed(project: Project, run: Run) -> Project:
    run(project)
    return project


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_orphans() -> Iterator[None]:
    """No kernel outlives the command, and the environment is as it was, whatever happened."""
    before, environment = psutil.Process().children(recursive=True), dict(os.environ)
    yield
    left = set(psutil.Process().children(recursive=True)) - set(before)
    alive = still_running(left, seconds=1)
    for process in alive:
        process.kill()
    assert not alive
    own = "PYTEST_CURRENT_TEST"
    assert {**os.environ, own: ""} == {**environment, own: ""}


# With kernels: two languages of a page, and what goes wrong in one


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
SETTINGS = """
# %% settings
import os

import matplotlib as mpl

"own" in globals(), mpl.rcParams["lines.linewidth"], "inline" in mpl.get_backend()

# %% environment
[os.environ.get(name) for name in ("PYTHONHASHSEED", "PIP_REQUIRE_HASHES")]
"""
READ = ["own", "lines.linewidth", "inline", "PYTHONHASHSEED", "PIP_REQUIRE_HASHES"]
WORDS = """\
[words]
"word" = "詞"
"a comment" = "註解"
"number" = "數字"
"hello" = "你好"
"world" = "世界"
"""
LOGS_TEXT = "# Title\n\n<<one>>\n\n<<two>>\n\n<<say>>\n\n<<hear>>\n\n<<three>>\n"


@pytest.fixture
def translated(project: Project) -> Project:
    project.write(LOGS_TEXT, a=LOGS)
    project.translate(LOGS_TEXT.replace("Title", "標題"), WORDS)
    return project


def test_a_page_is_executed_once_for_both_languages_and_then_not_again(
    run_kernels, translated, tmp_path, monkeypatch
):
    startup = tmp_path / "ipython" / "profile_default" / "startup" / "own.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("own = True")
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 7")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path / "matplotlibrc"))
    monkeypatch.setenv("MPLBACKEND", "template")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    text = f"{LOGS_TEXT}\n<<settings>>\n\n<<environment>>\n"
    translated.write(text, a=LOGS + SETTINGS)
    translated.translate(text, f"strings = {READ}\n{WORDS}")
    there = translated.files().keys()
    code, said = run_kernels(translated)
    assert code == 0, said
    assert said.count("a/tiny: started") == 1
    assert outcomes(said) == ["written", "written"]
    notebooks = [translated.notebook(language=language) for language in ("en", "zh-TW")]
    written = {*notebooks, translated.committed, translated.executed_here}
    assert translated.files().keys() == there | written

    for notebook in notebooks:
        whole = nbformat.read(notebook, as_version=4)
        nbformat.validate(whole)
        assert whole.metadata.language_info == {"name": "python"}  # no version: that may change
        assert [cell.execution_count for cell in code_cells(notebook).values()] == [*range(1, 8)]
    english, chinese = map(code_cells, notebooks)
    assert [each["two"].outputs[0].text for each in (english, chinese)] == [
        "number 1\n",
        "數字 1\n",
    ]
    # Each has its own definitions, whichever language's were there last.
    assert english["hear"].outputs[0].text == "hello world\n"
    assert chinese["hear"].outputs[0].text == "你好 世界\n"
    # A cell with words is executed twice, one that differs in its comments once.
    for each in (english, chinese):
        assert each["three"].outputs[0].data == {"text/plain": "4"}
    # No settings of the user's; and pip installs nothing past the locks.
    assert english["settings"].outputs[0].data["text/plain"] == "(False, 1.5, True)"
    assert english["environment"].outputs[0].data["text/plain"] == "['0', '1']"

    files = translated.files()
    code, said = run_kernels(translated)
    assert (code, outcomes(said), "started" in said) == (0, [], False)
    code, said = run_kernels(translated, "--always")
    assert (code, outcomes(said)) == (0, ["same results"] * 2)
    assert translated.files() == files


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
# Each program with its line that fails, and what is said of it.
FAULTS = {
    "lacks": (LACKS, 6, "and D2L_COMPAT_INSTALL=never: run `make env FRAMEWORKS=jax` in the pro"),
    "raises": ("# %% one\n1\n\n# %% two\n\n\nx = 1\n1 / 0\n", 8, "ZeroDivisionError: division by"),
    "calls": (CHAIN, 13, "ValueError: no"),
    "killed": (
        "# %% one\n1\n\n# %% two\nimport os\nos.kill(os.getpid(), 9)\n",
        5,
        "the kernel died",
    ),
    "prints": (
        "# %% one\n1\n\n# %% two\nfor _ in range(100):\n    print('x' * 1_000_000)\n",
        5,
        "it prints more than 5,000,000 characters",
    ),
}


def test_a_fault_is_named_with_its_line_the_old_notebook_stays_and_the_others_are_made(
    run_kernels, project
):
    codes = {name: code for name, (code, *_) in FAULTS.items()}
    project.write(a=CODE, unreadable="\xe9", **codes)
    for name in codes:
        project.store(framework=name)
    code, said = run_kernels(project, "--jobs", "2")
    assert code == 1
    assert outcomes(said).count("failed") == len(FAULTS) + 1
    for name, (_, line, words) in FAULTS.items():
        place = f"{project.lesson / f'code.{name}.py'}:{line}: in en/{name}/tiny, "
        assert f"\n{place}" in said, said
        assert words in said.partition(place)[2].partition(f"{project.lesson}")[0]
        assert project.notebook(name).read_bytes() == OLD
        assert f'"en/{name}/tiny"' not in project.committed.read_text()
    assert "\x1b" not in said
    assert code_cells(project.notebook())["one"].outputs[0].text == f"{2 / 3}\n"


def test_what_never_ends_is_stopped_at_the_limit(run_kernels, project):
    project.write(a="# %% one\nwhile True:\n    pass\n\n# %% two\n2\n")
    code, said = run_kernels(project, "--timeout", "3")
    assert code == 1
    assert "code.a.py:2: in en/a/tiny, cell 'one': over the limit of 3 s for the notebook" in said


def test_a_kernel_that_does_not_start_is_named(run_kernels, project, monkeypatch):
    monkeypatch.setitem(LANGUAGES[".py"].kernelspec, "name", "no-such-kernel")
    project.store()
    before = project.files()
    code, said = run_kernels(project)
    assert code == 1
    assert f"{project.lesson / 'code.a.py'}:2: in en/a/tiny, cell 'one': " in said
    assert "No such kernel named no-such-kernel" in said
    assert project.files() == before


def test_a_users_shell_does_no_harm_and_a_pipe_gets_plain_lines(project, tmp_path):
    long = tmp_path / ("long" * 40)  # no socket has such a path
    long.mkdir()
    project.write("<<one>>\n", a="# %% one\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n")
    shell = {**os.environ, "MPLBACKEND": "no-such-backend", "TMPDIR": str(long)}
    done = subprocess.run(
        project.command(), cwd=ROOT, env=shell, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith("a/tiny: started\na/tiny: executed\nnotebook ")
    assert "\x1b" not in done.stdout
    assert not [*long.iterdir()]


def test_control_c_stops_all_at_once_and_keeps_the_old_notebooks(project, control_c):
    waits = "# %% one\nimport time\n\nopen({!r}, 'w').close()\ntime.sleep(1000)\n"
    marks = {framework: project.root / f"started-{framework}" for framework in "ab"}
    project.write("<<one>>\n", **{name: waits.format(str(mark)) for name, mark in marks.items()})
    for framework in marks:
        project.store(framework=framework)
    before = project.files()
    runner = subprocess.Popen(
        project.command("--jobs", "2", "--timeout", "1000"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = control_c(
        runner, [*marks.values()], lambda: runner.send_signal(signal.SIGINT), at_least=2
    )
    assert runner.returncode == 130
    assert "Traceback" not in said
    assert project.files() == before | dict.fromkeys(marks.values(), b"")


# What is executed, and what is written


@pytest.mark.parametrize(
    ("value", "outcome"), [(0.666666, "same results"), (0.65, "written"), (-2 / 3, "written")]
)
def test_an_output_that_was_edited_is_left_to_nbval_and_restored_always_if_it_disagrees(
    run, executed, value, outcome
):
    fresh = executed.replace(str(2 / 3), str(value))
    before = executed.files()
    assert "started" not in run(executed)[1]
    assert executed.files() == before
    said = run(executed, "--always")[1]
    assert outcomes(said) == [outcome]
    assert (f"a/tiny, cell one: '{2 / 3}' instead of '{value}'" in said) == (outcome == "written")
    assert (executed.notebook().read_bytes() == fresh) == (outcome == "written")
    assert (executed.files() == before) == (outcome == "same results")


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
    ("old", "new", "outcome"),
    [
        pytest.param("- 0.123", "- 0.124", "woven", id="a number in the text"),
        pytest.param("    print", "  print", "written", id="blanks in the code"),
        pytest.param('"nbformat": 4', '"nbformat": 3', "written", id="no notebook"),
        pytest.param("{", "", "written", id="damaged"),
    ],
)
def test_a_notebook_that_was_edited_by_hand_is_restored(run, executed, old, new, outcome):
    fresh = executed.replace(old, new)
    said = run(executed)[1]
    assert (outcomes(said), "started" in said) == ([outcome], outcome == "written")
    assert executed.notebook().read_bytes() == fresh


def test_in_a_fresh_clone_nothing_is_executed_and_nothing_changes(run, executed):
    executed.clone()
    before = executed.files()
    code, said = run(executed)
    assert (code, outcomes(said), "started" in said) == (0, [], False)
    assert "1 pages are up to date (make ALWAYS=1 executes all)" in said
    assert executed.files() == before


def test_one_lesson_is_executed_once_on_each_machine_and_other_results_are_named(run, executed):
    executed.prove()
    executed.clone()
    stored = executed.notebook().read_bytes()
    assert re.search(r"^a: works here, \d+ s, same results$", run(executed)[1], re.MULTILINE)
    assert executed.notebook().read_bytes() == stored
    assert "started" not in run(executed)[1]

    executed.clone()
    executed.replace(str(2 / 3), "0.65")
    edited = executed.notebook().read_bytes()
    for _ in range(2):
        code, said = run(executed)
        assert code == 1
        assert re.search(r"^a: works here, \d+ s, other results$", said, re.MULTILINE)
        assert f"a/tiny, cell one: '{2 / 3}' instead of '0.65'\n" in said
        assert executed.notebook().read_bytes() == edited
    assert run(executed, "--always")[0] == 0
    assert executed.notebook().read_bytes() == stored


def test_a_page_that_fails_is_executed_again_and_its_framework_does_not_work_here(run, project):
    project.write(a="# %% one\n1 / 0\n\n# %% two\n2\n")
    project.prove()
    for _ in range(2):
        code, said = run(project)
        assert (code, said.count("started")) == (1, 1)
        assert "\na: does not work here, see above\n" in said
    assert not project.committed.exists()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("text.en.md", "Title", "Title, and more", id="a sentence"),
        pytest.param("code.a.py", "n, runs", "# a comment\nn, runs", id="a comment"),
        pytest.param("words.zh-TW.toml", "註解", "新的註解", id="a comment in other words"),
    ],
)
def test_new_words_around_the_code_are_woven_and_nothing_is_executed(
    run, translated, file, old, new
):
    run(translated)
    translated.clone()
    changed = translated.lesson / file
    changed.write_text(changed.read_text("utf-8").replace(old, new), encoding="utf-8")
    shown = code_cells(translated.notebook())
    code, said = run(translated)
    assert (code, {*outcomes(said)}, "started" in said) == (0, {"woven"}, False)
    written = [translated.notebook(language=language) for language in ("en", "zh-TW")]
    assert any(new.splitlines()[0] in path.read_text("utf-8") for path in written)
    for name, cell in code_cells(translated.notebook()).items():
        assert cell.outputs == shown[name].outputs


def test_of_several_frameworks_the_changed_one_alone_is_executed_if_it_is_chosen(run, project):
    project.write(**dict.fromkeys("ab", CODE))
    assert outcomes(run(project)[1]) == ["written", "written"]
    project.write(TEXT.replace("- more", "- more than that"))
    said = run(project, "--framework", "a")[1]
    assert (outcomes(said), "started" in said) == (["woven", "woven"], False)
    assert "- more than that" in project.notebook("b").read_text()

    project.write(TEXT.replace("- more", "- more than that"), b=CODE.replace("x, 7", "x, 8"))
    before = project.files()
    code, said = run(project, "--framework", "a")
    assert (code, "started" in said) == (0, False)
    assert "Out of date, and not to be executed here: en/b/tiny" in said
    assert project.files() == before
    said = run(project)[1]
    assert (outcomes(said), said.count("started")) == (["written"], 1)
    assert "b/tiny: started" in said


# Fingerprints


def test_a_harmed_fingerprint_is_made_anew(run, executed):
    fresh = executed.committed.read_text()
    harmed = ["", "{}", "[]", fresh[:-9], '{"en/a/tiny": 1}', '{"en/a/tiny": {"x": 1}}']
    for text in [*harmed, fresh.replace('"sources": "', '"sources": "0')]:
        executed.clone()
        executed.committed.write_text(text)
        said = run(executed)[1]
        assert (said.count("started"), outcomes(said)) == (1, ["same results"])
        assert executed.committed.read_text() == fresh
        assert "started" not in run(executed)[1]


TORCH = {"torch": "2"}


@pytest.mark.parametrize(
    ("packages", "locked", "conditional", "is_renewed"),
    [
        pytest.param(TORCH, "12", (), False, id="another Python, for which the lock has others"),
        pytest.param(TORCH, "2", (), True, id="a lock that was updated"),
        pytest.param(TORCH | {"more": "1"}, "12", (), True, id="one more package"),
        pytest.param(TORCH | {"more": "1"}, "12", ("more",), False, id="on this Python only"),
    ],
)
def test_with_other_versions_pages_are_executed_once_and_compared(
    run, project, monkeypatch, packages, locked, conditional, is_renewed
):
    def install(packages: dict[str, str], locked: str) -> None:
        versions = frozenset(("torch", version) for version in locked)
        monkeypatch.setattr(fingerprints, "installed_packages", lambda _: packages)
        monkeypatch.setattr("tools.run.runner.locked_versions", lambda _: versions)
        monkeypatch.setattr("tools.run.runner.conditional_packages", lambda _: {*conditional})

    install({"torch": "1"}, "1")
    run(project)
    stored, known = project.notebook().read_bytes(), project.committed.read_text()
    install(packages, locked)
    said = run(project)[1]
    assert (said.count("started"), outcomes(said)) == (1, ["same results"])
    assert project.notebook().read_bytes() == stored
    assert (project.committed.read_text() != known) == is_renewed
    assert "started" not in run(project)[1]


@pytest.mark.parametrize(
    ("framework", "suffix", "mark"), [("pytorch", "py", "#"), ("djl", "java", "//")]
)
def test_a_fingerprint_is_of_the_code_and_the_shims_sources_without_comments(
    tmp_path, monkeypatch, framework, suffix, mark
):
    assert any(file.suffix == f".{suffix}" for file in fingerprints.shim_sources(framework))
    file = tmp_path / f"plots.{suffix}"
    (tmp_path / f"code.{framework}.{suffix}").touch()
    monkeypatch.setattr(fingerprints, "ROOT", tmp_path)
    monkeypatch.setattr(fingerprints, "shim_sources", lambda _: [file])

    def sources(cell: str, shim: str) -> str:
        file.write_text(shim)
        fingerprints._content.cache_clear()
        return fingerprint(Edition(tmp_path, "en", framework), [Cell("one", cell)]).sources

    before = sources("f(x);", f"x = 1; {mark} a comment")
    assert sources(f"f(x); {mark} a comment", f"x = 1; {mark} another") == before
    assert sources("f(y);", "x = 1;") != before
    assert sources("f(x);", "x = 2;") != before


SLOW_TO_IMPORT = {"jax", "mxnet", "paddle", "tensorflow"}


@pytest.mark.parametrize(
    "framework",
    [
        pytest.param(name, marks=[pytest.mark.release] if name in SLOW_TO_IMPORT else [])
        for name in FACES
    ],
)
def test_a_page_depends_on_what_its_framework_imports_of_the_shim_and_on_its_packages(framework):
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
    needed = {"numpy", *(package.distribution for package in FACES[framework].packages)}
    assert needed <= fingerprints.installed_packages(framework).keys()
    assert needed <= {name for name, _ in fingerprints.locked_versions(framework)}


# In several languages


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        pytest.param(
            'print("number", n)',
            'n += 1\nprint("number", n)',
            ":5: in en/a/tiny, cell 'two': in zh-TW it shows something else than in en: "
            "'3' instead of '2'; a cell with words is executed in each language",
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
            ":17: in en/a/tiny, cell 'three': in en it shows '你好', of another language",
            id="words of a function",
        ),
        pytest.param(
            'number", n',
            'number", 1 / (len(runs) < 2)',
            ":5: in zh-TW/a/tiny, cell 'two': ZeroDivisionError",
            id="a fault in one alone",
        ),
    ],
)
def test_a_cell_that_is_not_the_same_in_every_language_is_refused(run, translated, old, new, fault):
    translated.write(LOGS_TEXT, a=LOGS.replace(old, new))
    translated.store()
    code, said = run(translated)
    assert (code, said.count("failed")) == (1, 2)
    assert " ".join(said.split()).count(fault) == 1, said
    assert translated.notebook().read_bytes() == OLD
    assert not translated.notebook(language="zh-TW").exists()


def test_what_is_stored_or_new_in_one_language_is_so_in_all(run, project):
    """Or one would show the numbers of another processor than the other."""
    project.write(TEXT, a=CODE.replace("print(x)", 'print("number", x)'))
    project.translate(TEXT, '[words]\n"number" = "數字"\n')
    run(project)
    chinese = project.notebook(language="zh-TW")
    project.replace(str(2 / 3), "0.66666667")
    stored = project.notebook().read_bytes()
    assert outcomes(run(project, "--always")[1]) == ["same results", "woven"]
    assert project.notebook().read_bytes() == stored
    assert code_cells(chinese)["two"].outputs == code_cells(project.notebook())["two"].outputs

    project.translate(TEXT, '[words]\n"number" = "數"\n')
    assert run(project)[0] == 0
    shown = [code_cells(path)["one"].outputs[0].text for path in (project.notebook(), chinese)]
    assert shown == [f"number {2 / 3}\n", f"數 {2 / 3}\n"]


# Faults of the disk


@pytest.mark.parametrize(("step", "number"), [("fsync", errno.ENOSPC), ("replace", errno.EROFS)])
def test_a_disk_that_takes_no_more_leaves_the_old_notebook_and_no_part_of_a_new_one(
    run, executed, monkeypatch, step, number
):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    executed.store()
    before = executed.files()
    monkeypatch.setattr(os, step, refuse)
    code, said = run(executed)
    assert code == 1
    assert f"{executed.notebook()}: cannot be written: {os.strerror(number)}\n" in said
    assert executed.files() == before


def test_a_place_that_cannot_be_written_is_named_unless_it_only_remembers(run, project):
    project.write(**dict.fromkeys("abc", CODE))
    project.notebook("a").parent.parent.mkdir(parents=True)
    project.notebook("a").parent.write_bytes(OLD)  # a file in the place of the folder
    project.notebook("b").mkdir(parents=True)
    (project.root / "build").touch()
    code, said = run(project)
    assert (code, outcomes(said)) == (1, ["failed", "failed", "written"])
    for framework in "ab":
        assert f"{project.notebook(framework)}: cannot be written: " in said
    assert project.notebook("a").parent.read_bytes() == OLD
    assert run(project, "--framework", "c")[0] == 0


def test_a_terminal_gets_a_bar_and_the_whole_summary(run, project, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    bar, header, summary = run(project)[1].partition("notebook ")
    for words in ("\x1b[", "a/tiny", "━", "2/2"):
        assert words in bar
    assert "started" not in bar
    plain = re.sub(r"\x1b\[[\d;?]*\w", "", header + summary).split()
    assert "written" in plain
    assert "".join(plain).count("tiny.ipynb") == 1
