"""Weaving: what a tiny lesson becomes, and how each of its faults is named with file and line."""

import errno
import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tests.conftest import list_lessons
from tools.__main__ import main
from tools.compare.pictures import as_png
from tools.weave.lessons import Edition, LessonError, editions
from tools.weave.notebooks import weave

TEXT = "# Title\n\n<<one>>\n"
CODE = "# %% one\n1\n"
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg"/>'

Weave = Callable[..., NotebookNode]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lesson without a text, in two frameworks."""
    lesson = tmp_path / "lessons" / "tiny"
    (lesson / "live").mkdir(parents=True)
    list_lessons(tmp_path, "tiny")
    for framework in "ab":
        (lesson / f"code.{framework}.py").write_text(CODE)
    for figure in ("wheel", "dial"):
        (lesson / "live" / f"{figure}.js").touch()
    return lesson


@pytest.fixture
def woven(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Weave:
    """Weaves a lesson of the given text and code, seen from its own folder."""
    monkeypatch.chdir(folder)

    def weave_lesson(text: str = TEXT, code: str = CODE, framework: str = "a") -> NotebookNode:
        (folder / "text.en.md").write_text(text, encoding="utf-8")
        (folder / f"code.{framework}.py").write_text(code, encoding="utf-8")
        return weave(Edition(folder, "en", framework))

    return weave_lesson


def cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Those of the lesson; after them all, whatever it is, comes the one that says whose it is."""
    *of_the_lesson, last = notebook.cells
    assert "CC BY 4.0" in last.source
    return of_the_lesson


def sources(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in cells(notebook)]


# What a lesson becomes


def test_cells_stand_where_the_text_asks_for_them(woven):
    text = "# Title\n\nBefore.\n\n<<two>>\n\nBetween.\n\n<< one >>\n<<three>>\n\nAfter.\n"
    two = '# %% two tags=["nbval-ignore-output", "hide"]\n2\n\n\ndef f():\n    return 2\n\n\n'
    code = f"# %% one\n1\n\n{two}# %% three\n3\n"
    notebook = woven(text, code)
    assert [(cell.id, cell.cell_type, cell.source) for cell in cells(notebook)] == [
        ("text-01", "markdown", "# Title\n\nBefore."),
        ("two", "code", "2\n\n\ndef f():\n    return 2"),
        ("text-02", "markdown", "Between."),
        ("one", "code", "1"),
        ("three", "code", "3"),
        ("text-03", "markdown", "After."),
    ]
    assert notebook.cells[1].metadata == {"tags": ["nbval-ignore-output", "hide"]}
    about = notebook.metadata.d2l_compat
    assert (about.lesson, about.language, about.framework) == ("tiny", "en", "a")
    assert notebook.metadata.kernelspec.name == "python3"
    nbformat.validate(notebook)
    assert nbformat.writes(woven(text, code)) == nbformat.writes(notebook)


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
            id="blanks after a wish are none of it",
        ),
        pytest.param(
            "\ufeff# Title\n<<one>>\n", ["# Title", "1"], id="nor is a byte order mark of a file"
        ),
    ],
)
def test_prose_comes_in_cells(woven, text, expected):
    assert sources(woven(text, f"\ufeff{CODE}")) == expected


@pytest.mark.parametrize(
    ("framework", "kept"), [("a", ["For a.", "For both."]), ("b", ["For b.", "For both."])]
)
def test_a_block_is_kept_for_its_frameworks(woven, framework, kept):
    text = (
        "<<one>>\n\n:::{only} a\n## For a.\n\n<<more>>\n:::\n"
        ":::{only} b\n## For b.\n:::\n:::{only} a b\n## For both.\n:::\n"
    )
    code = CODE + "\n# %% more\n2\n" * (framework == "a")
    notebook = woven(text, code, framework)
    prose = [cell.source for cell in cells(notebook) if cell.cell_type == "markdown"]
    assert prose == [f"## {words}" for words in kept]
    assert ("more" in [cell.id for cell in cells(notebook)]) == (framework == "a")


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_what_stands_in_a_code_fence_or_a_formula_is_left_alone(woven, fence):
    example = "<<two>>\n:::{only} a\n:::\n# %% two\n$$\n# Not\n![x](x.svg)"
    prose = f"{fence}text\n{example}\n{fence}\n$$x$$\n$$\nx\n$$\n$$x,\n<<two>>\n:::\n# y$$"
    assert sources(woven(f"{prose}\n<<one>>\n")) == [prose, "1"]


