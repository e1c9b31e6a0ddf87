"""Check that a page shows the same in every language, with words of that language only.

A cell with words is executed once in every language. Such a cell must not draw random numbers or train, because the
results would differ the second time, and its variables would keep the words of the last language.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tools.compare.languages import compare_languages
from tools.weave.prose import ORIGINAL
from tools.weave.words import WORD, Translations

REPEATABLE_HINT = (
    "a cell with words is executed in each language, and has to show the same each time. "
    "Draw random numbers and train in a cell without words, and print in the next cell"
)
WORDS_HINT = "write the words that a cell shows into this cell"


def find_language_error(outputs: dict[str, Any], tables: Iterable[Translations]) -> str | None:
    """Return the first error in a cell's outputs, which are given by language, or None."""
    (first, expected), *others = outputs.items()
    for language, actual in others:
        if difference := compare_languages(expected, actual):
            message = f"in {language} it does not show the same as in {first}: {difference}"
            return f"{message}; {REPEATABLE_HINT}"
    for language, actual in outputs.items():
        for translations in tables:
            if word := next(_find_foreign_words(actual, language, translations), None):
                return f"in {language} it shows {word!r}, of another language; {WORDS_HINT}"
    return None


def _find_foreign_words(outputs: Any, language: str, translations: Translations) -> Iterator[str]:
    """Yield the words in outputs of one language that belong to the other language of a table."""
    text = " ".join(_find_texts(outputs))
    if language == ORIGINAL:
        for translation in translations.words.values():
            if not translation.isascii() and translation in text:
                yield translation
    elif language == translations.language:
        for entry in translations.pattern.findall(text):
            if entry in translations.words and any(map(WORD.fullmatch, re.split(r"\W+", entry))):
                yield entry


def _find_texts(outputs: Any) -> Iterator[str]:
    """Yield the text of each output; for a figure, its alternative text."""
    for output in outputs:
        yield output.get("text", "")
        yield output.get("data", {}).get("text/plain", "")
