"""Test that ``make`` executes, writes and prints the right things, and that no error damages existing notebooks.

A kernel takes a second to start. So most tests execute cells in this process, and a test with kernels tests several
things at once.
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

from d2l_compat._shared.fonts import FONT
from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS
from tests.conftest import wait_for_exit, write_chapter
from tools.__main__ import main
from tools.run import fingerprints
from tools.run.execute import ExecutionError
from tools.run.fingerprints import compute_fingerprint
from tools.run.sharing import CodeCell
from tools.weave.lessons import ROOT, Notebook
from tools.weave.programs import PROGRAMMING_LANGUAGES

TEXT = "# Title\n\n- 0.123\n  - more\n\n<<one>>\n\n<<two>>\n"
CODE = "# %% one\nx = 2 / 3\nif x > 0.456:\n    print(x)\n\n# %% two\n[x, 7]\n"
OLD = b"the old notebook"


class Project:
    """A project with one tiny lesson."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lesson = root / "lessons" / "tiny"
        self.committed = root / "notebooks" / "fingerprints.json"
        self.executed_here = root / "build" / "executed.json"

    def write(self, text: str = TEXT, **codes: str) -> None:
        self.lesson.mkdir(parents=True, exist_ok=True)
        write_chapter(self.root, "tiny")
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
        """Edit the notebook; return its previous content."""
        before = self.notebook().read_bytes()
        assert old.encode() in before
        self.store(before.replace(old.encode(), new.encode()))
        return before

    def forget_execution(self) -> None:
        """Delete this machine's list of executed notebooks, as in a fresh clone."""
        self.executed_here.unlink()

    def set_proof_lesson(self) -> None:
        """Declare that the lesson is executed once on each machine."""
        chapter = self.root / "lessons" / "chapter.toml"
        chapter.write_text(chapter.read_text() + 'proof = "tiny"\n')

    def read_files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}

    def make_command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "tools", "--root", str(self.root), *arguments]


def read_outcomes(output: str) -> list[str]:
    """Return the last column of the table, and "Out of date" if a page is."""
    rows = output.partition("notebook ")[2].splitlines()[1:]
    column = [" ".join(row.split()[2:]).lstrip("0123456789. ") for row in rows if ".ipynb" in row]
    return [*column, *re.findall("Out of date", output)]


def read_code_cells(notebook: Path) -> dict[str, NotebookNode]:
    cells = nbformat.read(notebook, as_version=4).cells
    return {cell.id: cell for cell in cells if cell.cell_type == "code"}


