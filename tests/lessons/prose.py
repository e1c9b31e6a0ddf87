"""What a text in Markdown says besides its words: its numbers, its formulas, and where its links lead."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from tools.weave.prose import read_passages

MARKDOWN = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, double_inline=True)
# Also that of x1; not that within a word, as in D2L.
NUMBER = re.compile(r"(?<![A-Za-z\d])\d+(?:[.,]\d+)*|(?<=[A-Za-z])\d+(?![A-Za-z\d])")
LINK = re.compile(r'(?:href|src)="([^"]*)"')  # in HTML
# A formula that only names something, as a word would: n, \delta, \mathbf{x}_1.
NAME = re.compile(r"(?:\\mathbf\{\w\}|\\[a-z]+|\w)(?:_\w)?")
WORDS = re.compile(r"\\text\{[^}]*\}")  # within a formula


@dataclass(frozen=True)
class Piece:
    """A paragraph, an item of a list or a cell of a table; code and addresses are left out."""

    line: int
    numbers: tuple[str, ...]  # in formulas, too
    formulas: tuple[str, ...]
    in_table: bool
    text: str  # formulas between dollar signs

    @property
    def statements(self) -> tuple[str, ...]:
        """Its formulas that say more than a name."""
        return tuple(each for each in self.formulas if not NAME.fullmatch(each))


def pieces(text: str, line: int = 1) -> Iterator[Piece]:
    """Of a text that begins on this line of its file."""
    in_table = False
    for token in MARKDOWN.parse(text):
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        elif token.type in ("inline", "math_block"):
            said = [each for each in token.children or [token] if each.type != "code_inline"]
            numbers = NUMBER.findall(" ".join(WORDS.sub("", each.content) for each in said))
            formulas = [_plain(each.content) for each in said if each.type.startswith("math")]
            text = "".join(_as_text(each) for each in said)
            first = token.map[0] if token.map else 0
            yield Piece(line + first, tuple(numbers), tuple(formulas), in_table, text)


def _as_text(token: Token) -> str:
    content = WORDS.sub("", token.content)
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return f"${content}$" if token.type.startswith("math") else content


def _plain(formula: str) -> str:
    """Without its words, and without the full stop or the comma of the sentence around it."""
    return " ".join(WORDS.sub("", formula).split()).rstrip(".,")


def pieces_of(text: Path, but: Iterable[str] = ()) -> list[list[Piece]]:
    """Of a lesson's text, passage by passage; the words ``but`` left out."""
    return [
        [*pieces(without(each.prose, but), each.line)]
        for each in read_passages(text)
        if not each.cell
    ]


def without(text: str, but: Iterable[str]) -> str:
    """These words made unreadable, each line as long as it was."""
    for words in but:
        text = pattern(words).sub(lambda found: re.sub(r"\S", "x", found[0]), text)
    return text


def pattern(words: str) -> re.Pattern[str]:
    """Wherever a line ends within them."""
    return re.compile(r"\s+".join(map(re.escape, words.split())))


def links(text: str) -> Iterator[tuple[int, str]]:
    """Where each link or image leads, and its line."""
    for token in MARKDOWN.parse(text):
        first = token.map[0] + 1 if token.map else 1
        for each in [token, *(token.children or [])]:
            if address := each.attrGet("href") or each.attrGet("src"):
                yield first, str(address)
            elif each.type.startswith("html"):
                yield from ((first, address) for address in LINK.findall(each.content))


def anchors(text: str) -> set[str]:
    """The names of its headings, as GitHub makes them."""
    tokens = MARKDOWN.parse(text)
    titles = [after for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", _words(title).lower()).replace(" ", "-") for title in titles}


def code(text: str) -> Iterator[tuple[int, str]]:
    """What stands in backquotes within its sentences, and the line."""
    for token in MARKDOWN.parse(text):
        for each in token.children or []:
            if each.type == "code_inline":
                yield (token.map[0] + 1 if token.map else 1), each.content


def commands(text: str) -> list[str]:
    """The lines of its blocks of code, without what is said to them."""
    blocks = [token.content for token in MARKDOWN.parse(text) if token.type == "fence"]
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]


def spoken(text: str) -> Iterator[str]:
    """Its paragraphs, items and cells; what is code, or a formula, is one letter."""
    letter = {"code_inline": "x", "math_inline": "x"}
    for token in MARKDOWN.parse(text):
        if token.type == "inline":
            parts = [each for each in token.children or [] if each.type != "html_inline"]
            yield "".join(letter.get(each.type, each.content) for each in parts)


def _words(title: Token) -> str:
    return "".join(each.content for each in title.children or [])


def numbers_of(words: str) -> list[float]:
    return [float(number) for piece in pieces(words) for number in piece.numbers]