def test_an_image_is_embedded_with_its_alternative_and_one_of_elsewhere_left_alone(woven, folder):
    (folder / "a b.svg").write_bytes(DRAWING)
    elsewhere = "![x](https://example.org/x.png)"
    prose, _ = sources(woven(f'{elsewhere} ![Is "x" <\ny & z?](a b.svg)\n\nafter\n<<one>>\n'))
    data = b64encode(as_png(DRAWING.decode())).decode()
    alt = "Is &quot;x&quot; &lt; y &amp; z?"
    image = f'<img src="data:image/png;base64,{data}" width="100" alt="{alt}">'
    assert prose == f"{elsewhere} {image}\n\nafter"


# Faults


def says(text: str = TEXT, code: str = CODE, *, at: str, words: str) -> object:
    return pytest.param(text, code, at, words, id=words)


@pytest.mark.parametrize(
    ("text", "code", "at", "words"),
    [
        says(TEXT + "<<two>>\n", at="text.en.md:4", words="unknown cell 'two'"),
        says(code=CODE + "\n# %% two\n2\n", at="code.a.py:4", words="unused cell 'two'"),
        says(code=CODE + "\n" + CODE, at="code.a.py:4", words="is defined twice, before on line 1"),
        says(TEXT + "<<one>>\n", at="text.en.md:4", words="is asked for twice, before on line 3"),
        says(TEXT + ":::{only} a\nx\n", at="text.en.md:4", words="its ::: is missing"),
        says(TEXT + "```python\nx\n~~~\n", at="text.en.md:4", words="``` is never closed"),
        says(TEXT + "$$\nx\n", at="text.en.md:4", words="$$ is never closed"),
        says(
            ":::{only} a\nx\n:::{only} b\n:::\n:::\n",
            at="text.en.md:3",
            words="a block within the block of line 1",
        ),
        says(TEXT + ":::\n", at="text.en.md:4", words="that was not begun"),
        says(TEXT + ":::{only} a c\n:::\n", at="text.en.md:4", words="no framework 'c'; there are"),
        says(TEXT + ":::{only}\n:::\n", at="text.en.md:4", words="no framework ''"),
        says(
            code="# About.\n\nimport os\n" + CODE,
            at="code.a.py:3",
            words="before the first cell",
        ),
        says(code=CODE + "# %% Two_\n", at="code.a.py:3", words="named 'Two_': need # %% NAME"),
        says(code=CODE + "# %% [markdown]\n# Hi\n", at="code.a.py:3", words="need # %% NAME"),
        says(TEXT + ":::{live} clock\n:::\n", at="text.en.md:4", words="no live figure 'clock'"),
        says(
            TEXT + ":::{slide}\n<<live clock>>\n:::\n",
            at="text.en.md:5",
            words="no live figure 'clock'; there are: ",
        ),
        says(TEXT + "<<live clock>>\n", at="text.en.md:4", words="a cell named 'live clock'"),
        says(TEXT + "<<>>\n", at="text.en.md:4", words="a cell named ''"),
        # Also where it is for the readers of another framework.
        says(TEXT + ":::{only} b\n<<Two_>>\n:::\n", at="text.en.md:5", words="a cell named 'Two_'"),
        # Ids of the cells of prose, and nbformat's bound on ids.
        says("Hi\n\n<<text-01>>\n", "# %% text-01\n1\n", at="code.a.py:1", words="'text-01'"),
        says(f"<<{'a' * 65}>>\n", f"# %% {'a' * 65}\n1\n", at="code.a.py:1", words="named 'aaa"),
        # Jupytext has its own opinion of these two.
        says(code='# %% one\nx = """\n# %% two\n"""\n', at="code.a.py:3", words="'two'"),
        says(
            code="# %% one\n# %%time\n1\n",
            at="code.a.py:2",
            words="a cell named '': need # %% NAME",
        ),
        says(
            TEXT + "One\ntwo ![x](gone.svg)\n",
            at="text.en.md:5",
            words=f"image gone.svg: {os.strerror(errno.ENOENT)}",
        ),
    ],
)
def test_a_fault_is_named_with_file_and_line(woven, text, code, at, words):
    with pytest.raises(LessonError) as caught:
        woven(text, code)
    assert str(caught.value).startswith(f"{at}: ")
    assert words in str(caught.value)


def gone(file: Path) -> None:
    file.unlink()


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def not_utf8(file: Path) -> None:
    file.write_bytes(b"# %% one\n\n# caf\xe9\n")