async def execute_here(
    sources: list[str], _kernelspec: object, _limit: float, on_start: Callable[[int], None]
) -> list[list[NotebookNode]]:
    """Execute cells in this process instead of a kernel."""
    variables: dict[str, Any] = {}
    all_outputs = []
    for index, source in enumerate(sources):
        on_start(index)
        program = ast.parse(source)
        last = program.body.pop() if isinstance(program.body[-1], ast.Expr) else None
        value = None
        stdout = StringIO()
        try:
            with redirect_stdout(stdout):
                exec(compile(program, "cell", "exec"), variables)
                if last:
                    value = eval(compile(ast.Expression(last.value), "cell", "eval"), variables)
        except ArithmeticError as error:
            raise ExecutionError(index, repr(error)) from None
        outputs = []
        if stdout.getvalue():
            outputs.append(v4.new_output("stream", text=stdout.getvalue()))
        if value is not None:
            data = {"text/plain": repr(value)}
            outputs.append(v4.new_output("execute_result", data, execution_count=index + 1))
        all_outputs.append(outputs)
    return all_outputs


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run_with_kernels(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs ``python -m tools`` in this process, and returns its exit code and output."""

    def run_main(project: Project, *arguments: str) -> tuple[int, str]:
        code = main(["--root", str(project.root), *arguments])
        return code, capsys.readouterr().out

    return run_main


@pytest.fixture
def run(run_with_kernels: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the same function, but execute cells without kernels."""
    monkeypatch.setattr("tools.run.runner.execute", execute_here)
    return run_with_kernels


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.write()
    return project


@pytest.fixture
def executed_project(project: Project, run: Run) -> Project:
    run(project)
    return project


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def check_no_orphans() -> Iterator[None]:
    """Check that no kernel outlives the command, and that the environment is unchanged."""
    old_processes = psutil.Process().children(recursive=True)
    environment = dict(os.environ)
    yield
    new_processes = set(psutil.Process().children(recursive=True)) - set(old_processes)
    running = wait_for_exit(new_processes, seconds=1)
    for process in running:
        process.kill()
    assert not running
    set_by_pytest = "PYTEST_CURRENT_TEST"
    assert {**os.environ, set_by_pytest: ""} == {**environment, set_by_pytest: ""}


# With kernels: a page in two languages, and errors in a kernel


LONG_CODE = """\
# %% one
n, runs = 1, []

# %% two
runs.append("word")  # a comment
print("number", n)

# %% define
def greet():
    return "hello"


# %% use
print(greet(), "world")

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
SETTING_NAMES = ["own", "lines.linewidth", "inline", "PYTHONHASHSEED", "PIP_REQUIRE_HASHES"]
WORDS = """\
[words]
"word" = "詞"
"a comment" = "註解"
"number" = "數字"
"hello" = "你好"
"world" = "世界"
"""
LONG_TEXT = "# Title\n\n<<one>>\n\n<<two>>\n\n<<define>>\n\n<<use>>\n\n<<three>>\n"


@pytest.fixture
def translated_project(project: Project) -> Project:
    project.write(LONG_TEXT, a=LONG_CODE)
    project.translate(LONG_TEXT.replace("Title", "標題"), WORDS)
    return project


def test_a_page_is_executed_once_for_both_languages(
    run_with_kernels, translated_project, tmp_path, monkeypatch
):
    startup = tmp_path / "ipython" / "profile_default" / "startup" / "own.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("own = True")
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 7")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path / "matplotlibrc"))
    monkeypatch.setenv("MPLBACKEND", "template")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    text = f"{LONG_TEXT}\n<<settings>>\n\n<<environment>>\n"
    translated_project.write(text, a=LONG_CODE + SETTINGS)
    translated_project.translate(text, f"strings = {SETTING_NAMES}\n{WORDS}")
    old_files = translated_project.read_files().keys()
    code, output = run_with_kernels(translated_project)
    assert code == 0, output
    assert output.count("a/tiny: started") == 1
    assert read_outcomes(output) == ["written", "written"]
    notebooks = [translated_project.notebook(language=language) for language in ("en", "zh-TW")]
    new_files = {*notebooks, translated_project.committed, translated_project.executed_here}
    assert translated_project.read_files().keys() == old_files | new_files

    for notebook in notebooks:
        node = nbformat.read(notebook, as_version=4)
        nbformat.validate(node)
        assert node.metadata.language_info == {"name": "python"}  # without the version
        assert [cell.execution_count for cell in read_code_cells(notebook).values()] == [
            *range(1, 8)
        ]
    english, chinese = map(read_code_cells, notebooks)
    assert [cells["two"].outputs[0].text for cells in (english, chinese)] == [
        "number 1\n",
        "數字 1\n",
    ]
    # Each language has its own definitions.
    assert english["use"].outputs[0].text == "hello world\n"
    assert chinese["use"].outputs[0].text == "你好 世界\n"
    # A cell with words is executed twice, a cell whose comments differ once.
    for cells in (english, chinese):
        assert cells["three"].outputs[0].data == {"text/plain": "4"}
    # The user's settings have no effect, and pip installs only what is in the locks.
    assert english["settings"].outputs[0].data["text/plain"] == "(False, 1.5, True)"
    assert english["environment"].outputs[0].data["text/plain"] == "['0', '1']"

    files = translated_project.read_files()
    code, output = run_with_kernels(translated_project)
    assert (code, read_outcomes(output), "started" in output) == (0, [], False)
    code, output = run_with_kernels(translated_project, "--always")
    assert (code, read_outcomes(output)) == (0, ["same results"] * 2)
    assert translated_project.read_files() == files


CHAINED_ERROR = """\
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
MISSING_PACKAGE = """\
# %% one
from d2l_compat import _install

_install.find_spec = lambda module: None
_install._install = print
_install.install("jax")

# %% two
2
"""
# Each program with the line that fails, and a part of the message.
FAILING_PROGRAMS = {
    "lacks": (
        MISSING_PACKAGE,
        6,
        "and D2L_COMPAT_INSTALL=never: run `make env FRAMEWORKS=jax` in the pro",
    ),
    "raises": ("# %% one\n1\n\n# %% two\n\n\nx = 1\n1 / 0\n", 8, "ZeroDivisionError: division by"),
    "calls": (CHAINED_ERROR, 13, "ValueError: no"),
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


def test_an_error_is_reported_with_its_line_and_other_pages_are_executed(run_with_kernels, project):
    codes = {name: code for name, (code, *_) in FAILING_PROGRAMS.items()}
    project.write(a=CODE, unreadable="\xe9", **codes)
    for name in codes:
        project.store(framework=name)
    code, output = run_with_kernels(project, "--jobs", "2")
    assert code == 1
    assert read_outcomes(output).count("failed") == len(FAILING_PROGRAMS) + 1
    for name, (_, line, words) in FAILING_PROGRAMS.items():
        location = f"{project.lesson / f'code.{name}.py'}:{line}: in en/{name}/tiny, "
        assert f"\n{location}" in output, output
        assert words in output.partition(location)[2].partition(f"{project.lesson}")[0]
        assert project.notebook(name).read_bytes() == OLD
        assert f'"en/{name}/tiny"' not in project.committed.read_text()
    assert "\x1b" not in output
    assert read_code_cells(project.notebook())["one"].outputs[0].text == f"{2 / 3}\n"


def test_an_endless_cell_is_stopped_at_the_time_limit(run_with_kernels, project):
    project.write(a="# %% one\nwhile True:\n    pass\n\n# %% two\n2\n")
    code, output = run_with_kernels(project, "--timeout", "3")
    assert code == 1
    assert "code.a.py:2: in en/a/tiny, cell 'one': over the limit of 3 s for the notebook" in output


def test_a_missing_kernel_is_reported(run_with_kernels, project, monkeypatch):
    monkeypatch.setitem(PROGRAMMING_LANGUAGES[".py"].kernelspec, "name", "no-such-kernel")
    project.store()
    before = project.read_files()
    code, output = run_with_kernels(project)
    assert code == 1
    assert f"{project.lesson / 'code.a.py'}:2: in en/a/tiny, cell 'one': " in output
    assert "No such kernel named no-such-kernel" in output
    assert project.read_files() == before


def test_user_settings_are_ignored_and_a_pipe_gets_plain_lines(project, tmp_path):
    long_folder = tmp_path / ("long" * 40)  # too long a path for a socket
    long_folder.mkdir()
    project.write("<<one>>\n", a="# %% one\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n")
    shell = {**os.environ, "MPLBACKEND": "no-such-backend", "TMPDIR": str(long_folder)}
    process = subprocess.run(
        project.make_command(), cwd=ROOT, env=shell, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, ""), process.stdout
    assert process.stdout.startswith("a/tiny: started\na/tiny: executed\nnotebook ")
    assert "\x1b" not in process.stdout
    assert not [*long_folder.iterdir()]


def test_ctrl_c_stops_all_pages_and_keeps_the_old_notebooks(project, interrupt):
    program = "# %% one\nimport time\n\nopen({!r}, 'w').close()\ntime.sleep(1000)\n"
    start_files = {framework: project.root / f"started-{framework}" for framework in "ab"}
    project.write(
        "<<one>>\n", **{name: program.format(str(file)) for name, file in start_files.items()}
    )
    for framework in start_files:
        project.store(framework=framework)
    before = project.read_files()
    runner = subprocess.Popen(
        project.make_command("--jobs", "2", "--timeout", "1000"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = interrupt(
        runner, [*start_files.values()], lambda: runner.send_signal(signal.SIGINT), min_children=2
    )
    assert runner.returncode == 130
    assert "Traceback" not in output
    assert project.read_files() == before | dict.fromkeys(start_files.values(), b"")


# Which pages are executed and written


@pytest.mark.parametrize(
    ("value", "outcome"), [(0.666666, "same results"), (0.65, "written"), (-2 / 3, "written")]
)
def test_an_edited_output_is_replaced_only_with_always(run, executed_project, value, outcome):
    original = executed_project.replace(str(2 / 3), str(value))
    before = executed_project.read_files()
    assert "started" not in run(executed_project)[1]
    assert executed_project.read_files() == before
    output = run(executed_project, "--always")[1]
    assert read_outcomes(output) == [outcome]
    assert (f"a/tiny, cell one: '{2 / 3}' instead of '{value}'" in output) == (outcome == "written")
    assert (executed_project.notebook().read_bytes() == original) == (outcome == "written")
    assert (executed_project.read_files() == before) == (outcome == "same results")


def test_an_ignored_output_is_replaced_only_with_new_code(run, project):
    code = '# %% one\nimport uuid\n\n# %% two tags=["nbval-ignore-output"]\nuuid.uuid4().hex\n'
    project.write(a=code)
    run(project)
    stored = project.notebook().read_bytes()
    assert read_outcomes(run(project, "--always")[1]) == ["same results"]
    assert project.notebook().read_bytes() == stored
    project.write(a=code.replace("import uuid", "import uuid as other\n\nuuid = other"))
    assert read_outcomes(run(project)[1]) == ["written"]


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        pytest.param("- 0.123", "- 0.124", "woven", id="a number in the text"),
        pytest.param("    print", "  print", "written", id="spaces in the code"),
        pytest.param('"nbformat": 4', '"nbformat": 3', "written", id="an invalid notebook"),
        pytest.param("{", "", "written", id="damaged"),
    ],
)
def test_a_notebook_that_was_edited_by_hand_is_restored(run, executed_project, old, new, outcome):
    original = executed_project.replace(old, new)
    output = run(executed_project)[1]
    assert (read_outcomes(output), "started" in output) == ([outcome], outcome == "written")
    assert executed_project.notebook().read_bytes() == original


def test_nothing_is_executed_in_a_fresh_clone(run, executed_project):
    executed_project.forget_execution()
    before = executed_project.read_files()
    code, output = run(executed_project)
    assert (code, read_outcomes(output), "started" in output) == (0, [], False)
    assert "1 pages are up to date (make ALWAYS=1 executes all)" in output
    assert executed_project.read_files() == before


def test_the_proof_lesson_is_executed_once_on_each_machine(run, executed_project):
    executed_project.set_proof_lesson()
    executed_project.forget_execution()
    stored = executed_project.notebook().read_bytes()
    assert re.search(
        r"^a: works here, \d+ s, same results$", run(executed_project)[1], re.MULTILINE
    )
    assert executed_project.notebook().read_bytes() == stored
    assert "started" not in run(executed_project)[1]

    executed_project.forget_execution()
    executed_project.replace(str(2 / 3), "0.65")
    edited = executed_project.notebook().read_bytes()
    for _ in range(2):
        code, output = run(executed_project)
        assert code == 1
        assert re.search(r"^a: works here, \d+ s, other results$", output, re.MULTILINE)
        assert f"a/tiny, cell one: '{2 / 3}' instead of '0.65'\n" in output
        assert executed_project.notebook().read_bytes() == edited
    assert run(executed_project, "--always")[0] == 0
    assert executed_project.notebook().read_bytes() == stored


def test_a_failed_page_is_executed_again(run, project):
    project.write(a="# %% one\n1 / 0\n\n# %% two\n2\n")
    project.set_proof_lesson()
    for _ in range(2):
        code, output = run(project)
        assert (code, output.count("started")) == (1, 1)
        assert "\na: does not work here, see above\n" in output
    assert not project.committed.exists()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param("text.en.md", "Title", "Title, and more", id="a sentence"),
        pytest.param("code.a.py", "n, runs", "# a comment\nn, runs", id="a comment"),
        pytest.param("words.zh-TW.toml", "註解", "新的註解", id="a translated comment"),
    ],
)
def test_changed_texts_and_comments_are_woven_without_execution(
    run, translated_project, file, old, new
):
    run(translated_project)
    translated_project.forget_execution()
    path = translated_project.lesson / file
    path.write_text(path.read_text("utf-8").replace(old, new), encoding="utf-8")
    before = read_code_cells(translated_project.notebook())
    code, output = run(translated_project)
    assert (code, {*read_outcomes(output)}, "started" in output) == (0, {"woven"}, False)
    notebooks = [translated_project.notebook(language=language) for language in ("en", "zh-TW")]
    assert any(new.splitlines()[0] in notebook.read_text("utf-8") for notebook in notebooks)
    for name, cell in read_code_cells(translated_project.notebook()).items():
        assert cell.outputs == before[name].outputs


