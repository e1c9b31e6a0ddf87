"""What became of D2L's pages: a line for each page and framework in docs/book.jsonl, and the tables made of it.

``make book BOOK=folder RECORD=1`` renews the lines of the pages that it runs; ``make`` puts the tables into
"Coming from d2l", in each language.
"""

import json
import re
from collections.abc import Iterable
from configparser import ConfigParser, Error
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from d2l_compat.frameworks import FACES, FRAMEWORKS
from tools.book.words import WORDS, Words
from tools.weave.lessons import ROOT
from tools.weave.prose import ORIGINAL

if TYPE_CHECKING:  # `make` reads what is kept each time, and runs no page
    from tools.book.run import Outcome

RESULTS = ROOT / "docs" / "book.jsonl"
MAX_ERROR = 90  # characters of an error's first line
# What can be told of a page on a machine without a GPU, and with what is installed here.
ELSEWHERE = "gpu", "network"


@dataclass(frozen=True)
class Result:
    edition: str  # a language of D2L's: en, zh
    page: str
    framework: str
    cells: int
    passed: int
    cause: str = ""
    error: str = ""

    @property
    def ran(self) -> bool:
        return self.passed == self.cells

    @property
    def chapter(self) -> str:
        return self.page.partition("/")[0]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.edition, self.page, self.framework


def edition_of(book: Path) -> str:
    """The language that a copy of D2L's repository is in, as its configuration says."""
    config = ConfigParser(interpolation=None)
    try:
        config.read(book / "config.ini", encoding="utf-8")
    except (Error, UnicodeDecodeError):
        return ORIGINAL
    return config.get("project", "lang", fallback=ORIGINAL)


def result(outcome: "Outcome", edition: str) -> Result:
    # Of a file that is named, its name: where it lay was this machine's. And no colours of a terminal's.
    error = re.sub(r"(?<![\w.:/])/(?:[^\s/'\"]+/)+|\\x1b\[\d+m", "", outcome.error)[:MAX_ERROR]
    told = outcome.page, outcome.framework, outcome.cells, outcome.passed, outcome.cause, error
    return Result(edition, *told)


def read(file: Path | None = None) -> list[Result]:
    file = file or RESULTS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Result(**json.loads(line)) for line in lines]


def record(new: Iterable[Result], file: Path | None = None) -> None:
    """In place of what there was of the same page and framework."""
    file = file or RESULTS
    known = {each.key: each for each in (*read(file), *new)}
    lines = [
        json.dumps({name: value for name, value in asdict(each).items() if value != ""})
        for _, each in sorted(known.items())
    ]
    aside = file.with_suffix(".new")
    aside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    aside.replace(file)


def tables(results: list[Result], language: str) -> str:
    """How many pages run by chapter; then those that do not, and why."""
    words = WORDS[language]
    could = [each for each in results if each.cause not in ELSEWHERE]
    ran = sum(each.ran for each in results)
    share = int(1000 * ran / max(1, len(could))) / 10  # rounded down
    told = words.told.format(pairs=len(results), ran=ran, could=len(could), share=share)
    return f"{_by_chapter(results, words)}\n{told}\n\n{_failures(results, words)}"


def frameworks_in(results: list[Result]) -> list[str]:
    return [name for name in FACES if any(each.framework == name for each in results)]


def counts(results: list[Result], frameworks: list[str], of: str = "{} of {}") -> list[str]:
    """For each framework, how many of its pages run, of how many; nothing where there is none."""
    told = []
    for framework in frameworks:
        ran = [each.ran for each in results if each.framework == framework]
        told.append(of.format(sum(ran), len(ran)) if ran else "")
    return told


def _by_chapter(results: list[Result], words: Words) -> str:
    frameworks, chapters = frameworks_in(results), dict[tuple[str, str], list[Result]]()
    for each in results:
        chapters.setdefault((each.edition, each.chapter), []).append(each)
    rows = [
        [words.title(*name), *counts(of_chapter, frameworks, words.of)]
        for name, of_chapter in sorted(chapters.items())
    ]
    rows.append([words.all, *counts(results, frameworks, words.of)])
    heads = [words.chapter, *(FRAMEWORKS[name].title for name in frameworks)]
    return table(heads, [":--", *["--:"] * len(frameworks)], rows)


def _failures(results: list[Result], words: Words) -> str:
    def alike(each: Result) -> tuple[str, ...]:
        error = "" if each.cause in ELSEWHERE else each.error
        return each.edition, each.page, each.cause, error

    rows = []
    failed = sorted((each for each in results if not each.ran), key=alike)
    for (edition, page, cause, error), group in groupby(failed, alike):
        title = words.of_edition.format(page.partition("/")[2], words.editions[edition])
        frameworks = ", ".join(FRAMEWORKS[each.framework].title for each in group)
        told = error.replace("|", "\\|").replace("`", "'")
        rows.append([title, frameworks, words.causes[cause], f"`{told}`" if told else ""])
    heads = [words.page, words.framework, words.cause, words.error]
    return table(heads, [":--"] * len(heads), rows)


def table(heads: list[str], sides: list[str], rows: list[list[str]]) -> str:
    """In Markdown."""
    lines = [" | ".join(row) for row in (heads, *rows)]
    return f"| {lines[0]} |\n|{'|'.join(sides)}|\n" + "".join(f"| {line} |\n" for line in lines[1:])