@pytest.mark.parametrize("name", ["text.en.md", "code.a.py"])
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (gone, f": cannot be read: {os.strerror(errno.ENOENT)}"),
        (a_folder, f": cannot be read: {os.strerror(errno.EISDIR)}"),
        (not_utf8, ":3: cannot be read: not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(woven, folder, name, harm, words):
    woven()
    harm(folder / name)
    with pytest.raises(LessonError) as caught:
        weave(Edition(folder, "en", "a"))
    assert str(caught.value) == f"{name}{words}"


# Editions


def test_editions_are_all_pairs_or_those_asked_for(woven, folder, tmp_path):
    woven()
    (folder / "text.zh-TW.md").write_text(TEXT)
    named = [str(edition) for edition in editions(root=tmp_path)]
    assert named == ["en/a/tiny", "en/b/tiny", "zh-TW/a/tiny", "zh-TW/b/tiny"]
    (chosen,) = editions(["zh-TW"], ["b", "b"], tmp_path)
    assert chosen.notebook == tmp_path / "notebooks" / "zh-TW" / "b" / "tiny.ipynb"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--language", "fr"], "no language 'fr'; there are: en"),
        (["--framework", "a", "--framework", "c"], "no framework 'c'; there are: a, b"),
    ],
)
def test_what_does_not_exist_cannot_be_chosen(woven, tmp_path, capsys, arguments, words):
    woven()
    assert main(["--root", str(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().out
    assert not (tmp_path / "notebooks").exists()


# Several languages

HELLO = '# %% one\n"hello"\n\n# %% two\n2\n'
WORDS = '[words]\n"hello" = "hallo"\n'
ENGLISH = "# Title\n\n<<one>>\n\n## Part\n\n<<two>>\n"
GERMAN = "# Titel\n\n<<one>>\n\n## Teil\n\n<<two>>\n"


@pytest.fixture
def german(woven: Weave, folder: Path) -> Callable[..., NotebookNode]:
    """Weaves a text that stands beside an English one."""

    def weave_german(text: str, code: str = HELLO, english: str = ENGLISH) -> NotebookNode:
        (folder / "text.de.md").write_text(text, encoding="utf-8")
        (folder / "words.de.toml").write_text(WORDS, encoding="utf-8")
        woven(english, code)
        return weave(Edition(folder, "de", "a"))

    return weave_german


def test_cells_are_in_the_words_of_their_readers(german, folder):
    notebook = german(GERMAN)
    assert sources(notebook) == ["# Titel", '"hallo"', "## Teil", "2"]
    assert [cell.id for cell in cells(notebook)] == ["text-01", "one", "text-02", "two"]
    english = weave(Edition(folder, "en", "a"))
    assert sources(english) == ["# Title", '"hello"', "## Part", "2"]


BLOCK = "\n:::{only} b\n## More\n:::\n"
SLIDE = "\n:::{slide}\n## More\n<<live wheel>>\n:::\n"


@pytest.mark.parametrize(
    ("here", "there", "fault"),
    [
        pytest.param(
            "# T\n\n<<two>>\n\n## T\n\n<<one>>\n",
            ENGLISH,
            ":3: cell 'two', where text.en.md has cell 'one' (line 3)",
            id="cells in another order",
        ),
        pytest.param(
            GERMAN.replace("##", "###"),
            ENGLISH,
            ":5: a heading ###, where text.en.md has a heading ## (line 5)",
            id="another level of heading",
        ),
        pytest.param(
            f"{GERMAN}\n## Mehr\n",
            ENGLISH,
            ":9: a heading ##, where text.en.md has the end",
            id="more",
        ),
        pytest.param(
            GERMAN.removesuffix("\n<<two>>\n"),
            ENGLISH,
            ": the end, where text.en.md has cell 'two' (line 7)",
            id="less",
        ),
        pytest.param(
            GERMAN,
            ENGLISH + BLOCK,
            ": the end, where text.en.md has a block {only} b (line 9)",
            id="a block less",
        ),
        pytest.param(
            GERMAN + BLOCK.replace("b", "a b", 1),
            ENGLISH + BLOCK,
            ":9: a block {only} a b, where text.en.md has a block {only} b (line 9)",
            id="a block for others",
        ),
        pytest.param(
            GERMAN + BLOCK.replace("##", "###"),
            ENGLISH + BLOCK,
            ":10: a heading ###, where text.en.md has a heading ## (line 10)",
            id="another heading in a block",
        ),
        pytest.param(
            GERMAN + SLIDE.replace("wheel", "dial"),
            ENGLISH + SLIDE,
            ":11: live figure 'dial', where text.en.md has live figure 'wheel' (line 11)",
            id="another live figure on a slide",
        ),
    ],
)
def test_a_text_in_another_order_than_the_english_one_is_an_error(german, here, there, fault):
    with pytest.raises(LessonError) as caught:
        german(here, english=there)
    assert str(caught.value) == f"text.de.md{fault}"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            HELLO.replace("hello", "hello world"),
            "code.a.py:2: no words for 'world' in words.de.toml",
        ),
        (HELLO.replace("hello", "7"), "words.de.toml:2: no code file needs 'hello'"),
    ],
    ids=["an English word", "an entry too many"],
)
def test_a_fault_of_the_words_is_named(german, code, words):
    with pytest.raises(LessonError) as caught:
        german(GERMAN, code)
    assert str(caught.value) == words