def test_only_changed_pages_of_chosen_frameworks_are_executed(run, project):
    project.write(**dict.fromkeys("ab", CODE))
    assert read_outcomes(run(project)[1]) == ["written", "written"]
    project.write(TEXT.replace("- more", "- more than that"))
    output = run(project, "--framework", "a")[1]
    assert (read_outcomes(output), "started" in output) == (["woven", "woven"], False)
    assert "- more than that" in project.notebook("b").read_text()

    project.write(TEXT.replace("- more", "- more than that"), b=CODE.replace("x, 7", "x, 8"))
    before = project.read_files()
    code, output = run(project, "--framework", "a")
    assert (code, "started" in output) == (0, False)
    assert "Out of date, but their frameworks were not chosen: en/b/tiny" in output
    assert project.read_files() == before
    output = run(project)[1]
    assert (read_outcomes(output), output.count("started")) == (["written"], 1)
    assert "b/tiny: started" in output


# Fingerprints


def test_a_damaged_fingerprint_file_is_rewritten(run, executed_project):
    original = executed_project.committed.read_text()
    damaged_texts = ["", "{}", "[]", original[:-9], '{"en/a/tiny": 1}', '{"en/a/tiny": {"x": 1}}']
    for text in [*damaged_texts, original.replace('"sources": "', '"sources": "0')]:
        executed_project.forget_execution()
        executed_project.committed.write_text(text)
        output = run(executed_project)[1]
        assert (output.count("started"), read_outcomes(output)) == (1, ["same results"])
        assert executed_project.committed.read_text() == original
        assert "started" not in run(executed_project)[1]


