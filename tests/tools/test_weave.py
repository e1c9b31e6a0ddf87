"""Weaving: what a tiny lesson becomes, and how each of its faults is named with file and line."""

import errno
import os
import re
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


GONE = f"image gone.svg: {os.strerror(errno.ENOENT)}"


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ("<<two>>", 4, "unknown cell 'two'"),
        ("<<one>>", 4, "is asked for twice, before on line 3"),
        ("<<>>", 4, "a cell named ''"),
        (":::{only} b\n<<Two_>>\n:::", 5, "a cell named 'Two_'"),  # whoever is to read it
        (":::{only} a\nx", 4, "its ::: is missing"),
        (":::{only} a\n:::{only} b\n:::\n:::", 5, "a block within the block of line 4"),
        (":::{only} a c\n:::", 4, "no framework 'c'; there are"),
        (":::{only}\n:::", 4, "no framework ''"),
        (":::", 4, "that was not begun"),
        ("```python\nx\n~~~", 4, "``` is never closed"),
        ("$$\nx", 4, "$$ is never closed"),
        (":::{live} clock\n:::", 4, "no live figure 'clock'"),
        (":::{slide}\n<<live clock>>\n:::", 5, "no live figure 'clock'; there are: "),
        ("<<live clock>>", 4, "a cell named 'live clock'"),
        ("One\ntwo ![x](gone.svg)", 5, GONE),
    ],
)
def test_a_fault_of_the_text_is_named_with_its_line(woven, more, line, words):
    with pytest.raises(LessonError) as caught:
        woven(f"{TEXT}{more}\n")
    assert str(caught.value).startswith(f"text.en.md:{line}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        (f"{CODE}\n# %% two\n2\n", 4, "unused cell 'two'"),
        (f"{CODE}\n{CODE}", 4, "is defined twice, before on line 1"),
        (f"# About.\n\nimport os\n{CODE}", 3, "before the first cell"),
        (f"{CODE}# %% Two_\n", 3, "named 'Two_': need # %% NAME"),
        (f"{CODE}# %% [markdown]\n# Hi\n", 3, "need # %% NAME"),
        # Ids of the cells of prose, and nbformat's bound on ids.
        ("# %% text-01\n1\n", 1, "'text-01'"),
        (f"# %% {'a' * 65}\n1\n", 1, "named 'aaa"),
        # Jupytext has its own opinion of these two.
        ('# %% one\nx = """\n# %% two\n"""\n', 3, "'two'"),
        ("# %% one\n# %%time\n1\n", 2, "a cell named '': need # %% NAME"),
    ],
)
def test_a_fault_of_the_code_is_named_with_its_line(woven, code, line, words):
    asked = "".join(f"<<{name}>>\n" for name in re.findall("# %% (text-01|a+)", code))
    with pytest.raises(LessonError) as caught:
        woven(asked or TEXT, code)
    assert str(caught.value).startswith(f"code.a.py:{line}: ")
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
def test_a_text_in_another_order_than_the_english_one_is_an_error(german, here, there, fault):
    with pytest.raises(LessonError) as caught:
        german(here, english=ENGLISH + there)
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
