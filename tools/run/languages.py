"""What a page shows has to be the same in every language, and each in its own words.

A cell with words is executed in every language. It may be executed again, then, at any time: what it draws at
random, or trains, would be another the next time, and what it leaves behind is in the words of the last one.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tools.compare.languages import difference_but_words
from tools.weave.prose import ORIGINAL
from tools.weave.words import WORD, Words

AGAIN = (
    "a cell with words is executed in each language, and has to show the same each time. "
    "Draw and train in a cell without words, and print in the next"
)
BEHIND = "write the words that a cell shows into this cell"


def fault_of(outputs: dict[str, Any], tables: Iterable[Words]) -> str | None:
    """What is wrong with the outputs that a cell has in each language, or None."""
    (first, shown), *others = outputs.items()
    for language, theirs in others:
        if found := difference_but_words(shown, theirs):
            return f"in {language} it shows something else than in {first}: {found}; {AGAIN}"
    for language, shown in outputs.items():
        for words in tables:
            if found := next(_foreign(shown, language, words), None):
                return f"in {language} it shows {found!r}, of another language; {BEHIND}"
    return None


def _foreign(shown: Any, language: str, words: Words) -> Iterator[str]:
    """Words of the table that are in the other of its two languages."""
    text = " ".join(_texts(shown))
    if language == ORIGINAL:
        yield from (said for said in words.said.values() if not said.isascii() and said in text)
    elif language == words.language:
        for found in words.pattern.findall(text):
            if found in words.said and any(map(WORD.fullmatch, re.split(r"\W+", found))):
                yield found


def _texts(shown: Any) -> Iterator[str]:
    """All that is shown in words; of a figure, those that stand for it."""
    for output in shown:
        yield output.get("text", "")
        yield output.get("data", {}).get("text/plain", "")