TORCH = {"torch": "2"}


@pytest.mark.parametrize(
    ("packages", "locked", "conditional", "is_replaced"),
    [
        pytest.param(TORCH, "12", (), False, id="another Python's versions in the lock"),
        pytest.param(TORCH, "2", (), True, id="an updated lock"),
        pytest.param(TORCH | {"more": "1"}, "12", (), True, id="a new package"),
        pytest.param(TORCH | {"more": "1"}, "12", ("more",), False, id="on this Python only"),
    ],
)
def test_pages_are_executed_once_with_other_package_versions(
    run, project, monkeypatch, packages, locked, conditional, is_replaced
):
    def install(packages: dict[str, str], locked: str) -> None:
        versions = frozenset(("torch", version) for version in locked)
        monkeypatch.setattr(fingerprints, "list_installed_packages", lambda _: packages)
        monkeypatch.setattr("tools.run.runner.read_locked_versions", lambda _: versions)
        monkeypatch.setattr("tools.run.runner.list_conditional_packages", lambda _: {*conditional})

    install({"torch": "1"}, "1")
    run(project)
    notebook, fingerprint = project.notebook().read_bytes(), project.committed.read_text()
    install(packages, locked)
    output = run(project)[1]
    assert (output.count("started"), read_outcomes(output)) == (1, ["same results"])
    assert project.notebook().read_bytes() == notebook
    assert (project.committed.read_text() != fingerprint) == is_replaced
    assert "started" not in run(project)[1]


