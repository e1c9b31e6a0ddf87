"""The public names of a Java package and what their Javadoc says, read from the source: no JDK is needed.

Not all of Java, but what a well-formed source of ours has: a declaration ends with a semicolon or with
what stands in braces, and a comment ``/** ... */`` belongs to the declaration after it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pygments.lexers import JavaLexer
from pygments.token import Comment, String

TYPE = re.compile(r"\b(class|interface|enum|record)\s+(\w+)")
# Of what is no type: what stands before its parameters, or at the end.
NAME = re.compile(r"(\w+)\s*(?:\(|$)")
ANNOTATION = re.compile(r"@\w+(?:\([^)]*\))?\s*")
PAIRS = {"(": ")", "{": "}"}


@dataclass(frozen=True)
class Parameter:
    type: str
    name: str


@dataclass(frozen=True)
class Declaration:
    """Of a type, a method, a constructor, a field or an enum's constant."""

    outer: str  # the full name of what it is in
    text: str  # without its body and its comments
    name: str
    file: Path
    line: int  # of its name
    doc: str  # its Javadoc, without stars
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
        """None of what has no list of them."""
        given = re.search(rf"\b{self.name}\s*\((.*?)\)", self.text)
        if given is None or self.is_constant:
            return None
        # A comma within <> is between a type's own parameters.
        parts = [each.strip() for each in re.split(r",(?![^<]*>)", given[1]) if each.strip()]
        return tuple(Parameter(*each.rsplit(" ", 1)) for each in parts)


def package(folder: Path) -> tuple[str, list[Declaration]]:
    """What is said of a package as a whole, and its public types in alphabetical order."""
    about = _clean((folder / "package-info.java").read_text(encoding="utf-8").rpartition("*/")[0])
    types = [
        each for file in sorted(folder.glob("*.java")) for each in _Source(file, folder.name).types
    ]
    return about, [each for each in types if each.is_public]


class _Source:
    """A file; ``code`` is its text with blanks for comments and strings, at the same places."""

    def __init__(self, file: Path, package: str) -> None:
        self.file, self.text = file, file.read_text(encoding="utf-8")
        self.docs: dict[int, str] = {}  # by where they end
        code = ""
        for at, kind, said in JavaLexer().get_tokens_unprocessed(self.text):
            is_code = kind not in Comment and kind not in String
            code += said if is_code else re.sub(r"[^\n]", " ", said)
            if said.startswith("/**") and kind in Comment:
                self.docs[at + len(said)] = _clean(said)
        self.code = code
        self.types = [
            each for each in self._read(package, 0, len(code)) if each.is_type
        ]  # the others are the file's imports

    def _read(self, outer: str, begin: int, end: int) -> Iterator[Declaration]:
        """The declarations between two places."""
        at = begin
        while (at := self._next(at, end)) < end:
            body = self._first("{;", at, end)
            head = self.code[at:body]
            found = TYPE.search(head)
            until = self._close(body) if body < end and self.code[body] == "{" else body
            if found is None and "=" in head:  # braces are its value's
                head = head.partition("=")[0]
                until = self._first(";", at, end)
            members: tuple[Declaration, ...] = ()
            if found:
                name = f"{outer}.{found[2]}"
                inside = body + 1
                if found[1] == "enum":
                    inside = self._first(";", inside, until)
                    constants = self._constants(name, body + 1, inside)
                    members = (*constants, *self._read(name, inside + 1, until))
                else:
                    members = tuple(self._read(name, inside, until))
            yield self._declaration(outer, at, head, begin, members)
            begin = at = until + 1

    def _constants(self, outer: str, begin: int, end: int) -> Iterator[Declaration]:
        while (at := self._next(begin, end)) < end:
            name = re.match(r"\w+", self.code[at:end])
            assert name
            yield self._declaration(outer, at, name[0], begin, (), is_constant=True)
            begin = self._first(",", at, end) + 1

    def _declaration(
        self,
        outer: str,
        at: int,
        head: str,
        after: int,
        members: tuple[Declaration, ...],
        is_constant: bool = False,
    ) -> Declaration:
        """The one that starts ``at`` a place; what is said of it comes ``after`` another one."""
        bare = ANNOTATION.sub(lambda found: " " * len(found[0]), head)
        named = TYPE.search(bare) or NAME.search(bare)
        assert named
        assert named.lastindex
        docs = [doc for end, doc in self.docs.items() if after <= end <= at]
        return Declaration(
            outer=outer,
            text=" ".join(head.split()),
            name=named[named.lastindex],
            file=self.file,
            line=self.code.count("\n", 0, at + named.start(named.lastindex)) + 1,
            doc=docs[-1] if docs else "",
            members=tuple(each for each in members if each.is_public),
            is_constant=is_constant,
        )

    def _next(self, at: int, end: int) -> int:
        """The first place from ``at`` on where there is something."""
        while at < end and (self.code[at].isspace() or self.code[at] in ";}"):
            at += 1
        return at

    def _first(self, marks: str, at: int, end: int) -> int:
        """The first place of one of the ``marks``, outside of parentheses and of braces; else the end."""
        while at < end and self.code[at] not in marks:
            at = self._close(at) + 1 if self.code[at] in PAIRS else at + 1
        return min(at, end)

    def _close(self, at: int) -> int:
        """The place of what closes the parenthesis or the brace there."""
        opened, closed = self.code[at], PAIRS[self.code[at]]
        depth = 0
        while True:
            depth += (self.code[at] == opened) - (self.code[at] == closed)
            if depth == 0:
                return at
            at += 1


def _clean(comment: str) -> str:
    lines = comment.strip().removeprefix("/**").removesuffix("*/").splitlines()
    return "\n".join(re.sub(r"^ *\*? ?", "", line).rstrip() for line in lines).strip()
