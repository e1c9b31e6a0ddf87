"""Read the code of D2L's pages, which are in D2L's own Markdown.

Cells are fenced blocks marked ``.input``. The first line names a cell's frameworks: ``#@tab pytorch, mxnet`` in older
pages, ``%%tab`` in newer ones; ``all`` means every framework. A cell without this line belongs to the page's first
framework: MXNet in older pages, PyTorch in newer ones. A page exists in each framework that has its own cell;
a newer page also in those that it lists at its beginning.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from d2l_compat.frameworks import PYTHON_FRAMEWORKS

FENCED_BLOCK = re.compile(
    r"^[ \t]*```\s*\{([^}\n]*)\}[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL
)
TAB_CONDITION = re.compile(r" *if (tab\.selected\(.*\)):\s*$")
TAB_MARK = re.compile(r"\s*(?:#\s*@tab|(?:#\s*)?%%tab)\s+([^\n]+)\n?")
TAB_LIST = re.compile(r"^\s*tab\.interact_select\(([^)]*)\)", re.MULTILINE)
TAB_SETUP = re.compile(r"^\s*(?:%load_ext\s+d2lbook\.tab|tab\.interact_select)", re.MULTILINE)


@dataclass(frozen=True)
class PageCell:
    line: int  # in the page, from 1
    source: str


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        """The chapter and the page: ``optimization/sgd``."""
        return f"{self.path.parent.name.removeprefix('chapter_')}/{self.path.stem}"

    def cells(self, framework: str) -> list[PageCell]:
        """Return the cells of a framework; none if the page does not exist in it."""
        text = self.path.read_text(encoding="utf-8")
        blocks = [
            (text.count("\n", 0, block.start(2)) + 1, block[2])
            for block in FENCED_BLOCK.finditer(text)
            if ".input" in block[1]
        ]
        is_new = any(TAB_SETUP.search(source) for _, source in blocks)
        page_cells = []
        has_framework = False
        for line, source in blocks:
            if TAB_SETUP.search(source):
                has_framework |= framework in _list_frameworks(source)
                continue
            mark = TAB_MARK.match(source)
            names = mark[1].split(",") if mark else ["pytorch" if is_new else "mxnet"]
            frameworks = {name.strip() for name in names}
            code = select_lines(source[mark.end() :] if mark else source, framework)
            if frameworks & {framework, "all"} and code.strip():
                page_cells.append(PageCell(line, code))
                has_framework |= framework in frameworks
        return page_cells if has_framework else []


def _list_frameworks(source: str) -> list[str]:
    """Return the frameworks that a newer page lists."""
    return [name for names in TAB_LIST.findall(source) for name in re.findall(r"\w+", names)]


def select_lines(source: str, framework: str) -> str:
    """Return a cell for a framework: a block ``if tab.selected(...):`` is replaced by its lines, or dropped.

    As in D2L's own tools, such a line ends the block around it, so the lines of a nested block are dedented only once.
    """
    lines: list[str] = []
    block: tuple[int, bool] | None = None  # indentation, and whether the framework is selected
    for line in source.splitlines():
        indentation = len(line) - len(line.lstrip())
        if match := TAB_CONDITION.match(line):
            block = indentation, framework in re.findall(r"\w+", match[1])
            continue
        if block and line.strip() and indentation <= block[0]:
            block = None
        if block is None:
            lines.append(line)
        elif block[1]:
            lines.append(line[4:])
    return "\n".join(lines)


def list_pages(book: Path) -> list[Page]:
    """Return the pages of all chapters, without the originals that translators keep next to them."""
    paths = sorted(book.glob("chapter_*/*.md"))
    return [Page(path) for path in paths if not path.stem.endswith("_origin")]


def list_pairs(book: Path, frameworks: list[str]) -> list[tuple[Page, str]]:
    """Return each page that uses d2l, with each framework in which it exists."""
    python_frameworks = [framework for framework in frameworks if framework in PYTHON_FRAMEWORKS]
    return [
        (page, framework)
        for page in list_pages(book)
        for framework in python_frameworks
        if _uses_d2l(page, framework)
    ]


def _uses_d2l(page: Page, framework: str) -> bool:
    return any(re.search(r"\bd2l\.\w", cell.source) for cell in page.cells(framework))
