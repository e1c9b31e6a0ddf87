"""Where words stand in a program: in its comments, docstrings and strings, in Python and in Java.

Of an f-string its literal parts count, and the strings in its expressions. Found by the form of the
program, and so the same whatever Python this is.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

STRING = r"""(?P<quote>\"{3}|'{3}|"|')(?P<body>(?:(?!(?P=quote))(?:\\[\s\S]|[^\\]))*)(?P=quote)"""
PYTHON = re.compile(
    r"^[ \t]*(?P<lines>#.*(?:\n[ \t]*#.*)*)"
    r"|(?P<comment>#.*)"
    rf"|(?:(?<!\w)(?P<prefix>[rbuftRBUFT]{{1,2}}))?{STRING}",
    re.MULTILINE,
)
JAVA = re.compile(
    r"^[ \t]*(?P<lines>//.*(?:\n[ \t]*//.*)*)"
    r"|(?P<comment>//.*)"
    r"|(?P<block>/\*[\s\S]*?\*/)"
    rf"|{STRING}",
    re.MULTILINE,
)
MARK = re.compile(r"^[ \t]*(?:#|//) ?", re.MULTILINE)  # of a line of comment
BLOCK = re.compile(r"(/\*+\s?)([\s\S]*?)(\s?\*/)")  # Java's
STAR = re.compile(r"\n[ \t]*\*? ?")
# What in a string is no word: an escape, in a raw one a command of LaTeX, in Java the place of a number.
ESCAPE = re.compile(r"\\[\s\S]")
COMMAND = re.compile(r"\\(?:[A-Za-z]+|[\s\S])")
FORMAT = re.compile(r"\\[\s\S]|%(?:\d+\$)?[-#+0,(]*\d*(?:\.\d+)?[A-Za-z%]")
NOTHING = re.compile(r"(?!)")
# Where a body begins, for which a docstring may stand.
BODY = re.compile(r":[ \t]*(?:#.*)?(?:\n[ \t]*(?:#.*)?)*\n[ \t]+\Z")
BRACE = re.compile(r"\{\{|\}\}|[{}]")


@dataclass(frozen=True)
class Fragment:
    """What is said in a stretch of a program."""

    kind: str  # comment, docstring or string
    start: int
    end: int
    whole: tuple[int, int]  # its stretch with all marks
    text: str  # its lines, without marks and indentation
    line: str = "\n"  # how each line but the first begins, in the program
    no_words: re.Pattern[str] = NOTHING
    is_literal: bool = False  # all of a string

    def written(self, text: str) -> str:
        """Another text, as it stands in the program."""
        return text.replace("\n", self.line)


def bare(source: str, suffix: str) -> str:
    """What is executed of a program: all but its comments and docstrings."""
    for found in reversed(list(fragments(source, suffix))):
        if found.kind != "string":
            start, end = found.whole
            source = source[:start] + source[end:]
    return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())


def wordless(source: str, suffix: str) -> str:
    """What of it is the same in every language: its strings are empty."""
    program = bare(source, suffix)
    for found in reversed(list(fragments(program, suffix))):
        program = program[: found.start] + program[found.end :]
    return program


def fragments(source: str, suffix: str) -> Iterator[Fragment]:
    """Of a program, in order; a file's suffix says in which language it is."""
    return READ[suffix](source)


def _python(source: str) -> Iterator[Fragment]:
    for found in PYTHON.finditer(source):
        if found["quote"] is None:
            yield _comment(source, found)
        elif "b" not in (prefix := (found["prefix"] or "").lower()):
            yield from _string(source, found, prefix)


def _java(source: str) -> Iterator[Fragment]:
    for found in JAVA.finditer(source):
        if found["block"] is not None:
            yield _block(source, found)
        elif found["quote"] is None:
            yield _comment(source, found)
        elif found["quote"] != "'":
            yield _literal(found, FORMAT)


READ: dict[str, Callable[[str], Iterator[Fragment]]] = {".py": _python, ".java": _java}


def _comment(source: str, found: re.Match[str]) -> Fragment:
    """Lines of comment below each other are one."""
    group = "lines" if found["comment"] is None else "comment"
    text, start = found[group], found.start(group)
    first = MARK.match(text)
    assert first is not None
    line = f"\n{_indentation(source, start)}{first[0].rstrip()} "
    whole = start, found.end()
    return Fragment("comment", start + len(first[0]), whole[1], whole, MARK.sub("", text), line)


def _block(source: str, found: re.Match[str]) -> Fragment:
    parts = BLOCK.fullmatch(found[0])
    assert parts is not None
    start, end = found.start() + len(parts[1]), found.end() - len(parts[3])
    line = f"\n{_indentation(source, found.start())} * "
    return Fragment("comment", start, end, found.span(), STAR.sub("\n", parts[2]), line)


def _literal(found: re.Match[str], no_words: re.Pattern[str]) -> Fragment:
    start, end = found.span("body")
    return Fragment("string", start, end, found.span(), found["body"], "\n", no_words, True)


def _string(source: str, found: re.Match[str], prefix: str) -> Iterator[Fragment]:
    no_words = COMMAND if "r" in prefix else ESCAPE
    if "f" in prefix:
        yield from _parts(found, no_words)
        return
    string, space = _literal(found, no_words), _indentation(source, found.start())
    is_first = space and BODY.search(source, 0, found.start())
    if is_first and len(found["quote"]) == 3:
        line = "\n" + space
        text = string.text.replace(line, "\n")
        string = replace(string, kind="docstring", text=text, line=line)
    yield string


def _parts(found: re.Match[str], no_words: re.Pattern[str]) -> Iterator[Fragment]:
    """Of an f-string: its literal parts, and the strings in its expressions."""
    body, start = found["body"], found.start("body")
    depth, begun = 0, 0
    for brace in BRACE.finditer(body):
        if depth == 0 and len(brace[0]) == 2:
            continue
        part, at = body[begun : brace.start()], start + begun
        if depth == 0:
            end = at + len(part)
            yield Fragment("string", at, end, (at, end), part, "\n", no_words)
            begun = brace.end() if brace[0] == "{" else begun
        depth += brace[0].count("{") - brace[0].count("}")
        if depth == 0:
            yield from (_moved(each, at) for each in _python(_expression(part)))
            begun = brace.end()
    whole = start + begun, start + len(body)
    yield Fragment("string", *whole, whole, body[begun:], "\n", no_words)


def _moved(found: Fragment, by: int) -> Fragment:
    whole = found.whole[0] + by, found.whole[1] + by
    return replace(found, start=found.start + by, end=found.end + by, whole=whole)


def _expression(code: str) -> str:
    """Without what it is formatted by: after a colon that stands in no bracket and no string."""
    depth = 0
    for found in re.finditer(r"'[^']*'|\"[^\"]*\"|[][(){}:]", code):
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if found[0] == ":" and depth == 0:
            return code[: found.start()]
    return code


def _indentation(source: str, place: int) -> str:
    line = source[source.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]
