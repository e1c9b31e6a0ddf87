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
    lesson.mkdir(parents=True)
    list_lessons(tmp_path, "tiny")
    for framework in "ab":
        (lesson / f"code.{framework}.py").write_text(CODE)
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
    notebook = woven(
        "# Title\n\nBefore.\n\n<<two>>\n\nBetween.\n\n<< one >>\n<<three>>\n\nAfter.\n",
        "# %% one\n1\n\n# %% two\n2\n\n\ndef f():\n    return 2\n\n\n# %% three\n3\n",
    )
    assert [(cell.id, cell.cell_type, cell.source) for cell in cells(notebook)] == [
        ("text-01", "markdown", "# Title\n\nBefore."),
        ("two", "code", "2\n\n\ndef f():\n    return 2"),
        ("text-02", "markdown", "Between."),
        ("one", "code", "1"),
        ("three", "code", "3"),
        ("text-03", "markdown", "After."),
    ]
    nbformat.validate(notebook)


def test_notebook_says_where_it_is_from_and_what_runs_it(woven):
    metadata = woven().metadata
    assert metadata.d2l_compat.lesson == "tiny"
    assert (metadata.d2l_compat.language, metadata.d2l_compat.framework) == ("en", "a")
    assert metadata.kernelspec.name == "python3"


def test_weaving_twice_gives_the_same_bytes(woven):
    assert nbformat.writes(woven()) == nbformat.writes(woven())


def test_a_heading_begins_a_new_cell(woven):
    notebook = woven("# Title\nA\n## Part\nB\n\n###### Small\n#hashtag\n<<one>>\n")
    assert sources(notebook) == ["# Title\nA", "## Part\nB", "###### Small\n#hashtag", "1"]


def test_tags_are_carried_over(woven):
    notebook = woven(code='# %% one tags=["nbval-ignore-output", "hide"]\n1\n')
    assert notebook.cells[1].metadata == {"tags": ["nbval-ignore-output", "hide"]}
    nbformat.validate(notebook)


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


@pytest.mark.parametrize("example", ["<<two>>", ":::{only} a", ":::", "# %% two", "$$", "# Not"])
@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_a_code_fence_is_left_alone(woven, fence, example):
    prose = f"{fence}text\n{example}\n{fence}"
    assert sources(woven(f"{prose}\n<<one>>\n")) == [prose, "1"]


@pytest.mark.parametrize("formula", ["$$x$$", "$$\nx\n$$", "$$x,\n<<two>>\n:::\n# y$$"])
def test_a_formula_is_left_alone(woven, formula):
    assert sources(woven(f"{formula}\n<<one>>\n")) == [formula, "1"]


def test_an_image_is_embedded_with_its_alternative(woven, folder):
    (folder / "a b.svg").write_bytes(DRAWING)
    prose, _ = sources(woven('Before\n![Is "x" <\ny & z?](a b.svg)\n\nafter\n<<one>>\n'))
    data = b64encode(as_png(DRAWING.decode())).decode()
    alt = "Is &quot;x&quot; &lt; y &amp; z?"
    image = f'<img src="data:image/png;base64,{data}" width="100" alt="{alt}">'
    assert prose == f"Before\n{image}\n\nafter"


@pytest.mark.parametrize("blanks", [" ", "\t", "  \t ", "\u3000"], ids=ascii)
def test_blanks_after_a_wish_are_none_of_it(woven, blanks):
    text = f"# Title\n\n<<one>>{blanks}\n:::{{slide}}\n# Slide\n<<one output>>{blanks}\n:::\n"
    assert sources(woven(text)) == ["# Title", "1"]


def test_a_byte_order_mark_is_none_of_a_file(woven):
    mark = "\ufeff"
    assert sources(woven(mark + TEXT, mark + CODE)) == ["# Title", "1"]
    assert woven(mark + "<<one>>\n", mark + "# About.\n" + CODE) == woven("<<one>>\n")


def test_an_image_in_a_code_fence_is_left_alone(woven):
    prose = "```markdown\n![x](x.svg)\n```"
    assert sources(woven(f"{prose}\n<<one>>\n")) == [prose, "1"]


def test_an_image_of_elsewhere_is_left_alone(woven, folder):
    (folder / "a.svg").write_bytes(DRAWING)
    elsewhere = "![x](https://example.org/x.png)"
    prose, _ = sources(woven(f"{elsewhere} ![a](a.svg)\n<<one>>\n"))
    assert prose.startswith(f"{elsewhere} <img ")
    assert prose.endswith('alt="a">')


# Faults


def says(text: str = TEXT, code: str = CODE, *, at: str, words: str) -> object:
    return pytest.param(text, code, at, words)


