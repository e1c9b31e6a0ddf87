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


PYTHON = r'''
# A whole sentence,
# on two lines.
def f(two, x="two words", y="log"):  # of
    """A whole sentence, on
    two lines."""
    print(b"two", "#two", "two words ", "x_two CNN P d2l.words two_1 W_of")
    print(f'{two:>{of}} of {two!r:of}', f"{'two':>4}", "\ntwo\tof {{two}}", r"\words $\two$ two")
'''
IN_GERMAN = r'''
# Ein ganzer Satz,
# in zwei Zeilen.
def f(two, x="two words", y="log"):  # von
    """Ein ganzer Satz,
    in zwei Zeilen."""
    print(b"two", "#zwei", "zwei Worte ", "x_two CNN P d2l.words two_1 W_of")
    print(f'{two:>{of}} von {two!r:of}', f"{'zwei':>4}", "\nzwei\tvon {{zwei}}", r"\words $\two$ zwei")
'''
JAVA = r'''/** A whole sentence,
 * on two lines. */
char quote = '"'; // two words
f("%d of %stwo%n" + "of \" two" /* words */, """
    %d of
    two
    """);'''
JAVA_IN_GERMAN = r'''/** Ein ganzer Satz,
 * in zwei Zeilen. */
char quote = '"'; // zwei Worte
f("%d von %szwei%n" + "von \" zwei" /* Worte */, """
    %d von
    zwei
    """);'''


@pytest.mark.parametrize(
    ("source", "suffix", "told"), [(PYTHON, ".py", IN_GERMAN), (JAVA, ".java", JAVA_IN_GERMAN)]
)
def test_words_are_told_and_names_and_what_the_program_reads_stay(tell, source, suffix, told):
    assert tell(source, suffix) == told


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
