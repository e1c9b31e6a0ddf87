"""Save how D2L's pages ran: a line per page and framework in docs/book.jsonl, and tables made from it.

``make book BOOK=folder RECORD=1`` updates the lines of the pages that it runs; ``make`` puts the tables into
"Compared with d2l", in each language.
"""

import json
import re
from collections.abc import Iterable
from configparser import ConfigParser, Error
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from d2l_compat.frameworks import FRAMEWORKS, PYTHON_FRAMEWORKS
from tools.book.words import TABLE_TEXT, TableText
from tools.weave.lessons import ROOT
from tools.weave.prose import ORIGINAL

# `make` reads the results each time, and does not need the modules that run pages.
if TYPE_CHECKING:
    from tools.book.run import Outcome

RESULTS = ROOT / "docs" / "book.jsonl"
MAX_ERROR = 90  # characters of an error's first line
# A page with one of these causes cannot be tested: it needs a GPU or a network.
NOT_TESTABLE = "gpu", "network"


@dataclass(frozen=True)
class Result:
    edition: str  # a language of D2L: en, zh
    page: str
    framework: str
    cells: int
    passed: int
    cause: str = ""
    error: str = ""
    compared: int = 0  # number of cells that print or draw something, here and on upstream
    equal: int = 0
    difference: str = ""  # the first

    @property
    def has_passed(self) -> bool:
        return self.passed == self.cells

    @property
    def chapter(self) -> str:
        return self.page.partition("/")[0]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.edition, self.page, self.framework


def read_edition(book: Path) -> str:
    """Return the language of a copy of D2L's repository, from its configuration."""
    config = ConfigParser(interpolation=None)
    try:
        config.read(book / "config.ini", encoding="utf-8")
    except (Error, UnicodeDecodeError):
        return ORIGINAL
    return config.get("project", "lang", fallback=ORIGINAL)


def make_result(outcome: "Outcome", edition: str) -> Result:
    """Return the result to save, without the paths of this machine and the colours of its terminal."""
    error, difference = (
        re.sub(r"(?<![\w.:/])/(?:[^\s/'\"]+/)+|\\x1b\[\d+m", "", text)
        for text in (outcome.error, outcome.difference)
    )
    return Result(
        edition=edition,
        page=outcome.page,
        framework=outcome.framework,
        cells=outcome.cells,
        passed=outcome.passed,
        cause=outcome.cause,
        error=error[:MAX_ERROR],
        compared=outcome.compared,
        equal=outcome.equal,
        difference=difference,
    )


def load_results(file: Path | None = None) -> list[Result]:
    """Return the saved results, or none if there is no file."""
    file = file or RESULTS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Result(**json.loads(line)) for line in lines]


def save_results(new_results: Iterable[Result], file: Path | None = None) -> None:
    """Save new results in place of those of the same pages and frameworks."""
    file = file or RESULTS
    results = {each.key: each for each in (*load_results(file), *new_results)}
    lines = []
    for _, each in sorted(results.items()):
        values = asdict(each)
        if not each.compared:
            del values["compared"], values["equal"]
        line = json.dumps({name: value for name, value in values.items() if value != ""})
        lines.append(f"{line}\n")
    temporary = file.with_suffix(".new")
    temporary.write_text("".join(lines), encoding="utf-8")
    temporary.replace(file)


def render_tables(results: list[Result], language: str) -> str:
    """Return tables of how many pages run, of those that fail, and of what they show, compared with upstream."""
    text = TABLE_TEXT[language]
    testable = [each for each in results if each.cause not in NOT_TESTABLE]
    passed = sum(each.has_passed for each in results)
    share = int(1000 * passed / max(1, len(testable))) / 10  # rounded down
    summary = text.summary.format(
        pairs=len(results), passed=passed, testable=len(testable), share=share
    )
    parts = [_render_chapters(results, text), f"{summary}\n", _render_failures(results, text)]
    return "\n".join([*parts, *_render_comparison(results, text)])


