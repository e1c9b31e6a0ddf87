"""``python -m tools.book BOOK``: run all pages of a copy of D2L's repository, and report which succeed.

What their cells print and draw is compared with what they print and draw on upstream's d2l, wherever that runs.
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from d2l_compat.frameworks import PYTHON_FRAMEWORKS
from tools.book.epochs import EPOCHS
from tools.book.pages import Page, list_pairs
from tools.book.results import (
    count_runs,
    list_frameworks,
    load_results,
    make_result,
    read_edition,
    render_table,
    save_results,
)
from tools.book.run import CAUSES, Outcome, run_page


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code, which is 1 if a page failed because of the shim."""
    options = _options(arguments)
    if not options.book.is_dir():
        sys.exit(f"{options.book}: there is no such folder; need a copy of D2L's repository")
    frameworks = options.framework or [name for name in PYTHON_FRAMEWORKS if name != "mlx"]
    pairs = [pair for pair in list_pairs(options.book, frameworks) if options.only in pair[0].name]
    if not pairs:
        sys.exit(f"{options.book}: no page there uses d2l; need a copy of D2L's repository")
    edition = read_edition(options.book)
    if options.rest:
        saved_keys = {result.key for result in load_results()}
        pairs = [pair for pair in pairs if (edition, pair[0].name, pair[1]) not in saved_keys]
        if not pairs:
            sys.exit("nothing is left to run: all results are recorded")
    outcomes = []

    def run_pair(pair: tuple[Page, str]) -> Outcome:
        page, framework = pair
        return run_page(page, framework, options.timeout, options.epochs)

    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(run_pair, pairs):
            outcomes.append(outcome)
            if options.record:
                save_results([make_result(outcome, edition)])
            print(format_row(outcome), flush=True)
    print(summarize(outcomes))
    return 1 if any(outcome.cause == "shim" for outcome in outcomes) else 0


def format_row(outcome: Outcome) -> str:
    """Return an outcome as a row of a table in Markdown."""
    error = outcome.error.replace("|", "\\|")[:120]
    cells = (
        outcome.page,
        outcome.framework,
        f"{outcome.passed} of {outcome.cells}",
        f"line {outcome.line}: {error}" if error else "",
        CAUSES.get(outcome.cause, ""),
        f"{outcome.equal} of {outcome.compared} equal" if outcome.compared else "not compared",
        outcome.difference.replace("|", "\\|"),
    )
    return f"| {' | '.join(cells)} |"


def summarize(outcomes: list[Outcome]) -> str:
    """Return a table of how many pages run, by chapter and framework, and the causes of failures."""
    results = [make_result(each, "") for each in outcomes]
    frameworks = list_frameworks(results)
    rows = []
    for chapter in sorted({each.chapter for each in results}):
        chapter_results = [each for each in results if each.chapter == chapter]
        rows.append([chapter, *count_runs(chapter_results, frameworks)])
    lines = ["", render_table(["chapter", *frameworks], [":--", *["--:"] * len(frameworks)], rows)]
    causes = Counter(each.cause for each in outcomes if not each.has_passed)
    equal, compared = sum(each.equal for each in outcomes), sum(each.compared for each in outcomes)
    lines += [f"{equal} of {compared} cells print and draw the same as on upstream's d2l."]
    lines += [f"{sum(each.has_passed for each in outcomes)} of {len(outcomes)} run to the end."]
    lines += [f"{count}: {CAUSES[cause]}" for cause, count in causes.most_common()]
    return "\n".join(lines)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.book", description=__doc__)
    parser.add_argument("book", type=Path, help="a copy of D2L's repository, in any language")
    parser.add_argument("--framework", action="append", choices=[*PYTHON_FRAMEWORKS])
    parser.add_argument(
        "--only", default="", metavar="SUBSTRING", help="only pages with this in CHAPTER/PAGE"
    )
    parser.add_argument("--jobs", type=int, default=2, help="pages at a time (default: 2)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a page (default: 300)")
    parser.add_argument(
        "--epochs",
        type=int,
        default=EPOCHS,
        help="train for at most this many epochs (default: %(default)s)",
    )
    parser.add_argument("--record", action="store_true", help="save the results for the docs")
    parser.add_argument("--rest", action="store_true", help="only pages without a saved result")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
