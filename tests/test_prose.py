"""The prose: each number and equation has a source, and every language says the same ones.

What they are held to stands in LESSON/sources.py; tests/lessons.py asks the executed cells.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.compare_frameworks.table import TITLES
from tests.prose import (
    Piece,
    code,
    commands,
    links,
    numbers_of,
    pattern,
    pieces,
    pieces_of,
    section,
    sources_of,
    spoken,
)
from tools.site.words import WORDS
from tools.weave.lessons import ROOT, display, languages_of, lessons
from tools.weave.prose import ORIGINAL, original, read_passages

LESSONS = lessons()
TRANSLATIONS = [
    (lesson, text)
    for lesson in LESSONS
    for language in languages_of(lesson)
    if (text := lesson / f"text.{language}.md") != original(lesson)
]
PAGES = sorted(ROOT.glob(f"docs/{ORIGINAL}/*.md"))
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)

YEAR = r"(?:19|20)\d\d"
CITED = re.compile(rf"(\w+)(?: et al\.,? \(?|(?: and \w+)? \()({YEAR})\)?")
REFERENCE = re.compile(rf"^\* (\w+), \w\.[^*]*?\(({YEAR})\)", re.MULTILINE)
ARXIV = re.compile(rf"\(({YEAR})\)\.[^*]*?arxiv\.org/abs/(\d\d)\d\d\.")
SOLUTION = re.compile(r"^### (\d+)\. ", re.MULTILINE)
EXERCISE = re.compile(r"^(\d+)\. ", re.MULTILINE)


# Where numbers and equations come from


def unheld(lesson: Path) -> Iterator[str]:
    """What no source is named for; solutions' numbers and citations have their own tests."""
    text, sources = original(lesson), sources_of(lesson)
    source = text.read_text(encoding="utf-8")
    named = [*sources.HELD, *sources.DEFINED, *sources.EXERCISES]
    named += [found[0] for found in [*CITED.finditer(source), *SOLUTION.finditer(source)]]
    references = {f"({year})" for _, year in REFERENCE.findall(source)}
    for piece in (piece for passage in pieces_of(text, [*named, *references]) for piece in passage):
        equations = [formula for formula in piece.formulas if "=" in formula]
        if said := [*piece.numbers, *equations]:
            yield f"{display(text)}:{piece.line}: no source of {', '.join(said)}"


@each_lesson
def test_every_number_and_equation_of_the_prose_has_a_source(lesson: Path):
    assert [*unheld(lesson)] == [], "name it in sources.py"
    assert "untrue" in (lesson / "claims.py").read_text(encoding="utf-8")


@each_lesson
def test_what_numbers_are_held_to_or_forgiven_stands_in_the_prose(lesson: Path):
    sources = sources_of(lesson)
    texts = {text.name: text.read_text("utf-8") for text in lesson.glob("text.*.md")}
    for words in [*sources.HELD, *sources.DEFINED, *sources.EXERCISES]:
        assert pattern(words).search(texts[original(lesson).name]), words
    for words in sources.IN_OTHER_WORDS:
        assert any(pattern(words).search(text) for text in texts.values()), words


@each_lesson
def test_sources_are_named_with_the_reference_and_its_year(lesson: Path):
    text = original(lesson).read_text(encoding="utf-8")
    assert {*CITED.findall(text)} == {*REFERENCE.findall(text)}
    assert all(year[2:] == preprint for year, preprint in ARXIV.findall(text))


@each_lesson
def test_there_is_a_solution_to_each_exercise_under_its_number(lesson: Path):
    for text in lesson.glob("text.*.md"):
        solved = SOLUTION.findall(text.read_text(encoding="utf-8"))
        assert solved == [str(number + 1) for number in range(len(solved))]
        assert all(asked == solved for asked in exercises(text)), display(text)


def exercises(text: Path) -> list[list[str]]:
    """Their numbers, on the slide and in the text: of the part before that of the solutions."""
    parts = [passage for passage in read_passages(text) if passage.heading]
    titles = [passage.prose.partition("\n")[0] for passage in parts]
    solution = next((at for at, title in enumerate(titles) if SOLUTION.match(title)), None)
    if solution is None:
        return []
    return [
        EXERCISE.findall(passage.prose)
        for passage, title in zip(parts, titles, strict=True)
        if title == titles[solution - 2]
    ]


@each_lesson
def test_an_exercise_is_named_by_its_number(lesson: Path):
    for words, cell in sources_of(lesson).EXERCISES.items():
        (number,) = numbers_of(words)
        assert solution_of(original(lesson), cell) == number, words


def solution_of(text: Path, cell: str) -> int | None:
    """The number of the solution that a cell is asked for in."""
    number = None
    for passage in read_passages(text):
        if passage.heading:
            solution = SOLUTION.match(passage.prose)
            number = int(solution[1]) if solution else None
        if passage.cell == cell and passage.block is None:
            return number
    return None


