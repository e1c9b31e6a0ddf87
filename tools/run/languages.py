"""Check that a page shows the same in every language, and each language its own words.

A cell with words is executed once in every language. Random numbers or training would differ the second time,
and variables would keep the words of the last language.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tools.compare.languages import compare_languages
from tools.weave.prose import ORIGINAL
from tools.weave.words import WORD, Translations

SAME_EACH_TIME = (
    "a cell with words is executed in each language, and has to show the same each time. "
    "Draw and train in a cell without words, and print in the next"
)
OWN_WORDS = "write the words that a cell shows into this cell"


def find_language_fault(outputs: dict[str, Any], tables: Iterable[Translations]) -> str | None:
    """Return what is wrong with a cell's outputs by language, or None."""
    (first, expected), *others = outputs.items()
    for language, shown in others:
        if found := compare_languages(expected, shown):
            fault = f"in {language} it shows something else than in {first}: {found}"
            return f"{fault}; {SAME_EACH_TIME}"
    for language, shown in outputs.items():
        for translations in tables:
            if found := next(_find_foreign_words(shown, language, translations), None):
                return f"in {language} it shows {found!r}, of another language; {OWN_WORDS}"
    return None


def _find_foreign_words(shown: Any, language: str, translations: Translations) -> Iterator[str]:
    """Yield words of a table that the outputs in one of its languages have from the other language."""
    text = " ".join(_find_texts(shown))
    if language == ORIGINAL:
        for translation in translations.words.values():
            if not translation.isascii() and translation in text:
                yield translation
    elif language == translations.language:
        for found in translations.pattern.findall(text):
            if found in translations.words and any(map(WORD.fullmatch, re.split(r"\W+", found))):
                yield found


def _find_texts(shown: Any) -> Iterator[str]:
    """Yield the text of each output; of a figure, its alternative text."""
    for output in shown:
        yield output.get("text", "")
        yield output.get("data", {}).get("text/plain", "")
