"""A lesson's words: what its code says in English, and what another language's readers are told instead.

Beside ``text.zh-TW.md`` stands ``words.zh-TW.toml``, one table for the code of every framework:

    names = ["CNN", "Keras"]        # stay as they are
    strings = ["Blues", "log"]      # stay as they are where they are a whole string, which the program reads

    [words]
    "largest difference" = "最大的差"

The words are put into comments, docstrings and strings, the longest first, where no letter or digit
adjoins them; a blank may be the end of a line. Every English word has to be covered, and every entry used.
"""

import ast
import re
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.weave.fragments import Fragment, fragments
from tools.weave.lessons import LessonError
from tools.weave.prose import read

TABLE = {"words": dict, "names": list, "strings": list}
# What may be an English word, and is one: not W_q, d2l.plot, float64 or NumPy.
TOKEN = re.compile(r"\w+(?:\.\w+)*", re.ASCII)
WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]{2,}")
MOST = 20  # faults told at a time


@dataclass
class Told:
    """What is said in a fragment."""

    text: str = ""
    used: set[str] = field(default_factory=set)  # entries of the table
    lacking: list[str] = field(default_factory=list)  # stretches that it does not have


@dataclass(frozen=True)
class Words:
    """A lesson's table for one language."""

    file: Path
    language: str
    said: dict[str, str]
    names: list[str]
    strings: list[str]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any entry, the longest first."""
        longest = sorted([*self.said, *self.names], key=len, reverse=True)
        return re.compile("|".join(map(_wherever, longest)) or "(?!)")

    def put_into(self, cells: list[tuple[str, int]], file: Path) -> list[str]:
        """The programs in this language's words; with each comes its line in the file.

        Raises LessonError where they say what the table does not have.
        """
        faults = [
            (line + source[: found.start].count("\n"), words)
            for source, line in cells
            for found in fragments(source, file.suffix)
            for words in self.tell(found).lacking
        ]
        if faults:
            (first, words), *others = faults[:MOST]
            lines = [f"no words for {words!r} in {self.file.name}"]
            lines += [f"{file.name}:{place}: nor for {words!r}" for place, words in others]
            raise LessonError("\n".join(lines), file, first)
        return [self._told(source, file, line) for source, line in cells]

    def _told(self, source: str, file: Path, line: int) -> str:
        program = source
        for found in reversed(list(fragments(source, file.suffix))):
            words = found.written(self.tell(found).text)
            program = program[: found.start] + words + program[found.end :]
        if file.suffix == ".py" and _skeleton(program) != _skeleton(source):
            raise LessonError(f"the words of {self.file.name} change the program", file, line)
        return program

    def used_by(self, program: str, suffix: str) -> set[str]:
        """The entries that it needs."""
        told = map(self.tell, fragments(program, suffix))
        return set[str]().union(*(each.used for each in told))

    def tell(self, found: Fragment) -> Told:
        if found.is_literal and found.text in self.strings:
            return Told(found.text, {found.text})
        told, place = Told(), 0
        for gap in found.no_words.finditer(found.text):
            self._tell(found.text[place : gap.start()], told)
            told.text += gap[0]
            place = gap.end()
        self._tell(found.text[place:], told)
        return told

    def _tell(self, text: str, told: Told) -> None:
        place = 0
        for match in self.pattern.finditer(text):
            _keep(text[place : match.start()], told)
            entry = re.sub(r"\s+", " ", match[0])
            told.used.add(entry)
            told.text += self.said.get(entry, match[0])
            place = match.end()
        _keep(text[place:], told)


def _keep(text: str, told: Told) -> None:
    told.text += text
    if any(map(WORD.fullmatch, TOKEN.findall(text))):
        told.lacking.append(" ".join(text.split()))


def _wherever(entry: str) -> str:
    """A pattern of an entry, which is no part of a word or of a name such as d2l.plot."""
    words = r"\s+".join(map(re.escape, entry.split(" ")))
    before = r"(?<![A-Za-z0-9_.])" if entry[:1].isalnum() else ""
    return before + words + (r"(?!\.?[A-Za-z0-9_])" if entry[-1:].isalnum() else "")


def _skeleton(program: str) -> str:
    """What a program in Python is without its words; nothing where it is none."""
    try:
        return ast.dump(_WithoutWords().visit(ast.parse(program)))
    except SyntaxError:
        return ""


class _WithoutWords(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        parts = [part for part in node.values if not isinstance(part, ast.Constant)]
        return ast.JoinedStr([self.visit(part) for part in parts])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        node.value = self.visit(node.value)  # what it is formatted by says no words
        return node


def file_of(folder: Path, language: str) -> Path:
    return folder / f"words.{language}.toml"


def read_words(folder: Path, language: str) -> Words:
    """A lesson's table for a language; where there is none, an empty one. Raises LessonError."""
    file = file_of(folder, language)
    table: dict[str, Any] = {}
    if file.exists():
        try:
            table = tomllib.loads(read(file))
        except tomllib.TOMLDecodeError as error:
            raise LessonError(f"cannot be read: {error}", file) from None
    for name, value in table.items():
        if not isinstance(value, TABLE.get(name, ())):
            needed = "need names = [...], strings = [...] and [words]"
            raise LessonError(f"{name}: {needed}", file)
    words = Words(file, language, *(table.get(name, kind()) for name, kind in TABLE.items()))
    for entry in [*words.said, *words.said.values(), *words.names, *words.strings]:
        if not (isinstance(entry, str) and entry.strip()):
            raise LessonError(f"{entry!r}: need words in quotes", file)
    return words


def check_used(words: Words, programs: list[Path]) -> None:
    """Raises LessonError for an entry that none of these code files needs, from its first cell on."""
    cells = {file: read(file).partition("%%")[2] for file in programs}
    used = set[str]().union(*(words.used_by(cells[file], file.suffix) for file in programs))
    idle = [entry for entry in [*words.names, *words.strings, *words.said] if entry not in used]
    if idle:
        fault = f"no code file needs {', '.join(map(repr, idle[:MOST]))}"
        raise LessonError(fault, words.file, _line(words.file, idle[0]))


def _line(table: Path, entry: str) -> int | None:
    lines = read(table).splitlines()
    quoted = f'"{entry}"', f"'{entry}'"
    return next((n for n, line in enumerate(lines, 1) if any(q in line for q in quoted)), None)