# The languages


def differences(
    there: Iterable[list[Piece]], here: Iterable[list[Piece]], text: Path
) -> Iterator[str]:
    """Between an original and its translation, passage by passage."""
    for theirs, ours in zip_longest(there, here, fillvalue=[]):
        if len(theirs) != len(ours):
            line = (ours or theirs)[0].line
            yield f"{display(text)}:{line}: {len(ours)} paragraphs instead of {len(theirs)}"
            continue
        for original_piece, piece in zip(theirs, ours, strict=True):
            for want, got in (
                (original_piece.numbers, piece.numbers),
                (original_piece.statements, piece.statements),
            ):
                if want != got:
                    said = f"{', '.join(got) or 'none'} instead of {', '.join(want) or 'none'}"
                    yield f"{display(text)}:{piece.line}: {said} (line {original_piece.line})"


@pytest.mark.parametrize(("lesson", "text"), TRANSLATIONS, ids=lambda path: path.name)
def test_every_language_has_the_same_numbers_and_formulas(lesson: Path, text: Path):
    forgiven = sources_of(lesson).IN_OTHER_WORDS
    there, here = (pieces_of(each, forgiven) for each in (original(lesson), text))
    assert [*differences(there, here, text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_web_sites_other_pages_have_the_same_numbers_in_every_language(page: Path):
    """In tables cell by cell; elsewhere single digits may be words, and sentences in another order."""
    for text in ROOT.glob(f"docs/*/{page.name}"):
        there, here = ([*pieces(each.read_text(encoding="utf-8"))] for each in (page, text))
        cells = ([[piece for piece in each if piece.in_table]] for each in (there, here))
        assert [*differences(*cells, text)] == []
        assert longer_numbers(here) == longer_numbers(there), display(text)


def longer_numbers(text: list[Piece]) -> Counter[str]:
    return Counter(number for piece in text for number in piece.numbers if len(number) > 1)


CHINESE = r"[\u3400-\u9fff]"
HALF_WIDTH = re.compile(rf"{CHINESE} ?[,;:!?()]|[,;:!?()] ?{CHINESE}")
CRAMPED = re.compile(rf"{CHINESE}[A-Za-z\d]|[A-Za-z\d]{CHINESE}")


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/zh-TW/*.md")), ids=lambda page: page.stem)
def test_chinese_has_its_own_punctuation_and_room_for_latin_words(page: Path):
    for said in spoken(page.read_text(encoding="utf-8")):
        assert HALF_WIDTH.findall(said) + CRAMPED.findall(said) == [], said


# README, and its two sections that are told again in Chinese

START = ROOT / "docs" / "zh-TW" / "start.md"
TOLD_AGAIN = {"Two commands": "兩個指令", "Open it elsewhere": "打開筆記本"}


@pytest.mark.parametrize(("there", "here"), TOLD_AGAIN.items())
def test_the_chinese_page_has_readmes_numbers_commands_and_names(there: str, here: str):
    theirs = section((ROOT / "README.md").read_text(encoding="utf-8"), there)
    ours = section(START.read_text(encoding="utf-8"), here)
    assert commands(ours) == commands(theirs)
    assert longer_numbers([*pieces(ours)]) == longer_numbers([*pieces(theirs)])
    named = {name for _, name in code(theirs)}
    assert named <= {name for _, name in code(ours)}


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md"])
def test_a_chinese_reader_is_met_at_the_top_and_led_to_the_chinese_page(file: str):
    _, first, *_ = (ROOT / file).read_text(encoding="utf-8").split("\n\n")
    assert re.search("[\u4e00-\u9fff]{8}", first)
    assert str(START.relative_to(ROOT)) in [link for _, link in links(first)]
    assert {"make", "make test"} <= {name for _, name in code(first)}


def test_every_table_that_is_made_is_held_to_what_it_is_made_of():
    """In tests/test_launch.py and tests/test_credit.py, the last in tests/test_frameworks_agree.py and tests/faces."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    made = re.findall(r"^<!-- (?!end of )(.*) -->$", readme, re.MULTILINE)
    assert {*made} == {"make: launch", "make: install", "make: cite", "make agreement"}


@pytest.mark.parametrize("language", WORDS)
def test_the_web_site_has_words_for_readmes_rows_of_agreement(language: str):
    """Only names and code stay as they are."""
    rows = WORDS[language].rows
    assert rows.keys() <= {*TITLES.values()}
    for title in TITLES.values():
        words = re.sub(r"`.*?`|\$.*?\$", "", rows.get(title, title))
        assert language == ORIGINAL or {*re.findall("[A-Za-z]+", words)} <= {"ALiBi", "RoPE"}, title
