"""Test that a tiny lesson is woven correctly, and that each error is reported with file and line."""

import errno
import os
import re
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tests.conftest import write_chapter
from tools.__main__ import main
from tools.compare.pixels import render_png
from tools.weave.lessons import LessonError, Notebook, list_notebooks
from tools.weave.notebooks import weave

TEXT = "# Title\n\n<<one>>\n"
CODE = "# %% one\n1\n"
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg"/>'

Weave = Callable[..., NotebookNode]


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    """Return the folder of a lesson in two frameworks, which has no text yet."""
    lesson = tmp_path / "lessons" / "tiny"
    (lesson / "live").mkdir(parents=True)
    write_chapter(tmp_path, "tiny")
    for framework in "ab":
        (lesson / f"code.{framework}.py").write_text(CODE)
    for figure in ("wheel", "dial"):
        (lesson / "live" / f"{figure}.js").touch()
    return lesson


@pytest.fixture
def weave_lesson(lesson: Path, monkeypatch: pytest.MonkeyPatch) -> Weave:
    """Return a function that weaves the lesson with a text and code; change to the lesson's folder."""
    monkeypatch.chdir(lesson)

    def weave_texts(text: str = TEXT, code: str = CODE, framework: str = "a") -> NotebookNode:
        (lesson / "text.en.md").write_text(text, encoding="utf-8")
        (lesson / f"code.{framework}.py").write_text(code, encoding="utf-8")
        return weave(Notebook(lesson, "en", framework))

    return weave_texts


def list_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the lesson's cells, without the credit line at the end of every notebook."""
    *cells, last = notebook.cells
    assert "CC BY 4.0" in last.source
    return cells


def list_sources(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in list_cells(notebook)]


# The woven notebook


def test_cells_are_inserted_where_the_text_asks_for_them(weave_lesson):
    text = "# Title\n\nBefore.\n\n<<two>>\n\nBetween.\n\n<< one >>\n<<three>>\n\nAfter.\n"
    two = '# %% two tags=["nbval-ignore-output", "hide"]\n2\n\n\ndef f():\n    return 2\n\n\n'
    code = f"# %% one\n1\n\n{two}# %% three\n3\n"
    notebook = weave_lesson(text, code)
    assert [(cell.id, cell.cell_type, cell.source) for cell in list_cells(notebook)] == [
        ("text-01", "markdown", "# Title\n\nBefore."),
        ("two", "code", "2\n\n\ndef f():\n    return 2"),
        ("text-02", "markdown", "Between."),
        ("one", "code", "1"),
        ("three", "code", "3"),
        ("text-03", "markdown", "After."),
    ]
    assert notebook.cells[1].metadata == {"tags": ["nbval-ignore-output", "hide"]}
    metadata = notebook.metadata.d2l_compat
    assert (metadata.lesson, metadata.language, metadata.framework) == ("tiny", "en", "a")
    assert notebook.metadata.kernelspec.name == "python3"
    nbformat.validate(notebook)
    assert nbformat.writes(weave_lesson(text, code)) == nbformat.writes(notebook)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "# Title\nA\n## Part\nB\n\n###### Small\n#hashtag\n<<one>>\n",
            ["# Title\nA", "## Part\nB", "###### Small\n#hashtag", "1"],
            id="a heading begins a cell",
        ),
        pytest.param(
            "# Title\n\n<<one>>\t\u3000 \n:::{slide}\n# Slide\n<<one output>>  \n:::\n",
            ["# Title", "1"],
            id="spaces after a cell's name",
        ),
        pytest.param("\ufeff# Title\n<<one>>\n", ["# Title", "1"], id="a byte order mark"),
    ],
)
def test_prose_is_split_into_cells(weave_lesson, text, expected):
    assert list_sources(weave_lesson(text, f"\ufeff{CODE}")) == expected


def test_jupyterlab_folds_the_solutions(weave_lesson):
    text = "# Title\n\n## Part\nText.\n\n## Solutions\n\n### 1. One\n\nText.\n<<one>>\n"
    folded = [
        cell.source
        for cell in list_cells(weave_lesson(text))
        if cell.metadata.get("jp-MarkdownHeadingCollapsed")
    ]
    assert folded == ["## Solutions"]


