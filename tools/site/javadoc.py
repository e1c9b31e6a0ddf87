"""Read the public names of a Java package and their Javadoc from its source, without a JDK.

This parses the part of Java that our sources use: a declaration ends with a semicolon or a block in
braces, and a comment ``/** ... */`` belongs to the declaration after it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pygments.lexers import JavaLexer
from pygments.token import Comment, String

TYPE = re.compile(r"\b(class|interface|enum|record)\s+(\w+)")
# A method's name is before its parameters, a field's name at the end.
NAME = re.compile(r"(\w+)\s*(?:\(|$)")
ANNOTATION = re.compile(r"@\w+(?:\([^)]*\))?\s*")
PAIRS = {"(": ")", "{": "}"}


@dataclass(frozen=True)
class Parameter:
    type: str
    name: str


@dataclass(frozen=True)
class Declaration:
    """The declaration of a type, a method, a constructor, a field or a constant of an enum."""

    outer: str  # full name of the type or package around it
    text: str  # without body and comments
    name: str
    file: Path
    line: int  # of its name
    doc: str  # Javadoc without the stars
    members: tuple["Declaration", ...]
    is_constant: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.outer}.{self.name}"

    @property
    def is_type(self) -> bool:
        return TYPE.search(self.text) is not None

    @property
    def is_public(self) -> bool:
        return self.is_constant or "public" in self.text.partition("(")[0].split()

    @cached_property
    def parameters(self) -> tuple[Parameter, ...] | None:
        """The parameters of a method or a constructor; None for any other declaration."""
        match = re.search(rf"\b{self.name}\s*\((.*?)\)", self.text)
        if match is None or self.is_constant:
            return None
        parts = re.split(r",(?![^<]*>)", match[1])  # a comma within <> separates type parameters
        return tuple(Parameter(*part.strip().rsplit(" ", 1)) for part in parts if part.strip())


def read_package(folder: Path) -> tuple[str, list[Declaration]]:
    """Return the Javadoc of a package and its public types, in alphabetical order."""
    info = (folder / "package-info.java").read_text(encoding="utf-8")
    types = [
        each
        for file in sorted(folder.glob("*.java"))
        for each in _SourceFile(file, folder.name).types
    ]
    return _strip_stars(info.rpartition("*/")[0]), [each for each in types if each.is_public]


class _SourceFile:
    """A parsed file; ``code`` is its text with spaces in place of comments and strings, which keeps all positions."""

    def __init__(self, file: Path, package: str) -> None:
        self.file = file
        self.docs: dict[int, str] = {}  # Javadoc by the position where the comment ends
        code = ""
        text = file.read_text(encoding="utf-8")
        for position, token_type, token in JavaLexer().get_tokens_unprocessed(text):
            is_code = token_type not in Comment and token_type not in String
            code += token if is_code else re.sub(r"[^\n]", " ", token)
            if token.startswith("/**") and token_type in Comment:
                self.docs[position + len(token)] = _strip_stars(token)
        self.code = code
        declarations = self._read_declarations(package, 0, len(code))
        self.types = [each for each in declarations if each.is_type]  # the others are imports

    def _read_declarations(self, outer: str, start: int, end: int) -> Iterator[Declaration]:
        """Yield the declarations between two positions."""
        position = start
        while (position := self._skip_to_declaration(position, end)) < end:
            body = self._find("{;", position, end)
            head = self.code[position:body]
            type_match = TYPE.search(head)
            last = self._find_closing(body) if body < end and self.code[body] == "{" else body
            if type_match is None and "=" in head:  # braces belong to the field's value
                head = head.partition("=")[0]
                last = self._find(";", position, end)
            members: tuple[Declaration, ...] = ()
            if type_match:
                name = f"{outer}.{type_match[2]}"
                inside = body + 1
                if type_match[1] == "enum":
                    semicolon = self._find(";", inside, last)
                    constants = self._read_constants(name, inside, semicolon)
                    members = (*constants, *self._read_declarations(name, semicolon + 1, last))
                else:
                    members = tuple(self._read_declarations(name, inside, last))
            yield self._make_declaration(outer, position, head, start, members)
            start = position = last + 1

    def _read_constants(self, outer: str, start: int, end: int) -> Iterator[Declaration]:
        """Yield the constants of an enum."""
        while (position := self._skip_to_declaration(start, end)) < end:
            name = re.match(r"\w+", self.code[position:end])
            assert name
            yield self._make_declaration(outer, position, name[0], start, (), is_constant=True)
            start = self._find(",", position, end) + 1

    def _make_declaration(
        self,
        outer: str,
        position: int,
        head: str,
        previous_end: int,
        members: tuple[Declaration, ...],
        is_constant: bool = False,
    ) -> Declaration:
        """Return the declaration at a position; its Javadoc starts after the previous declaration."""
        without_annotations = ANNOTATION.sub(lambda annotation: " " * len(annotation[0]), head)
        match = TYPE.search(without_annotations) or NAME.search(without_annotations)
        assert match
        assert match.lastindex
        docs = [doc for end, doc in self.docs.items() if previous_end <= end <= position]
        return Declaration(
            outer=outer,
            text=" ".join(head.split()),
            name=match[match.lastindex],
            file=self.file,
            line=self.code.count("\n", 0, position + match.start(match.lastindex)) + 1,
            doc=docs[-1] if docs else "",
            members=tuple(each for each in members if each.is_public),
            is_constant=is_constant,
        )

    def _skip_to_declaration(self, position: int, end: int) -> int:
        """Return the first position after whitespace and the end of the previous declaration."""
        while position < end and (self.code[position].isspace() or self.code[position] in ";}"):
            position += 1
        return position

    def _find(self, characters: str, position: int, end: int) -> int:
        """Return the position of the first of these characters outside parentheses and braces, or the end."""
        while position < end and self.code[position] not in characters:
            if self.code[position] in PAIRS:
                position = self._find_closing(position)
            position += 1
        return min(position, end)

    def _find_closing(self, position: int) -> int:
        """Return the position that closes the parenthesis or the brace at a position."""
        opening, closing = self.code[position], PAIRS[self.code[position]]
        depth = 0
        while True:
            depth += (self.code[position] == opening) - (self.code[position] == closing)
            if depth == 0:
                return position
            position += 1


def _strip_stars(comment: str) -> str:
    lines = comment.strip().removeprefix("/**").removesuffix("*/").splitlines()
    return "\n".join(re.sub(r"^ *\*? ?", "", line).rstrip() for line in lines).strip()