FAULTS = {
    "unknown cell": says(TEXT + "<<two>>\n", at="text.en.md:4", words="unknown cell 'two'"),
    "unused cell": says(code=CODE + "\n# %% two\n2\n", at="code.a.py:4", words="unused cell 'two'"),
    "defined twice": says(
        code=CODE + "\n" + CODE, at="code.a.py:4", words="defined twice, before on line 1"
    ),
    "asked for twice": says(
        TEXT + "<<one>>\n", at="text.en.md:4", words="asked for twice, before on line 3"
    ),
    "unclosed block": says(
        TEXT + ":::{only} a\nx\n", at="text.en.md:4", words="its ::: is missing"
    ),
    "unclosed fence": says(
        TEXT + "```python\nx\n~~~\n", at="text.en.md:4", words="``` is never closed"
    ),
    "unclosed formula": says(TEXT + "$$\nx\n", at="text.en.md:4", words="$$ is never closed"),
    "block in block": says(
        ":::{only} a\nx\n:::{only} b\n:::\n:::\n",
        at="text.en.md:3",
        words="a block within the block of line 1",
    ),
    "end without begin": says(TEXT + ":::\n", at="text.en.md:4", words="that was not begun"),
    "unknown framework": says(
        TEXT + ":::{only} a c\n:::\n",
        at="text.en.md:4",
        words="no framework 'c'; there are: ",
    ),
    "no framework": says(TEXT + ":::{only}\n:::\n", at="text.en.md:4", words="no framework ''"),
    "code before a cell": says(
        code="# About.\n\nimport os\n" + CODE, at="code.a.py:3", words="before the first cell"
    ),
    "no cell at all": says(code="1\n", at="code.a.py:1", words="before the first cell"),
    "a cell without a name": says(code="# %%\n1\n", at="code.a.py:1", words="named ''"),
    "a badly named cell": says(
        code=CODE + "# %% Two_\n", at="code.a.py:3", words="named 'Two_': need # %% NAME"
    ),
    "prose in the code": says(
        code=CODE + "# %% [markdown]\n# Hi\n", at="code.a.py:3", words="need # %% NAME"
    ),
    "unknown live figure": says(
        TEXT + ":::{live} clock\n:::\n", at="text.en.md:4", words="no live figure 'clock'; there"
    ),
    "unknown live figure on a slide": says(
        TEXT + ":::{slide}\n<<live clock>>\n:::\n",
        at="text.en.md:5",
        words="no live figure 'clock'; there are: ",
    ),
    "a live figure without a block": says(
        TEXT + "<<live clock>>\n", at="text.en.md:4", words="a cell named 'live clock'"
    ),
    "a badly named wish": says(TEXT + "<<Two_>>\n", at="text.en.md:4", words="named 'Two_'"),
    "a wish without a name": says(TEXT + "<<>>\n", at="text.en.md:4", words="named ''"),
    # Ids of the cells of prose, and nbformat's bound on ids.
    "a name of prose": says(
        "Hi\n\n<<text-01>>\n", "# %% text-01\n1\n", at="code.a.py:1", words="'text-01'"
    ),
    "an endless name": says(
        f"<<{'a' * 65}>>\n", f"# %% {'a' * 65}\n1\n", at="code.a.py:1", words="named 'aaa"
    ),
    # Jupytext has its own opinion of these two.
    "a marker in a string": says(
        code='# %% one\nx = """\n# %% two\n"""\n', at="code.a.py:3", words="'two'"
    ),
    "a marker without a blank": says(
        code="# %% one\n# %%time\n1\n", at="code.a.py:2", words="need # %% NAME"
    ),
    "missing image": says(
        TEXT + "One\ntwo ![x](gone.svg)\n",
        at="text.en.md:5",
        words=f"image gone.svg: {os.strerror(errno.ENOENT)}",
    ),
}