@pytest.mark.parametrize(
    ("framework", "headings"), [("a", ["For a.", "For both."]), ("b", ["For b.", "For both."])]
)
def test_a_block_is_shown_in_its_frameworks(weave_lesson, framework, headings):
    text = (
        "<<one>>\n\n:::{only} a\n## For a.\n\n<<more>>\n:::\n"
        ":::{only} b\n## For b.\n:::\n:::{only} a b\n## For both.\n:::\n"
    )
    code = CODE + "\n# %% more\n2\n" * (framework == "a")
    notebook = weave_lesson(text, code, framework)
    prose = [cell.source for cell in list_cells(notebook) if cell.cell_type == "markdown"]
    assert prose == [f"## {heading}" for heading in headings]
    assert ("more" in [cell.id for cell in list_cells(notebook)]) == (framework == "a")


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_code_fences_and_formulas_are_not_parsed(weave_lesson, fence):
    example = "<<two>>\n:::{only} a\n:::\n# %% two\n$$\n# Not\n![x](x.svg)"
    prose = f"{fence}text\n{example}\n{fence}\n$$x$$\n$$\nx\n$$\n$$x,\n<<two>>\n:::\n# y$$"
    assert list_sources(weave_lesson(f"{prose}\n<<one>>\n")) == [prose, "1"]


def test_local_images_are_embedded_with_alternative_text(weave_lesson, lesson):
    (lesson / "a b.svg").write_bytes(DRAWING)
    external_image = "![x](https://example.org/x.png)"
    text = f'{external_image} ![Is "x" <\ny & z?](a b.svg)\n\nafter\n<<one>>\n'
    prose, _ = list_sources(weave_lesson(text))
    data = b64encode(render_png(DRAWING.decode())).decode()
    alt = "Is &quot;x&quot; &lt; y &amp; z?"
    image = f'<img src="data:image/png;base64,{data}" width="100" alt="{alt}">'
    assert prose == f"{external_image} {image}\n\nafter"


# Errors


MISSING = f"image missing.svg: {os.strerror(errno.ENOENT)}"


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ("<<two>>", 4, "unknown cell 'two'"),
        ("<<one>>", 4, "is inserted twice, first on line 3"),
        ("<<>>", 4, "a cell named ''"),
        (":::{only} b\n<<Two_>>\n:::", 5, "a cell named 'Two_'"),  # another framework's block
        (":::{only} a\nx", 4, "its ::: is missing"),
        (":::{only} a\n:::{only} b\n:::\n:::", 5, "a block within the block of line 4"),
        (":::{only} a c\n:::", 4, "no framework 'c'; there are"),
        (":::{only}\n:::", 4, "no framework ''"),
        (":::", 4, "without a beginning"),
        ("```python\nx\n~~~", 4, "``` is never closed"),
        ("$$\nx", 4, "$$ is never closed"),
        (":::{live} clock\n:::", 4, "no live figure 'clock'"),
        (":::{slide}\n<<live clock>>\n:::", 5, "no live figure 'clock'; there are: "),
        ("<<live clock>>", 4, "a cell named 'live clock'"),
        ("One\ntwo ![x](missing.svg)", 5, MISSING),
    ],
)
def test_an_error_in_a_text_is_reported_with_its_line(weave_lesson, more, line, words):
    with pytest.raises(LessonError) as caught:
        weave_lesson(f"{TEXT}{more}\n")
    assert str(caught.value).startswith(f"text.en.md:{line}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        (f"{CODE}\n# %% two\n2\n", 4, "unused cell 'two'"),
        (f"{CODE}\n{CODE}", 4, "is defined twice, first on line 1"),
        (f"# About.\n\nimport os\n{CODE}", 3, "before the first cell"),
        (f"{CODE}# %% Two_\n", 3, "named 'Two_': need # %% NAME"),
        (f"{CODE}# %% [markdown]\n# Hi\n", 3, "need # %% NAME"),
        # The ids of prose cells, and nbformat's limit for ids.
        ("# %% text-01\n1\n", 1, "'text-01'"),
        (f"# %% {'a' * 65}\n1\n", 1, "named 'aaa"),
        # jupytext would parse these two differently.
        ('# %% one\nx = """\n# %% two\n"""\n', 3, "'two'"),
        ("# %% one\n# %%time\n1\n", 2, "a cell named '': need # %% NAME"),
    ],
)
def test_an_error_in_the_code_is_reported_with_its_line(weave_lesson, code, line, words):
    text = "".join(f"<<{name}>>\n" for name in re.findall("# %% (text-01|a+)", code))
    with pytest.raises(LessonError) as caught:
        weave_lesson(text or TEXT, code)
    assert str(caught.value).startswith(f"code.a.py:{line}: ")
    assert words in str(caught.value)


def delete(file: Path) -> None:
    file.unlink()


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def write_latin_1(file: Path) -> None:
    file.write_bytes(b"# %% one\n\n# caf\xe9\n")


@pytest.mark.parametrize("name", ["text.en.md", "code.a.py"])
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (delete, f": cannot be read: {os.strerror(errno.ENOENT)}"),
        (replace_by_folder, f": cannot be read: {os.strerror(errno.EISDIR)}"),
        (write_latin_1, ":3: cannot be read: not UTF-8"),
    ],
)
def test_an_unreadable_file_is_reported(weave_lesson, lesson, name, harm, words):
    weave_lesson()
    harm(lesson / name)
    with pytest.raises(LessonError) as caught:
        weave(Notebook(lesson, "en", "a"))
    assert str(caught.value) == f"{name}{words}"


