"""``python -m tools``: weave the lessons and execute what has changed, with progress and a summary."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tools.run.runner import Result, make
from tools.weave.lessons import ROOT, LessonError, Page, display, editions, left_out, pages


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 all went well, 1 a notebook failed, 2 nothing was run, 130 Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tools", description=__doc__)
    parser.add_argument("--framework", action="append", help="only this one (may be repeated)")
    parser.add_argument("--language", action="append", help="only this one (may be repeated)")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count(), help="pages at a time")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for a page (1200)")
    parser.add_argument("--always", action="store_true", help="execute what is unchanged, too")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    asked = parser.parse_args(arguments)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200  # a pipe has no edge to wrap at
    try:
        chosen = list(editions(asked.language, asked.framework, asked.root))
        if lacking := left_out(asked.language, asked.framework, asked.root):
            console.print(lacking, markup=False, soft_wrap=True)
    except LessonError as error:
        console.print(str(error), markup=False, style="red")
        return 2
    try:
        results = _make(pages(chosen), asked, console)
    except KeyboardInterrupt:
        console.print("Interrupted: what was not finished is as it was.", style="red")
        return 130
    return _report(results, console)


def _positive(number: str) -> int:
    if (value := int(number)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a number from 1 on")
    return value


def _make(chosen: list[Page], asked: argparse.Namespace, console: Console) -> list[Result]:
    """With a bar for each page that is executed in a terminal, a line for each in a pipe."""
    how = asked.jobs, asked.timeout
    if not console.is_terminal:

        def say(page: Page, done: int, cells: int) -> None:
            if done in (0, cells):
                print(f"{page}: {'started' if done == 0 else 'executed'}", flush=True)

        return asyncio.run(make(chosen, *how, say, asked.always))
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

        return asyncio.run(make(chosen, *how, show, asked.always))


def _report(results: list[Result], console: Console) -> int:
    table = Table(box=None, pad_edge=False)
    table.add_column("notebook", overflow="fold")
    table.add_column("cells", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("result", no_wrap=True)
    for result in results:
        style = "red" if result.fault else "green"
        path = display(result.edition.notebook)
        seconds = "" if result.seconds is None else f"{result.seconds:.1f}"
        table.add_row(path, str(result.cells), seconds, result.outcome, style=style)
    failed = [result for result in results if result.fault]
    for fault in dict.fromkeys(result.fault for result in failed):
        console.print(f"\n{fault}", markup=False)
    console.print(table)
    if not failed:
        console.print("\nOpen them with: make lab     Check them with: make test")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