@pytest.mark.parametrize(
    ("framework", "suffix", "mark"), [("pytorch", "py", "#"), ("djl", "java", "//")]
)
def test_a_fingerprint_depends_on_code_and_shim_but_not_comments(
    tmp_path, monkeypatch, framework, suffix, mark
):
    assert any(file.suffix == f".{suffix}" for file in fingerprints.find_shim_sources(framework))
    file = tmp_path / f"plots.{suffix}"
    (tmp_path / f"code.{framework}.{suffix}").touch()
    monkeypatch.setattr(fingerprints, "ROOT", tmp_path)
    monkeypatch.setattr(fingerprints, "find_shim_sources", lambda _: [file])

    def compute_sources(cell: str, shim: str) -> str:
        file.write_text(shim)
        fingerprints._digest.cache_clear()
        return compute_fingerprint(
            Notebook(tmp_path, "en", framework), [CodeCell("one", cell)]
        ).sources

    original = compute_sources("f(x);", f"x = 1; {mark} a comment")
    assert compute_sources(f"f(x); {mark} a comment", f"x = 1; {mark} another") == original
    assert compute_sources("f(y);", "x = 1;") != original
    assert compute_sources("f(x);", "x = 2;") != original


@pytest.mark.parametrize(
    ("framework", "suffix", "cell", "is_changed"),
    [
        pytest.param(
            "pytorch", "py", "plot('新字')", True, id="a new character that the page uses"
        ),
        pytest.param(
            "pytorch", "py", "plot('字')  # 新", False, id="a new character of other pages"
        ),
        pytest.param("djl", "java", 'plot("新字");', False, id="Java, whose letters are text"),
    ],
)
def test_a_new_character_in_the_font_changes_the_pages_that_use_it(
    tmp_path, monkeypatch, framework, suffix, cell, is_changed
):
    (tmp_path / f"code.{framework}.{suffix}").touch()
    before, after = [], []
    for sources, characters in ((before, "字"), (after, "字新")):
        monkeypatch.setattr(fingerprints, "list_font_characters", lambda each=characters: {*each})
        notebook = Notebook(tmp_path, "zh-TW", framework)
        sources.append(compute_fingerprint(notebook, [CodeCell("one", cell)]).sources)
    assert (before != after) == is_changed
    assert FONT not in fingerprints.find_shim_sources(framework)


