"""Read the numbers, formulas, links and code of a Markdown text."""

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
# Also the number in x1, but not one within a word, as in D2L.
NUMBER = re.compile(r"(?<![A-Za-z\d])\d+(?:[.,]\d+)*|(?<=[A-Za-z])\d+(?![A-Za-z\d])")
LINK = re.compile(r'(?:href|src)="([^"]*)"')  # in HTML
# A formula that is only a name: n, \delta, \mathbf{x}_1.
NAME = re.compile(r"(?:\\mathbf\{\w\}|\\[a-z]+|\w)(?:_\w)?")
WORDS = re.compile(r"\\text\{[^}]*\}")  # within a formula


@dataclass(frozen=True)
class Piece:
    """A paragraph, a list item or a table cell, without code and addresses."""

    line: int
    numbers: tuple[str, ...]  # also those in formulas
    formulas: tuple[str, ...]
    in_table: bool
    text: str  # formulas between dollar signs

    @property
    def statements(self) -> tuple[str, ...]:
        """The formulas that are more than a name."""
        return tuple(formula for formula in self.formulas if not NAME.fullmatch(formula))


def parse_pieces(text: str, line: int = 1) -> Iterator[Piece]:
    """Yield the pieces of a text that begins on this line of its file."""
    in_table = False
    for token in MARKDOWN.parse(text):
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        elif token.type in ("inline", "math_block"):
            parts = [part for part in token.children or [token] if part.type != "code_inline"]
            numbers = NUMBER.findall(" ".join(WORDS.sub("", part.content) for part in parts))
            formulas = [
                _strip_words(part.content) for part in parts if part.type.startswith("math")
            ]
            text = "".join(map(_render_text, parts))
            first = token.map[0] if token.map else 0
            yield Piece(line + first, tuple(numbers), tuple(formulas), in_table, text)


def _render_text(token: Token) -> str:
    content = WORDS.sub("", token.content)
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return f"${content}$" if token.type.startswith("math") else content


def _strip_words(formula: str) -> str:
    """Remove a formula's words, and the full stop or comma of the sentence around it."""
    return " ".join(WORDS.sub("", formula).split()).rstrip(".,")


def read_pieces(text: Path, hidden: Iterable[str] = ()) -> list[list[Piece]]:
    """Return the pieces of each passage of a lesson's text, without the hidden words."""
    return [
        [*parse_pieces(hide(passage.prose, hidden), passage.line)]
        for passage in read_passages(text)
        if not passage.cell
    ]


def hide(text: str, hidden: Iterable[str]) -> str:
    """Replace words by x, letter by letter, so that lines keep their lengths."""
    for words in hidden:
        text = make_pattern(words).sub(lambda match: re.sub(r"\S", "x", match[0]), text)
    return text


def make_pattern(words: str) -> re.Pattern[str]:
    """Return a pattern of words with any line breaks."""
    return re.compile(r"\s+".join(map(re.escape, words.split())))


def find_links(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and address of each link or image."""
    for token in MARKDOWN.parse(text):
        first = token.map[0] + 1 if token.map else 1
        for part in [token, *(token.children or [])]:
            if address := part.attrGet("href") or part.attrGet("src"):
                yield first, str(address)
            elif part.type.startswith("html"):
                yield from ((first, address) for address in LINK.findall(part.content))


def find_anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub names them."""
    tokens = MARKDOWN.parse(text)
    titles = [after for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", _get_text(title).lower()).replace(" ", "-") for title in titles}


def find_inline_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and content of each piece of inline code."""
    for token in MARKDOWN.parse(text):
        for part in token.children or []:
            if part.type == "code_inline":
                yield (token.map[0] + 1 if token.map else 1), part.content


def list_commands(text: str) -> list[str]:
    """Return the lines of all code blocks, without comments."""
    blocks = [token.content for token in MARKDOWN.parse(text) if token.type == "fence"]
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]


def find_paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs, list items and table cells, with x for each formula and piece of code."""
    letter = {"code_inline": "x", "math_inline": "x"}
    for token in MARKDOWN.parse(text):
        if token.type == "inline":
            parts = [part for part in token.children or [] if part.type != "html_inline"]
            yield "".join(letter.get(part.type, part.content) for part in parts)


def _get_text(title: Token) -> str:
    return "".join(part.content for part in title.children or [])


def parse_numbers(words: str) -> list[float]:
    return [float(number) for piece in parse_pieces(words) for number in piece.numbers]
