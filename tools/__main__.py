"""``python -m tools``: weave the lessons and execute what is out of date, with progress and a summary."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from d2l_compat.frameworks import FRAMEWORKS
from tools.run.runner import Result, Runner
from tools.weave.lessons import (
    ROOT,
    LessonError,
    Page,
    display,
    editions,
    left_out,
    pages,
    proof,
)


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code: 0 all went well, 1 a notebook failed, 2 nothing was run, 130 Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tools", description=__doc__)
    parser.add_argument(
        "--framework",
        action="append",
        help="execute only this one's notebooks, and weave all (may be repeated)",
    )
    parser.add_argument("--language", action="append", help="only this one (may be repeated)")
    parser.add_argument("--lesson", action="append", help="only this one (may be repeated)")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count(), help="pages at a time")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for a page (1200)")
    parser.add_argument("--always", action="store_true", help="execute what is up to date, too")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    asked = parser.parse_args(arguments)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a pipe has no edge to wrap at
    try:
        may_execute = {each.framework for each in editions(None, asked.framework, asked.root)}
        chosen = list(editions(asked.language, None, asked.root, asked.lesson))
        if lacking := left_out(asked.language, asked.framework, asked.root):
            console.print(lacking, markup=False, soft_wrap=True)
        proof_lesson = proof(asked.root)
    except LessonError as error:
        console.print(str(error), markup=False, style="red")
        return 2
    try:
        results = _make(pages(chosen), may_execute, proof_lesson, asked, console)
    except KeyboardInterrupt:
        console.print("Interrupted: what was not finished is as it was.", style="red")
        return 130
    return _report(results, proof_lesson, console)


def _positive(number: str) -> int:
    if (value := int(number)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a number from 1 on")
    return value


def _make(
    chosen: list[Page],
    may_execute: set[str],
    proof_lesson: str,
    asked: argparse.Namespace,
    console: Console,
) -> list[Result]:
    """Show a bar for each page that is executed in a terminal, a line for each in a pipe."""
    runner = Runner(
        asked.root,
        jobs=asked.jobs,
        limit=asked.timeout,
        always=asked.always,
        frameworks=may_execute,
        proof=proof_lesson,
    )
    if not console.is_terminal:

        def say(page: Page, done: int, cells: int) -> None:
            if done in (0, cells):
                print(f"{page}: {'started' if done == 0 else 'executed'}", flush=True)

        runner.progress = say
        return asyncio.run(runner.make(chosen))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {page: bars.add_task(str(page), total=None, visible=False) for page in chosen}

        def show(page: Page, done: int, cells: int) -> None:
            bars.update(tasks[page], completed=done, total=cells, visible=True)

        runner.progress = show
        return asyncio.run(runner.make(chosen))


def _report(results: list[Result], proof_lesson: str, console: Console) -> int:
    for fault in dict.fromkeys(result.fault for result in results if result.fault):
        console.print(f"\n{fault}", markup=False)
    by_page: dict[Path, list[Result]] = {}
    for result in results:
        by_page.setdefault(result.edition.code, []).append(result)
    proofs = [
        its
        for its in by_page.values()
        if its[0].edition.folder.name == proof_lesson and its[0].seconds is not None
    ]
    for its in proofs:
        console.print(_describe_proof(its), markup=False, soft_wrap=True)
    listed = [result for result in results if result.outcome in ("woven", "written", "failed")]
    listed += [
        r for r in results if r.outcome == "same results" and r.edition.folder.name != proof_lesson
    ]
    if listed:
        console.print(_table(sorted(listed, key=results.index)))
    _report_differences([its[0] for its in by_page.values()], console)
    out_of_date = [str(r.edition) for r in results if r.outcome == "out of date"]
    if out_of_date:
        names = ", ".join(out_of_date)
        console.print(f"Out of date, and not to be executed here: {names}", soft_wrap=True)
    count = sum(all(r.outcome in ("up to date", "woven") for r in its) for its in by_page.values())
    if count:
        console.print(f"{count} pages are up to date (make ALWAYS=1 executes all)")
    is_well = not any(result.outcome in ("failed", "other results") for result in results)
    if is_well:
        console.print("Open them with: make lab     Check them with: make test")
    return 0 if is_well else 1


def _describe_proof(of_page: list[Result]) -> str:
    """Return whether a framework works on this machine, in a line."""
    first = of_page[0]
    name = first.edition.framework
    title = FRAMEWORKS[name].title if name in FRAMEWORKS else name
    if any(result.outcome == "failed" for result in of_page):
        return f"{title}: does not work here, see above"
    return f"{title}: works here, {first.seconds:.0f} s, {'other' if first.differences else 'same'} results"


def _table(results: list[Result]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("notebook", overflow="fold")
    table.add_column("cells", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for result in results:
        path = display(result.edition.notebook)
        seconds = "" if result.seconds is None else f"{result.seconds:.1f}"
        style = "red" if result.outcome == "failed" else "green"
        table.add_row(path, str(result.cells), seconds, result.outcome, style=style)
    return table


def _report_differences(results: list[Result], console: Console) -> None:
    for result in results:
        for difference in result.differences:
            folder = result.edition.folder.name
            console.print(
                f"{result.edition.framework}/{folder}, cell {difference}",
                markup=False,
                soft_wrap=True,
            )
        if result.outcome == "other results":
            console.print("Stored outputs are as they were; make ALWAYS=1 stores this machine's.")


if __name__ == "__main__":
    sys.exit(main())