def list_frameworks(results: list[Result]) -> list[str]:
    """Return the frameworks that occur in results, in the order of their table."""
    return [name for name in PYTHON_FRAMEWORKS if any(each.framework == name for each in results)]


def count_runs(
    results: list[Result], frameworks: list[str], template: str = "{} of {}"
) -> list[str]:
    """Return for each framework how many of its pages run, or "" if it has none."""
    cells = []
    for framework in frameworks:
        passed = [each.has_passed for each in results if each.framework == framework]
        cells.append(template.format(sum(passed), len(passed)) if passed else "")
    return cells


def _render_chapters(results: list[Result], text: TableText) -> str:
    frameworks = list_frameworks(results)
    chapters: dict[tuple[str, str], list[Result]] = {}
    for each in results:
        chapters.setdefault((each.edition, each.chapter), []).append(each)
    rows = [
        [text.format_chapter(*key), *count_runs(chapter_results, frameworks, text.count)]
        for key, chapter_results in sorted(chapters.items())
    ]
    rows.append([text.all, *count_runs(results, frameworks, text.count)])
    headers = [text.chapter, *(FRAMEWORKS[name].title for name in frameworks)]
    return render_table(headers, [":--", *["--:"] * len(frameworks)], rows)


def _render_failures(results: list[Result], text: TableText) -> str:
    """Return a table of failures; frameworks in which a page fails in the same way share a row."""

    def group_key(each: Result) -> tuple[str, ...]:
        error = "" if each.cause in NOT_TESTABLE else each.error
        return each.edition, each.page, each.cause, error

    rows = []
    failures = sorted((each for each in results if not each.has_passed), key=group_key)
    for (edition, page, cause, error), group in groupby(failures, group_key):
        title = text.title.format(page.partition("/")[2], text.editions[edition])
        frameworks = ", ".join(FRAMEWORKS[each.framework].title for each in group)
        escaped = error.replace("|", "\\|").replace("`", "'")
        rows.append([title, frameworks, text.causes[cause], f"`{escaped}`" if escaped else ""])
    headers = [text.page, text.framework, text.cause, text.error]
    return render_table(headers, [":--"] * len(headers), rows)


def _render_comparison(results: list[Result], text: TableText) -> list[str]:
    """Return what was compared with upstream's in words, a table of cells, and one of the pages that differ."""
    compared = sorted((each for each in results if each.compared), key=lambda each: each.key)
    if not compared:
        return []
    different = [each for each in compared if each.equal < each.compared]
    counts = {
        "pairs": len(compared),
        "cells": sum(each.compared for each in compared),
        "equal_cells": sum(each.equal for each in compared),
        "equal_pairs": len(compared) - len(different),
    }
    frameworks = list_frameworks(compared)
    rows = []
    for edition in sorted({each.edition for each in compared}):
        row = [text.editions[edition]]
        for name in frameworks:
            group = [each for each in compared if (each.edition, each.framework) == (edition, name)]
            total = sum(each.compared for each in group)
            equal = sum(each.equal for each in group)
            row.append(text.count.format(equal, total) if group else "")
        rows.append(row)
    headers = [text.edition, *(FRAMEWORKS[name].title for name in frameworks)]
    table = render_table(headers, [":--", *["--:"] * len(frameworks)], rows)
    pages = []
    for (edition, page), pairs in groupby(different, lambda each: each.key[:2]):
        title = text.title.format(page.partition("/")[2], text.editions[edition])
        counted = ", ".join(
            f"{FRAMEWORKS[each.framework].title} {text.count.format(each.equal, each.compared)}"
            for each in pairs
        )
        pages.append([title, counted])
    parts = [f"{text.comparison.format(**counts)}\n", table]
    if pages:
        headers = [text.different_page, text.equal_cells]
        parts.append(render_table(headers, [":--", ":--"], pages))
    return parts


def render_table(headers: list[str], alignments: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(row)} |\n" for row in (headers, *rows)]
    return f"{lines[0]}|{'|'.join(alignments)}|\n{''.join(lines[1:])}"
