"""Test that the words in a lesson's code are found and translated."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.weave.fragments import strip_comments, strip_strings
from tools.weave.lessons import LessonError
from tools.weave.words import check_no_unused_entries, read_translations


def test_comments_docstrings_and_strings_are_stripped():
    docstring = 'def f():  # two\n    """Three\n    lines."""\n    return "a", b"b"'
    for beginning in "# one", '"""One."""', '# Zero.\n\n"""One\n\ntwo."""':
        stripped = strip_comments(f"{beginning}\n{docstring}", ".py")
        assert stripped == 'def f():\n    return "a", b"b"'
    assert strip_comments('x = {\n    "a":\n    "b"\n}', ".py") == 'x = {\n    "a":\n    "b"\n}'
    assert strip_comments("// one\nint x = 1; // two\n/* three */\n", ".java") == "int x = 1;"
    program = 'f("one", f"{x} two")  # three'
    assert strip_strings(program, ".py") == strip_strings('f("", f"{x}")', ".py")
    assert strip_strings("f(x)", ".py") != strip_strings("f(y)", ".py")


# Translation

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
def translate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that translates a program by a table."""
    monkeypatch.chdir(tmp_path)

    def translate_source(
        source: str, suffix: str = ".py", table: str = TABLE, line: int = 1
    ) -> str:
        (tmp_path / "words.de.toml").write_text(table, encoding="utf-8")
        translations = read_translations(tmp_path, "de")
        cells = [("1", 1), (source, line)]
        return translations.translate_cells(cells, tmp_path / f"code{suffix}")[1]

    return translate_source


PYTHON = r'''
# A whole sentence,
# on two lines.
def f(two, x="two words", y="log"):  # of
    """A whole sentence, on
    two lines."""
    print(b"two", "#two", "two words ", "x_two CNN P d2l.words two_1 W_of")
    print(f'{two:>{of}} of {two!r:of}', f"{'two':>4}", "\ntwo\tof {{two}}", r"\words $\two$ two")
'''
GERMAN_PYTHON = r'''
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
/**
 * two words
 *
 * of two.
 */
char quote = '"'; // two words
f("%d of %stwo%n" + "of \" two" /* words */, """
    %d of
    two
    """);'''
GERMAN_JAVA = r'''/** Ein ganzer Satz,
 * in zwei Zeilen. */
/**
 * zwei Worte
 *
 * von zwei.
 */
char quote = '"'; // zwei Worte
f("%d von %szwei%n" + "von \" zwei" /* Worte */, """
    %d von
    zwei
    """);'''


@pytest.mark.parametrize(
    ("source", "suffix", "german"), [(PYTHON, ".py", GERMAN_PYTHON), (JAVA, ".java", GERMAN_JAVA)]
)
def test_words_are_translated_but_not_names_and_listed_strings(translate, source, suffix, german):
    assert translate(source, suffix) == german


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('x = 1\n"two three"', "code.py:8: no entry for 'three' in words.de.toml"),
        ("f'{x} ALL of'", "code.py:7: no entry for 'ALL' in words.de.toml"),
        (
            '"one"\n\n"six"',
            "code.py:7: no entry for 'one' in words.de.toml\ncode.py:9: no entry for 'six'",
        ),
    ],
)
def test_an_english_word_without_an_entry_is_reported_with_its_line(translate, source, words):
    with pytest.raises(LessonError) as caught:
        translate(source, line=7)
    assert str(caught.value) == words


def test_a_translation_that_changes_the_program_is_rejected(translate):
    for translation in ("{x}", '\\"', "\\\\"):
        with pytest.raises(LessonError, match=r"the words of words.de.toml change the program"):
            translate('f"two"', table=f'[words]\n"two" = "{translation}"')


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
def test_an_invalid_table_is_rejected(translate, table, words):
    with pytest.raises(LessonError) as caught:
        translate("1", table=table)
    assert str(caught.value).startswith(words)


def test_an_unused_entry_is_rejected(translate, tmp_path):
    translate("1")
    first, second = tmp_path / "code.a.py", tmp_path / "code.b.java"
    first.write_text('# words in the head\n# %% one\n"two words", "log", "CNN of P", "two"\n')
    second.write_text("// %% one\n// A whole sentence, on two lines.\n")
    translations = read_translations(tmp_path, "de")
    with pytest.raises(LessonError) as caught:
        check_no_unused_entries(translations, [first, second])
    assert str(caught.value) == "words.de.toml:7: no code file needs 'words'"
    second.write_text(second.read_text() + "// words, two words\n")
    check_no_unused_entries(translations, [first, second])
