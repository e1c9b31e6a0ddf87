"""A lesson's words: where they stand in code, and what another language's readers are told instead."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.weave.fragments import bare, wordless
from tools.weave.lessons import LessonError
from tools.weave.words import check_used, read_words


def test_what_is_executed_is_all_but_comments_and_docstrings():
    docstring = 'def f():  # two\n    """Three\n    lines."""\n    return "a", b"b"'
    assert bare(f"# one\n{docstring}", ".py") == 'def f():\n    return "a", b"b"'
    assert bare('x = {\n    "a":\n    "b"\n}', ".py") == 'x = {\n    "a":\n    "b"\n}'
    assert bare("// one\nint x = 1; // two\n/* three */\n", ".java") == "int x = 1;"
    assert wordless('f("one", f"{x} two")  # three', ".py") == wordless('f("", f"{x}")', ".py")
    assert wordless("f(x)", ".py") != wordless("f(y)", ".py")


# Told in other words

TABLE = """\
names = ["CNN", "P"]
strings = ["log", "two words"]

[words]
"two" = "zwei"
"two words" = "zwei Worte"
"words" = "Worte"
"of" = "von"
"A whole sentence, on two lines." = "Ein ganzer Satz,\\nin zwei Zeilen."
"""


@pytest.fixture
def tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Puts a table's words into a program."""
    monkeypatch.chdir(tmp_path)

    def put(source: str, suffix: str = ".py", table: str = TABLE, line: int = 1) -> str:
        (tmp_path / "words.de.toml").write_text(table, encoding="utf-8")
        words = read_words(tmp_path, "de")
        return words.put_into([("1", 1), (source, line)], tmp_path / f"code{suffix}")[1]

    return put


@pytest.mark.parametrize(
    ("source", "told"),
    [
        pytest.param(
            'two = dict(words="two words ")', 'two = dict(words="zwei Worte ")', id="longest"
        ),
        pytest.param(
            'f(x, "two words", "log")', 'f(x, "two words", "log")', id="read by the program"
        ),
        pytest.param(
            '"x_two CNN P d2l.words two_1 W_of"', '"x_two CNN P d2l.words two_1 W_of"', id="names"
        ),
        pytest.param(
            "f'{two:>{of}} of {two!r:of}'", "f'{two:>{of}} von {two!r:of}'", id="expressions"
        ),
        pytest.param('"\\ntwo\\tof {{two}}"', '"\\nzwei\\tvon {{zwei}}"', id="escapes"),
        pytest.param(r'r"\words $\two$ two"', r'r"\words $\two$ zwei"', id="LaTeX"),
        pytest.param('print(b"two", "#two")', 'print(b"two", "#zwei")', id="bytes"),
        pytest.param(
            "if x:\n    # A whole sentence,\n    # on two lines.\n    y",
            "if x:\n    # Ein ganzer Satz,\n    # in zwei Zeilen.\n    y",
            id="a comment over lines",
        ),
        pytest.param(
            'def f():\n    """A whole sentence, on\n    two lines."""',
            'def f():\n    """Ein ganzer Satz,\n    in zwei Zeilen."""',
            id="a docstring over lines",
        ),
    ],
)
def test_words_are_told_and_nothing_else_is_changed(tell, source, told):
    assert tell(source) == told


def test_in_java_too(tell):
    source = """/** A whole sentence,
 * on two lines. */
char quote = '"'; // two words
f("%d of %stwo%n" + "of \\" two" /* words */, \"\"\"
    %d of
    two
    \"\"\");"""
    assert (
        tell(source, ".java")
        == """/** Ein ganzer Satz,
 * in zwei Zeilen. */
char quote = '"'; // zwei Worte
f("%d von %szwei%n" + "von \\" zwei" /* Worte */, \"\"\"
    %d von
    zwei
    \"\"\");"""
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('x = 1\n"two three"', "code.py:8: no words for 'three' in words.de.toml"),
        ("f'{x} ALL of'", "code.py:7: no words for 'ALL' in words.de.toml"),
        (
            '"one"\n\n"six"',
            "code.py:7: no words for 'one' in words.de.toml\ncode.py:9: nor for 'six'",
        ),
    ],
)
def test_an_english_word_that_is_left_is_named_with_file_and_line(tell, source, words):
    with pytest.raises(LessonError) as caught:
        tell(source, line=7)
    assert str(caught.value) == words


def test_words_that_change_the_program_are_refused(tell):
    for told in ("{x}", '\\"', "\\\\"):
        with pytest.raises(LessonError, match=r"the words of words.de.toml change the program"):
            tell('f"two"', table=f'[words]\n"two" = "{told}"')


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("words", "words.de.toml: cannot be read: "),
        (
            'words = ["two"]',
            "words.de.toml: words: need names = [...], strings = [...] and [words]",
        ),
        ("[words]\ntwo = 2", "words.de.toml: 2: need words in quotes"),
    ],
)
def test_a_table_that_is_none_is_refused(tell, table, words):
    with pytest.raises(LessonError) as caught:
        tell("1", table=table)
    assert str(caught.value).startswith(words)


def test_an_entry_that_no_code_needs_is_refused(tell, tmp_path):
    tell("1")
    first, second = tmp_path / "code.a.py", tmp_path / "code.b.java"
    first.write_text('# words in the head\n# %% one\n"two words", "log", "CNN of P", "two"\n')
    second.write_text("// %% one\n// A whole sentence, on two lines.\n")
    words = read_words(tmp_path, "de")
    with pytest.raises(LessonError) as caught:
        check_used(words, [first, second])
    assert str(caught.value) == "words.de.toml:7: no code file needs 'words'"
    second.write_text(second.read_text() + "// words, two words\n")
    check_used(words, [first, second])