SLOW_TO_IMPORT = {"jax", "mxnet", "paddle", "tensorflow"}


@pytest.mark.parametrize(
    "framework",
    [
        pytest.param(name, marks=[pytest.mark.release] if name in SLOW_TO_IMPORT else [])
        for name in PYTHON_FRAMEWORKS
    ],
)
def test_a_fingerprint_covers_all_imported_sources_and_packages(framework):
    """Check that the sources include every module that the import loads, and no other framework's."""
    module = FRAMEWORKS[framework].module
    program = (
        f"import sys, d2l_compat.{module}\n"
        "print(*(m.__file__ for name, m in sys.modules.items() if name[:10] == 'd2l_compat'))"
    )
    try:
        output = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)
    except subprocess.CalledProcessError:
        pytest.skip(f"{framework} is not installed")
    sources = {str(file) for file in fingerprints.find_shim_sources(framework)}
    assert {*output.split()} <= sources
    other_modules = {each.module for each in FRAMEWORKS.values()} - {module}
    assert [file for file in sources if Path(file).parent.name in other_modules] == []
    needed = {"numpy", *(package.distribution for package in PYTHON_FRAMEWORKS[framework].packages)}
    assert needed <= fingerprints.list_installed_packages(framework).keys()
    assert needed <= {name for name, _ in fingerprints.read_locked_versions(framework)}


