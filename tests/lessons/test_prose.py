"""Test that each number in the prose has a source, and that languages have the same numbers and formulas.

The possible sources are in tests/lessons/number_sources.py, the exceptions in LESSON/numbers.toml.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.lessons.arithmetic import is_right
from tests.lessons.number_sources import (
    CITATION,
    REFERENCE,
    SOLUTION,
    YEAR,
    find_numbers,
    load_exceptions,
)
from tests.lessons.prose import (
    Piece,
    find_inline_code,
    find_links,
    find_paragraphs,
    list_commands,
    make_pattern,
    parse_numbers,
    parse_pieces,
    read_pieces,
)
from tools.weave.lessons import ROOT, find_languages, list_lessons, shorten_path
from tools.weave.prose import ORIGINAL, find_original, read_passages

LESSONS = list_lessons()
TRANSLATIONS = [
    (lesson, text)
    for lesson in LESSONS
    for language in find_languages(lesson)
    if (text := lesson / f"text.{language}.md") != find_original(lesson)
]
PAGES = sorted(ROOT.glob(f"docs/{ORIGINAL}/*.md"))
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)

ARXIV = re.compile(rf"\(({YEAR})\)\.[^*]*?arxiv\.org/abs/(\d\d)\d\d\.")
EXERCISE = re.compile(r"^(\d+)\. ", re.MULTILINE)


# Sources of numbers


def find_number_errors(lesson: Path) -> list[str]:
    return [
        f"{shorten_path(find_original(lesson))}:{line}: {number} is {source}"
        for line, number, source in find_numbers(lesson)
        if source in ("missing", "false")
    ]


@each_lesson
def test_every_number_has_source_in_its_section(lesson: Path):
    """Test that each number is shown by a cell ("missing" if not), and equations are right ("false" if not)."""
    assert find_number_errors(lesson) == [], "see tests/lessons/number_sources.py for the rule"


@each_lesson
def test_exceptions_occur_in_text(lesson: Path):
    exceptions = load_exceptions(lesson)
    texts = {text.name: text.read_text("utf-8") for text in lesson.glob("text.*.md")}
    original_words = [*exceptions.given, *exceptions.worked, *exceptions.exercises]
    for words in [*original_words, *exceptions.cells]:
        assert make_pattern(words).search(texts[find_original(lesson).name]), words
    for words in exceptions.in_other_words:
        assert any(make_pattern(words).search(text) for text in texts.values()), words


# Right words, wrong ones, and the error that must be found.
WRONG_NUMBERS = [
    ("the apple $0.11$", "the apple $0.12$", "0.12 is missing"),
    ("a lemon $(0, 3)$", "a lemon $(4, 3)$", "4 is missing"),
    ("+ 1 = 23.8$", "+ 1 = 23.9$", "23.9 is false"),
    ("by 6 to 5", "by 6 to 8", "8 is missing"),
    ("At 0 all scores", "At 7 all scores", "7 is missing"),
]


def test_wrong_numbers_are_noticed(tmp_path: Path):
    lesson = tmp_path / "lessons" / "attention"
    shutil.copytree(ROOT / "lessons" / "attention", lesson)
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    text = find_original(lesson)
    words = text.read_text(encoding="utf-8")
    for right, wrong, _ in WRONG_NUMBERS:
        assert right in words
        words = words.replace(right, wrong, 1)
    text.write_text(words, encoding="utf-8")
    found = "\n".join(find_number_errors(lesson))
    assert all(error in found for *_, error in WRONG_NUMBERS), found


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (r"\frac{1}{6} + \frac{5}{6} \cdot \frac{1}{10} = \frac{1}{4}", True),
        (r"2e^{1} \approx 5.4", True),
        (r"\sqrt{5}\sqrt{8}\cos 11.6° = 6.20 = 6.21", False),
        (r"e^{-\infty} = 0", True),
        (r"(4^{32/30})^{2l/32} = 4^{l/15}", True),  # for any l
        (r"(4^{32/30})^{2l/33} = 4^{2l/30} = 4^{l/15}", None),
        (r"-2^2 + 3 \times 4 / 2 = 2", True),
        (r"w = 0.99", None),
    ],
)
def test_equations_are_evaluated(formula: str, expected: bool | None):
    assert is_right(formula) is expected


@each_lesson
def test_citations_and_references_have_same_names_and_years(lesson: Path):
    text = find_original(lesson).read_text(encoding="utf-8")
    assert {*CITATION.findall(text)} == {*REFERENCE.findall(text)}
    assert all(year[2:] == preprint for year, preprint in ARXIV.findall(text))


@each_lesson
def test_each_exercise_has_solution_with_its_number(lesson: Path):
    for text in lesson.glob("text.*.md"):
        solutions = SOLUTION.findall(text.read_text(encoding="utf-8"))
        assert solutions == [str(number + 1) for number in range(len(solutions))]
        for numbers in list_exercise_numbers(text):
            assert numbers == solutions, shorten_path(text)


def list_exercise_numbers(text: Path) -> list[list[str]]:
    """Return the numbers of the exercises on the slide and in the text, before the solutions."""
    parts = [passage for passage in read_passages(text) if passage.heading]
    titles = [passage.prose.partition("\n")[0] for passage in parts]
    solution = next((i for i, title in enumerate(titles) if SOLUTION.match(title)), None)
    if solution is None:
        return []
    return [
        EXERCISE.findall(passage.prose)
        for passage, title in zip(parts, titles, strict=True)
        if title == titles[solution - 2]
    ]


@each_lesson
def test_exercise_numbers_in_text_are_right(lesson: Path):
    for words, cell in load_exceptions(lesson).exercises.items():
        (number,) = parse_numbers(words)
        assert find_solution_number(find_original(lesson), cell) == number, words


def find_solution_number(text: Path, cell: str) -> int | None:
    """Return the number of the solution that contains a cell."""
    number = None
    for passage in read_passages(text):
        if passage.heading:
            solution = SOLUTION.match(passage.prose)
            number = int(solution[1]) if solution else None
        if passage.cell == cell and passage.block is None:
            return number
    return None


# Languages


def find_differences(
    original: Iterable[list[Piece]], translation: Iterable[list[Piece]], text: Path
) -> Iterator[str]:
    """Yield the differences between an original and its translation, passage by passage."""
    path = shorten_path(text)
    for expected, actual in zip_longest(original, translation, fillvalue=[]):
        if len(expected) != len(actual):
            line = (actual or expected)[0].line
            yield f"{path}:{line}: {len(actual)} paragraphs instead of {len(expected)}"
            continue
        for first, other in zip(expected, actual, strict=True):
            for old, new in ((first.numbers, other.numbers), (first.statements, other.statements)):
                if old != new:
                    change = f"{', '.join(new) or 'none'} instead of {', '.join(old) or 'none'}"
                    yield f"{path}:{other.line}: {change} (line {first.line})"


@pytest.mark.parametrize(("lesson", "text"), TRANSLATIONS, ids=lambda path: path.name)
def test_every_language_has_same_numbers_and_formulas(lesson: Path, text: Path):
    hidden = load_exceptions(lesson).in_other_words
    original, translation = (read_pieces(each, hidden) for each in (find_original(lesson), text))
    assert [*find_differences(original, translation, text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_site_pages_have_same_numbers_in_every_language(page: Path):
    """Compare table cells one by one. Elsewhere a translation may spell out digits and reorder sentences."""
    for text in ROOT.glob(f"docs/*/{page.name}"):
        both = [[*parse_pieces(each.read_text(encoding="utf-8"))] for each in (page, text)]
        cells = ([[piece for piece in pieces if piece.in_table]] for pieces in both)
        assert [*find_differences(*cells, text)] == []
        original, translation = map(count_longer_numbers, both)
        assert translation == original, shorten_path(text)


def count_longer_numbers(text: list[Piece]) -> Counter[str]:
    return Counter(number for piece in text for number in piece.numbers if len(number) > 1)


CHINESE = r"[\u3400-\u9fff]"
HALF_WIDTH = re.compile(rf"{CHINESE} ?[,;:!?()]|[,;:!?()] ?{CHINESE}")
MISSING_SPACE = re.compile(rf"{CHINESE}[A-Za-z\d]|[A-Za-z\d]{CHINESE}")


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/zh-TW/*.md")), ids=lambda page: page.stem)
def test_chinese_punctuation_and_spacing(page: Path):
    for line in find_paragraphs(page.read_text(encoding="utf-8")):
        assert HALF_WIDTH.findall(line) + MISSING_SPACE.findall(line) == [], line


# README in both languages


def test_chinese_readme_matches_english_one():
    english, chinese = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-TW.md")
    )
    assert list_commands(chinese) == list_commands(english)
    numbers = [count_longer_numbers([*parse_pieces(text)]) for text in (english, chinese)]
    assert numbers[0] == numbers[1]
    names = [{name for _, name in find_inline_code(text)} for text in (english, chinese)]
    assert names[0] <= names[1]


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md"])
def test_page_links_to_chinese_version_at_top(file: str):
    _, first, *_ = (ROOT / file).read_text(encoding="utf-8").split("\n\n")
    assert re.search("[\u4e00-\u9fff]{8}", first)
    assert "README.zh-TW.md" in [link for _, link in find_links(first)]


def test_readme_can_be_read_in_three_minutes():
    for readme in ROOT.glob("README*.md"):
        assert len(readme.read_text(encoding="utf-8").splitlines()) <= 120