# The list of notebooks


def test_existing_or_requested_notebooks_are_listed(weave_lesson, lesson, tmp_path):
    weave_lesson()
    (lesson / "text.zh-TW.md").write_text(TEXT)
    names = [str(notebook) for notebook in list_notebooks(root=tmp_path)]
    assert names == ["en/a/tiny", "en/b/tiny", "zh-TW/a/tiny", "zh-TW/b/tiny"]
    (requested,) = list_notebooks(["zh-TW"], ["b", "b"], tmp_path)
    assert requested.path == tmp_path / "notebooks" / "zh-TW" / "b" / "tiny.ipynb"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--language", "fr"], "no language 'fr'; there are: en"),
        (["--framework", "a", "--framework", "c"], "no framework 'c'; there are: a, b"),
    ],
)
def test_an_unknown_choice_is_rejected(weave_lesson, tmp_path, capsys, arguments, words):
    weave_lesson()
    assert main(["--root", str(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().out
    assert not (tmp_path / "notebooks").exists()


# Several languages

HELLO = '# %% one\n"hello"\n\n# %% two\n2\n'
WORDS = '[words]\n"hello" = "hallo"\n'
ENGLISH = "# Title\n\n<<one>>\n\n## Part\n\n<<two>>\n"
GERMAN = "# Titel\n\n<<one>>\n\n## Teil\n\n<<two>>\n"


@pytest.fixture
def weave_german(weave_lesson: Weave, lesson: Path) -> Callable[..., NotebookNode]:
    """Return a function that weaves a German text next to an English one."""

    def weave_languages(text: str, code: str = HELLO, english: str = ENGLISH) -> NotebookNode:
        (lesson / "text.de.md").write_text(text, encoding="utf-8")
        (lesson / "words.de.toml").write_text(WORDS, encoding="utf-8")
        weave_lesson(english, code)
        return weave(Notebook(lesson, "de", "a"))

    return weave_languages


def test_code_is_translated(weave_german, lesson):
    notebook = weave_german(GERMAN)
    assert list_sources(notebook) == ["# Titel", '"hallo"', "## Teil", "2"]
    assert [cell.id for cell in list_cells(notebook)] == ["text-01", "one", "text-02", "two"]
    english = weave(Notebook(lesson, "en", "a"))
    assert list_sources(english) == ["# Title", '"hello"', "## Part", "2"]


BLOCK = "\n:::{only} b\n## More\n:::\n"
SLIDE = "\n:::{slide}\n## More\n<<live wheel>>\n:::\n"


@pytest.mark.parametrize(
    ("text", "more_english", "message"),
    [
        (
            "# T\n\n<<two>>\n\n## T\n\n<<one>>\n",
            "",
            ":3: cell 'two', where text.en.md has cell 'one' (line 3)",
        ),
        (
            GERMAN.replace("##", "###"),
            "",
            ":5: a heading ###, where text.en.md has a heading ## (line 5)",
        ),
        (f"{GERMAN}\n## Mehr\n", "", ":9: a heading ##, where text.en.md has the end"),
        (
            GERMAN.removesuffix("\n<<two>>\n"),
            "",
            ": the end, where text.en.md has cell 'two' (line 7)",
        ),
        (GERMAN, BLOCK, ": the end, where text.en.md has a block {only} b (line 9)"),
        (
            GERMAN + BLOCK.replace("b", "a b", 1),
            BLOCK,
            ":9: a block {only} a b, where text.en.md has a block {only} b (line 9)",
        ),
        (
            GERMAN + BLOCK.replace("##", "###"),
            BLOCK,
            ":10: a heading ###, where text.en.md has a heading ## (line 10)",
        ),
        (
            GERMAN + SLIDE.replace("wheel", "dial"),
            SLIDE,
            ":11: live figure 'dial', where text.en.md has live figure 'wheel' (line 11)",
        ),
    ],
)
def test_a_text_has_to_follow_the_english_order(weave_german, text, more_english, message):
    with pytest.raises(LessonError) as caught:
        weave_german(text, english=ENGLISH + more_english)
    assert str(caught.value) == f"text.de.md{message}"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            HELLO.replace("hello", "hello world"),
            "code.a.py:2: no entry for 'world' in words.de.toml",
        ),
        (HELLO.replace("hello", "7"), "words.de.toml:2: no code file needs 'hello'"),
    ],
    ids=["an English word", "an unused entry"],
)
def test_an_error_in_the_translations_is_reported(weave_german, code, words):
    with pytest.raises(LessonError) as caught:
        weave_german(GERMAN, code)
    assert str(caught.value) == words
