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
    describe_missing_notebooks,
    group_by_page,
    list_notebooks,
    read_proof_lesson,
    shorten_path,
)


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code: 0 for success, 1 if a notebook failed, 2 if nothing was run, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tools", description=__doc__)
    parser.add_argument(
        "--framework",
        action="append",
        help="execute only this framework's notebooks, but weave all (may be repeated)",
    )
    parser.add_argument(
        "--language", action="append", help="make only this language (may be repeated)"
    )
    parser.add_argument("--lesson", action="append", help="make only this lesson (may be repeated)")
    parser.add_argument(
        "--jobs", type=_positive_int, default=os.cpu_count(), help="pages at a time"
    )
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for a page (1200)")
    parser.add_argument("--always", action="store_true", help="execute up-to-date pages, too")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # the output of a pipe is not wrapped
    root = options.root
    try:
        notebooks_to_execute = list_notebooks(None, options.framework, root)
        frameworks = {notebook.framework for notebook in notebooks_to_execute}
        pages = group_by_page(list_notebooks(options.language, None, root, options.lesson))
        if missing := describe_missing_notebooks(options.language, options.framework, root):
            console.print(missing, markup=False, soft_wrap=True)
        proof_lesson = read_proof_lesson(root)
    except LessonError as error:
        console.print(str(error), markup=False, style="red")
        return 2
    runner = Runner(
        root,
        jobs=options.jobs,
        limit=options.timeout,
        always=options.always,
        frameworks=frameworks,
        proof=proof_lesson,
    )
    try:
        results = _make(pages, runner, console)
    except KeyboardInterrupt:
        console.print("Interrupted: unfinished notebooks are unchanged.", style="red")
        return 130
    return _report(results, proof_lesson, console)


def _positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _make(pages: list[Page], runner: Runner, console: Console) -> list[Result]:
    """Make all pages; show the progress of executions as bars in a terminal, or as lines in a pipe."""
    if not console.is_terminal:

        def print_line(page: Page, done: int, cells: int) -> None:
            if done in (0, cells):
                print(f"{page}: {'started' if done == 0 else 'executed'}", flush=True)

        runner.progress = print_line
        return asyncio.run(runner.make(pages))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {page: bars.add_task(str(page), total=None, visible=False) for page in pages}

        def update_bar(page: Page, done: int, cells: int) -> None:
            bars.update(tasks[page], completed=done, total=cells, visible=True)

        runner.progress = update_bar
        return asyncio.run(runner.make(pages))


def _report(results: list[Result], proof_lesson: str, console: Console) -> int:
    """Print errors, a table, differences and notes; return the exit code."""
    for error in dict.fromkeys(result.error for result in results if result.error):
        console.print(f"\n{error}", markup=False)
    by_page: dict[Path, list[Result]] = {}
    for result in results:
        by_page.setdefault(result.notebook.code, []).append(result)
    for group in by_page.values():
        if group[0].notebook.lesson.name == proof_lesson and group[0].seconds is not None:
            console.print(_describe_proof(group), markup=False, soft_wrap=True)
    rows = []
    for result in results:
        is_same = result.outcome == "same results"
        is_proof = result.notebook.lesson.name == proof_lesson
        if result.outcome in ("woven", "written", "failed") or (is_same and not is_proof):
            rows.append(result)
    if rows:
        console.print(_make_table(rows))
    _report_differences([group[0] for group in by_page.values()], console)
    out_of_date = [str(each.notebook) for each in results if each.outcome == "out of date"]
    if out_of_date:
        names = ", ".join(out_of_date)
        console.print(f"Out of date, but their frameworks were not chosen: {names}", soft_wrap=True)
    num_up_to_date = sum(
        all(result.outcome in ("up to date", "woven") for result in group)
        for group in by_page.values()
    )
    if num_up_to_date:
        console.print(f"{num_up_to_date} pages are up to date (make ALWAYS=1 executes all)")
    if any(result.outcome in ("failed", "other results") for result in results):
        return 1
    console.print("Open them with: make lab     Check them with: make test")
    return 0


def _describe_proof(results: list[Result]) -> str:
    """Return a line that says whether a framework works on this machine."""
    first = results[0]
    name = first.notebook.framework
    title = FRAMEWORKS[name].title if name in FRAMEWORKS else name
    if any(result.outcome == "failed" for result in results):
        return f"{title}: does not work here, see above"
    comparison = "other" if first.differences else "same"
    return f"{title}: works here, {first.seconds:.0f} s, {comparison} results"


def _make_table(results: list[Result]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("notebook", overflow="fold")
    table.add_column("cells", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for result in results:
        path = shorten_path(result.notebook.path)
        seconds = "" if result.seconds is None else f"{result.seconds:.1f}"
        style = "red" if result.outcome == "failed" else "green"
        table.add_row(path, str(result.num_cells), seconds, result.outcome, style=style)
    return table


def _report_differences(results: list[Result], console: Console) -> None:
    """Print the differences of each page, which its notebooks share; ``results`` has one result per page."""
    for result in results:
        page = f"{result.notebook.framework}/{result.notebook.lesson.name}"
        for difference in result.differences:
            console.print(f"{page}, cell {difference}", markup=False, soft_wrap=True)
        if result.outcome == "other results":
            console.print("The stored outputs are unchanged; make ALWAYS=1 stores this machine's.")


if __name__ == "__main__":
    sys.exit(main())