@pytest.mark.parametrize(("text", "code", "at", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named_with_file_and_line(woven, text, code, at, words):
    with pytest.raises(LessonError) as caught:
        woven(text, code)
    assert str(caught.value).startswith(f"{at}: ")
    assert words in str(caught.value)


def test_a_fault_is_found_in_blocks_of_other_frameworks_too(woven):
    with pytest.raises(LessonError, match=r"^text\.en\.md:5: a cell named 'Two_'"):
        woven(TEXT + ":::{only} b\n<<Two_>>\n:::\n")


def gone(file: Path) -> None:
    file.unlink()


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_link_to_itself(file: Path) -> None:
    file.unlink()
    file.symlink_to(file)


@pytest.mark.parametrize("name", ["text.en.md", "code.a.py"])
@pytest.mark.parametrize(
    ("make", "number"),
    [(gone, errno.ENOENT), (a_folder, errno.EISDIR), (a_link_to_itself, errno.ELOOP)],
)
def test_an_unreadable_file_is_named(woven, folder, name, make, number):
    woven()
    make(folder / name)
    with pytest.raises(LessonError) as caught:
        weave(Edition(folder, "en", "a"))
    assert str(caught.value) == f"{name}: cannot be read: {os.strerror(number)}"


@pytest.mark.parametrize("name", ["text.en.md", "code.a.py"])
def test_a_forbidden_file_is_named(woven, folder, monkeypatch, name):
    woven()
    read_text = Path.read_text

    def forbid(file: Path, *args: object, **keywords: object) -> str:
        if file.name == name:  # simulated: root may read whatever the permissions say
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return read_text(file, *args, **keywords)

    monkeypatch.setattr(Path, "read_text", forbid)
    with pytest.raises(LessonError, match=f"^{name}: cannot be read: Permission denied$"):
        weave(Edition(folder, "en", "a"))


@pytest.mark.parametrize("name", ["text.en.md", "code.a.py"])
def test_a_file_that_is_not_utf8_is_named_with_its_line(woven, folder, name):
    woven()
    file = folder / name
    file.write_bytes(file.read_bytes() + "\n# caf\xe9\n".encode("latin-1"))
    line = file.read_bytes().count(b"\n")
    with pytest.raises(LessonError, match=f"^{name}:{line}: cannot be read: not UTF-8$"):
        weave(Edition(folder, "en", "a"))


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
    chosen = {"languages": None, "frameworks": None, "root": tmp_path}
    chosen[arguments[0].removeprefix("--") + "s"] = arguments[1::2]
    with pytest.raises(LessonError, match=words):
        list(editions(**chosen))


def test_a_project_without_lessons_is_an_error(tmp_path, capsys):
    list_lessons(tmp_path)
    assert main(["--root", str(tmp_path)]) == 2
    assert "no lesson here: need LESSON/text.LANGUAGE.md" in capsys.readouterr().out


# Several languages

HELLO = '# %% one\n"hello"\n\n# %% two\n2\n'
WORDS = '[words]\n"hello" = "hallo"\n'
ENGLISH = "# Title\n\n<<one>>\n\n## Part\n\n<<two>>\n"


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
    notebook = german("# Titel\n\n<<one>>\n\n## Teil\n\n<<two>>\n")
    assert sources(notebook) == ["# Titel", '"hallo"', "## Teil", "2"]
    assert [cell.id for cell in cells(notebook)] == ["text-01", "one", "text-02", "two"]
    english = weave(Edition(folder, "en", "a"))
    assert sources(english) == ["# Title", '"hello"', "## Part", "2"]
    assert not any(cell.metadata for cell in notebook.cells)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param(
            "# T\n\n<<two>>\n\n## T\n\n<<one>>\n",
            3,
            "cell 'two', where text.en.md has cell 'one' (line 3)",
            id="cells in another order",
        ),
        pytest.param(
            "# T\n\n<<one>>\n\n### T\n\n<<two>>\n",
            5,
            "a heading ###, where text.en.md has a heading ## (line 5)",
            id="another level of heading",
        ),
        pytest.param(
            "# T\n\n## T\n\n<<one>>\n<<two>>\n",
            3,
            "a heading ##, where text.en.md has cell 'one' (line 3)",
            id="a heading before its cell",
        ),
        pytest.param(
            "# T\n\n<<one>>\n\n## T\n\n<<two>>\n\n## Mehr\n",
            9,
            "a heading ##, where text.en.md has the end",
            id="more",
        ),
        pytest.param(
            "# T\n\n<<one>>\n\n## T\n",
            None,
            "the end, where text.en.md has cell 'two' (line 7)",
            id="less",
        ),
    ],
)
def test_a_text_in_another_order_than_the_english_one_is_an_error(german, text, line, words):
    with pytest.raises(LessonError) as caught:
        german(text)
    assert str(caught.value) == f"text.de.md{f':{line}' if line else ''}: {words}"


BLOCK = ":::{only} b\n## More\n:::\n"
SLIDE = ":::{slide}\n## More\n<<live clock>>\n:::\n"


@pytest.mark.parametrize(
    ("here", "there", "words"),
    [
        (BLOCK, "", "a block {only} b, where text.en.md has the end"),
        ("", BLOCK, "the end, where text.en.md has a block {only} b (line 9)"),
        (BLOCK.replace("b", "a b", 1), BLOCK, "a block {only} a b, where text.en.md has a block"),
        (BLOCK.replace("##", "###"), BLOCK, "a heading ###, where text.en.md has a heading ##"),
        (
            SLIDE.replace("clock", "dial"),
            SLIDE,
            "live figure 'dial', where text.en.md has live figure",
        ),
    ],
)
def test_blocks_are_compared_and_what_stands_in_them_too(german, folder, here, there, words):
    (folder / "live").mkdir()
    for figure in ("clock", "dial"):
        (folder / "live" / f"{figure}.js").touch()
    german("# T\n\n<<one>>\n\n## T\n\n<<two>>\n\n" + there, english=ENGLISH + "\n" + there)
    with pytest.raises(LessonError) as caught:
        german("# T\n\n<<one>>\n\n## T\n\n<<two>>\n\n" + here, english=ENGLISH + "\n" + there)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            HELLO.replace("hello", "hello world"),
            "code.a.py:2: no words for 'world' in words.de.toml",
        ),
        (HELLO.replace("hello", "7"), "words.de.toml:2: no code file needs 'hello'"),
        (HELLO + "# %% one\n1\n", "code.a.py:6: cell 'one' is defined twice, before on line 1"),
    ],
    ids=["an English word", "an entry too many", "a cell twice"],
)
def test_a_fault_of_the_words_is_named(german, code, words):
    with pytest.raises(LessonError) as caught:
        german("# T\n\n<<one>>\n\n## T\n\n<<two>>\n", code)
    assert str(caught.value) == words
