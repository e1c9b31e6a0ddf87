"""``python -m tools.book BOOK``: runs all pages of a copy of D2L's repository, and tells which ran."""

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from d2l_compat.frameworks import FACES
from tools.book.epochs import EPOCHS
from tools.book.pages import Page, pairs
from tools.book.results import counts, edition_of, frameworks_in, read, record, result, table
from tools.book.run import CAUSES, Outcome, run


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if not options.book.is_dir():
        sys.exit(f"{options.book}: there is no such folder; need a copy of D2L's repository")
    frameworks = options.framework or [name for name in FACES if name != "mlx"]
    wanted = [pair for pair in pairs(options.book, frameworks) if options.only in pair[0].name]
    if not wanted:
        sys.exit(f"{options.book}: no page there uses d2l; need a copy of D2L's repository")
    edition = edition_of(options.book)
    if options.rest:
        known = {each.key for each in read()}
        wanted = [pair for pair in wanted if (edition, pair[0].name, pair[1]) not in known]
        if not wanted:
            sys.exit("nothing is left to run: what came of all of them is kept")
    outcomes = []

    def ran(pair: tuple[Page, str]) -> Outcome:
        page, framework = pair
        return run(page, framework, options.timeout, options.epochs)

    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(ran, wanted):
            outcomes.append(outcome)
            if options.record:
                record([result(outcome, edition)])
            print(row(outcome), flush=True)
    print(summary(outcomes))
    return 0 if not any(each.cause == "shim" for each in outcomes) else 1


def row(outcome: Outcome) -> str:
    """For a table in Markdown."""
    told = outcome.error.replace("|", "\\|")[:120]
    cells = (
        outcome.page,
        outcome.framework,
        f"{outcome.passed} of {outcome.cells}",
        f"line {outcome.line}: {told}" if told else "",
        CAUSES.get(outcome.cause, ""),
    )
    return f"| {' | '.join(cells)} |"


def summary(outcomes: list[Outcome]) -> str:
    """By chapter, how many pages of each framework run; then what keeps the others from it."""
    results = [result(each, "") for each in outcomes]
    frameworks = frameworks_in(results)
    rows = []
    for chapter in sorted({each.chapter for each in results}):
        of_chapter = [each for each in results if each.chapter == chapter]
        rows.append([chapter, *counts(of_chapter, frameworks)])
    lines = ["", table(["chapter", *frameworks], [":--", *["--:"] * len(frameworks)], rows)]
    causes = Counter(each.cause for each in outcomes if not each.ran)
    lines += [f"{sum(each.ran for each in outcomes)} of {len(outcomes)} run to the end."]
    lines += [f"{count}: {CAUSES[cause]}" for cause, count in causes.most_common()]
    return "\n".join(lines)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.book", description=__doc__)
    parser.add_argument("book", type=Path, help="a copy of D2L's repository, in any language")
    parser.add_argument("--framework", action="append", choices=[*FACES])
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="of chapter/page")
    parser.add_argument("--jobs", type=int, default=2, help="pages at a time (default: 2)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a page (default: 300)")
    parser.add_argument(
        "--epochs",
        type=int,
        default=EPOCHS,
        help="the most that are trained (default: %(default)s)",
    )
    parser.add_argument("--record", action="store_true", help="keep what came of them for the docs")
    parser.add_argument("--rest", action="store_true", help="only those of which nothing is kept")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