# Several languages


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            'print("number", n)',
            'n += 1\nprint("number", n)',
            ":5: in en/a/tiny, cell 'two': in zh-TW it does not show the same as in en: "
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
            "runs += [1]\nprint(greet())",
            ":17: in en/a/tiny, cell 'three': in en it shows '你好', of another language",
            id="words of a function",
        ),
        pytest.param(
            'number", n',
            'number", 1 / (len(runs) < 2)',
            ":5: in zh-TW/a/tiny, cell 'two': ZeroDivisionError",
            id="an error in one language",
        ),
    ],
)
def test_a_cell_has_to_show_the_same_in_every_language(run, translated_project, old, new, message):
    translated_project.write(LONG_TEXT, a=LONG_CODE.replace(old, new))
    translated_project.store()
    code, output = run(translated_project)
    assert (code, output.count("failed")) == (1, 2)
    assert " ".join(output.split()).count(message) == 1, output
    assert translated_project.notebook().read_bytes() == OLD
    assert not translated_project.notebook(language="zh-TW").exists()


def test_outputs_are_kept_or_replaced_in_all_languages_together(run, project):
    """If only one language kept its outputs, two languages might show the numbers of different processors."""
    project.write(TEXT, a=CODE.replace("print(x)", 'print("number", x)'))
    project.translate(TEXT, '[words]\n"number" = "數字"\n')
    run(project)
    chinese = project.notebook(language="zh-TW")
    project.replace(str(2 / 3), "0.66666667")
    stored = project.notebook().read_bytes()
    assert read_outcomes(run(project, "--always")[1]) == ["same results", "woven"]
    assert project.notebook().read_bytes() == stored
    assert (
        read_code_cells(chinese)["two"].outputs
        == read_code_cells(project.notebook())["two"].outputs
    )

    project.translate(TEXT, '[words]\n"number" = "數"\n')
    assert run(project)[0] == 0
    printed = [
        read_code_cells(path)["one"].outputs[0].text for path in (project.notebook(), chinese)
    ]
    assert printed == [f"number {2 / 3}\n", f"數 {2 / 3}\n"]


# Disk errors


@pytest.mark.parametrize(("step", "number"), [("fsync", errno.ENOSPC), ("replace", errno.EROFS)])
def test_a_full_disk_leaves_the_old_notebook_complete(
    run, executed_project, monkeypatch, step, number
):
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    executed_project.store()
    before = executed_project.read_files()
    monkeypatch.setattr(os, step, fail)
    code, output = run(executed_project)
    assert code == 1
    assert f"{executed_project.notebook()}: cannot be written: {os.strerror(number)}\n" in output
    assert executed_project.read_files() == before


def test_an_unwritable_notebook_is_reported_but_not_an_unwritable_cache(run, project):
    project.write(**dict.fromkeys("abc", CODE))
    project.notebook("a").parent.parent.mkdir(parents=True)
    project.notebook("a").parent.write_bytes(OLD)  # a file instead of the folder
    project.notebook("b").mkdir(parents=True)
    (project.root / "build").touch()
    code, output = run(project)
    assert (code, read_outcomes(output)) == (1, ["failed", "failed", "written"])
    for framework in "ab":
        assert f"{project.notebook(framework)}: cannot be written: " in output
    assert project.notebook("a").parent.read_bytes() == OLD
    assert run(project, "--framework", "c")[0] == 0


def test_a_terminal_shows_a_progress_bar_and_a_summary(run, project, monkeypatch):
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
