"""A page of D2L as code: the cells of one framework, in D2L's own Markdown.

Cells are fenced blocks marked ``.input``. Which framework's one is stands in its first line: ``#@tab pytorch,
mxnet`` in older pages, ``%%tab`` in newer ones; ``all`` is every one's. Where nothing stands there, it is
that of the page's first framework, MXNet in older pages, PyTorch in newer ones. A page is there in the frameworks
that have a cell of their own; and, if it is a newer one, in those that it lists at its beginning.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from d2l_compat.frameworks import FACES

FENCED = re.compile(
    r"^[ \t]*```\s*\{([^}\n]*)\}[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL
)
SELECTED = re.compile(r" *if (tab\.selected\(.*\)):\s*$")
MARK = re.compile(r"\s*(?:#\s*@tab|(?:#\s*)?%%tab)\s+([^\n]+)\n?")
OFFERS = re.compile(r"^\s*tab\.interact_select\(([^)]*)\)", re.MULTILINE)
CHOOSES = re.compile(r"^\s*(?:%load_ext\s+d2lbook\.tab|tab\.interact_select)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    line: int  # in the page, from 1
    source: str


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        """Chapter and page: ``optimization/sgd``."""
        return f"{self.path.parent.name.removeprefix('chapter_')}/{self.path.stem}"

    def cells(self, framework: str) -> list[Cell]:
        """Those of a framework; none where the page is not there in it."""
        text = self.path.read_text(encoding="utf-8")
        blocks = [
            (text.count("\n", 0, block.start(2)) + 1, block[2])
            for block in FENCED.finditer(text)
            if ".input" in block[1]
        ]
        is_new = any(CHOOSES.search(source) for _, source in blocks)
        found, is_offered = [], False
        for line, source in blocks:
            if CHOOSES.search(source):
                is_offered |= framework in _offered(source)
                continue
            mark = MARK.match(source)
            names = mark[1].split(",") if mark else ["pytorch" if is_new else "mxnet"]
            whose = {name.strip() for name in names}
            code = selected(source[mark.end() :] if mark else source, framework)
            if whose & {framework, "all"} and code.strip():
                found.append(Cell(line, code))
                is_offered |= framework in whose
        return found if is_offered else []


def _offered(source: str) -> list[str]:
    """The frameworks that a newer page lists."""
    return [name for listed in OFFERS.findall(source) for name in re.findall(r"\w+", listed)]


def selected(source: str, framework: str) -> str:
    """A cell, for this framework: lines below ``if tab.selected(...)`` take that line's place, or are left out.

    As with D2L's own tools, one such line ends the block of another that it is in: what is below both is
    moved to the left once.
    """
    lines: list[str] = []
    block: tuple[int, bool] | None = None  # how far it is indented, and whether it is ours
    for line in source.splitlines():
        indentation = len(line) - len(line.lstrip())
        if match := SELECTED.match(line):
            block = indentation, framework in re.findall(r"\w+", match[1])
            continue
        if block and line.strip() and indentation <= block[0]:
            block = None
        if block is None:
            lines.append(line)
        elif block[1]:
            lines.append(line[4:])
    return "\n".join(lines)


def pages(book: Path) -> list[Page]:
    """All in a book's chapters; a translation's originals beside it are left out."""
    found = sorted(book.glob("chapter_*/*.md"))
    return [Page(path) for path in found if not path.stem.endswith("_origin")]


def pairs(book: Path, frameworks: list[str]) -> list[tuple[Page, str]]:
    """Each page with each framework it is there in, if it uses d2l."""
    return [
        (page, framework)
        for page in pages(book)
        for framework in frameworks
        if framework in FACES
        and any(re.search(r"\bd2l\.\w", cell.source) for cell in page.cells(framework))
    ]
