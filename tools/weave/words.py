"""Translate the comments and strings of a lesson's code from English.

``words.zh-TW.toml``, beside ``text.zh-TW.md``, is one table for the code of all frameworks:

    names = ["CNN", "Keras"]        # not translated
    strings = ["Blues", "log"]      # not translated if they are a whole string, which the program reads

    [words]
    "largest difference" = "最大的差"

Entries are replaced in comments, docstrings and strings, the longest first, but not next to a letter or digit. A space
in an entry also matches the end of a line. Every English word needs an entry, and every entry must be used.
"""

import ast
import re
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.weave.fragments import Fragment, find_fragments
from tools.weave.lessons import LessonError
from tools.weave.prose import read_file

TABLE = {"words": dict, "names": list, "strings": list}
# A token is translated if it looks like an English word: unlike W_q, d2l.plot, float64 or NumPy.
TOKEN = re.compile(r"\w+(?:\.\w+)*", re.ASCII)
WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]{2,}")
MAX_ITEMS = 20  # in one message


@dataclass
class Translation:
    """The translation of a fragment."""

    text: str = ""
    used_entries: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)  # English words without an entry


@dataclass(frozen=True)
class Translations:
    """A lesson's table for one language."""

    file: Path
    language: str
    words: dict[str, str]
    names: list[str]
    strings: list[str]

    @property
    def entries(self) -> list[str]:
        return [*self.names, *self.strings, *self.words]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A pattern that matches any entry, the longest first."""
        longest_first = sorted([*self.words, *self.names], key=len, reverse=True)
        return re.compile("|".join(map(_make_entry_pattern, longest_first)) or "(?!)")

    def translate_cells(self, cells: list[tuple[str, int]], file: Path) -> list[str]:
        """Return the cells' programs in this language; ``cells`` has each program with its line in the file.

        Raises LessonError for words that have no entry.
        """
        missing: list[tuple[int, str]] = []
        for source, cell_line in cells:
            for fragment in find_fragments(source, file.suffix):
                line = cell_line + source[: fragment.start].count("\n")
                missing += [(line, words) for words in self.translate(fragment).missing]
        if missing:
            (first_line, words), *others = missing[:MAX_ITEMS]
            messages = [f"no entry for {words!r} in {self.file.name}"]
            messages += [f"{file.name}:{line}: no entry for {words!r}" for line, words in others]
            raise LessonError("\n".join(messages), file, first_line)
        return [self._translate_program(source, file, line) for source, line in cells]

    def _translate_program(self, source: str, file: Path, line: int) -> str:
        program = source
        for fragment in reversed(list(find_fragments(source, file.suffix))):
            text = fragment.format(self.translate(fragment).text)
            program = program[: fragment.start] + text + program[fragment.end :]
        if file.suffix == ".py" and _dump_without_words(program) != _dump_without_words(source):
            raise LessonError(f"the words of {self.file.name} change the program", file, line)
        return program

    def find_used_entries(self, program: str, suffix: str) -> set[str]:
        used_entries: set[str] = set()
        for fragment in find_fragments(program, suffix):
            used_entries |= self.translate(fragment).used_entries
        return used_entries

    def translate(self, fragment: Fragment) -> Translation:
        if fragment.is_literal and fragment.text in self.strings:
            return Translation(fragment.text, {fragment.text})
        translation = Translation()
        end = 0
        for gap in fragment.ignored.finditer(fragment.text):
            self._translate_part(fragment.text[end : gap.start()], translation)
            translation.text += gap[0]
            end = gap.end()
        self._translate_part(fragment.text[end:], translation)
        return translation

    def _translate_part(self, text: str, translation: Translation) -> None:
        """Append the translation of a text."""
        end = 0
        for match in self.pattern.finditer(text):
            _append_unchanged(text[end : match.start()], translation)
            entry = re.sub(r"\s+", " ", match[0])
            translation.used_entries.add(entry)
            translation.text += self.words.get(entry, match[0])
            end = match.end()
        _append_unchanged(text[end:], translation)


def _append_unchanged(text: str, translation: Translation) -> None:
    """Append a text unchanged, and record it as missing if it has English words."""
    translation.text += text
    if any(map(WORD.fullmatch, TOKEN.findall(text))):
        translation.missing.append(" ".join(text.split()))


def _make_entry_pattern(entry: str) -> str:
    """Return a pattern that matches an entry, but not within a word or a name such as d2l.plot."""
    words = r"\s+".join(map(re.escape, entry.split(" ")))
    before = r"(?<![A-Za-z0-9_.])" if entry[:1].isalnum() else ""
    return before + words + (r"(?!\.?[A-Za-z0-9_])" if entry[-1:].isalnum() else "")


def _dump_without_words(program: str) -> str:
    """Return a Python program's syntax tree with empty strings, or "" for an invalid program."""
    try:
        return ast.dump(_RemoveWords().visit(ast.parse(program)))
    except SyntaxError:
        return ""


class _RemoveWords(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        parts = [part for part in node.values if not isinstance(part, ast.Constant)]
        return ast.JoinedStr([self.visit(part) for part in parts])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        node.value = self.visit(node.value)  # the format specifier has no words
        return node


def read_translations(lesson: Path, language: str) -> Translations:
    """Return a lesson's table for a language, empty if there is no file. Raise LessonError if the table is invalid."""
    file = lesson / f"words.{language}.toml"
    table: dict[str, Any] = {}
    if file.exists():
        try:
            table = tomllib.loads(read_file(file))
        except tomllib.TOMLDecodeError as error:
            raise LessonError(f"cannot be read: {error}", file) from None
    for name, value in table.items():
        if not isinstance(value, TABLE.get(name, ())):
            needed = "need names = [...], strings = [...] and [words]"
            raise LessonError(f"{name}: {needed}", file)
    values = [table.get(name, kind()) for name, kind in TABLE.items()]
    translations = Translations(file, language, *values)
    for entry in [*translations.entries, *translations.words.values()]:
        if not (isinstance(entry, str) and entry.strip()):
            raise LessonError(f"{entry!r}: need words in quotes", file)
    return translations


def check_no_unused_entries(translations: Translations, programs: list[Path]) -> None:
    """Raise LessonError for an entry that no cell of these code files uses."""
    used_entries: set[str] = set()
    for file in programs:
        cells = read_file(file).partition("%%")[2]
        used_entries |= translations.find_used_entries(cells, file.suffix)
    unused = [entry for entry in translations.entries if entry not in used_entries]
    if unused:
        message = f"no code file needs {', '.join(map(repr, unused[:MAX_ITEMS]))}"
        raise LessonError(message, translations.file, _find_line(translations.file, unused[0]))


def _find_line(table: Path, entry: str) -> int | None:
    for number, line in enumerate(read_file(table).splitlines(), 1):
        if f'"{entry}"' in line or f"'{entry}'" in line:
            return number
    return None
