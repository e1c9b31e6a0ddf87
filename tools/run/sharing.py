"""What notebooks share that differ in their language alone: a page, and most of its cells.

A shared cell is executed once. The runner (tools/run/runner.py) and nbval (tools/run/page_kernel.py) both ask
here which cells those are.
"""

from pathlib import Path
from typing import NamedTuple


class Identity(NamedTuple):
    """Cells of a page that have this in common are one cell, in several languages."""

    number: int  # its place among the code cells, from 0
    name: str
    source: str


def page_of(notebook: Path | str) -> tuple[str, ...]:
    """What a notebook has in common with those in other languages: its path without it."""
    parts = Path(notebook).parts
    is_one_of_many = parts[-4:-3] == ("notebooks",)
    return (*parts[:-3], *parts[-2:]) if is_one_of_many else parts
