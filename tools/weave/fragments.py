"""Find the comments, docstrings and strings of a program in Python or Java.

Of an f-string these are its literal parts, and the strings in its expressions. They are found by regular
expressions, so that the result does not depend on the version of Python.
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
COMMENT_MARK = re.compile(r"^[ \t]*(?:#|//) ?", re.MULTILINE)
BLOCK_COMMENT = re.compile(r"(/\*+\s?)([\s\S]*?)(\s?\*/)")
BLOCK_COMMENT_LINE = re.compile(r"\n[ \t]*\*? ?")
# Parts of a string that are not words: escapes, LaTeX commands (in a raw string), Java's format specifiers.
ESCAPE = re.compile(r"\\[\s\S]")
COMMAND = re.compile(r"\\(?:[A-Za-z]+|[\s\S])")
FORMAT = re.compile(r"\\[\s\S]|%(?:\d+\$)?[-#+0,(]*\d*(?:\.\d+)?[A-Za-z%]")
NOTHING = re.compile(r"(?!)")
# The beginning of a body, where a docstring may follow.
BODY = re.compile(r":[ \t]*(?:#.*)?(?:\n[ \t]*(?:#.*)?)*\n[ \t]+\Z")
BRACE = re.compile(r"\{\{|\}\}|[{}]")


@dataclass(frozen=True)
class Fragment:
    """The text of a comment, a docstring or a string."""

    kind: str  # comment, docstring or string
    start: int
    end: int
    span: tuple[int, int]  # includes the marks or quotes
    text: str  # without marks and indentation
    line_break: str = "\n"  # separates two lines in the program
    ignored: re.Pattern[str] = NOTHING  # parts of the text that are not words
    is_literal: bool = False  # a whole string, not a part of an f-string

    def format(self, text: str) -> str:
        """Return another text as it has to be written in the program."""
        return text.replace("\n", self.line_break)


def strip_comments(source: str, suffix: str) -> str:
    """Return a program without its comments, docstrings and empty lines."""
    for found in reversed(list(find_fragments(source, suffix))):
        if found.kind != "string":
            start, end = found.span
            source = source[:start] + source[end:]
    return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())


def strip_strings(source: str, suffix: str) -> str:
    """Return a program without comments and with empty strings: what is the same in every language."""
    program = strip_comments(source, suffix)
    for found in reversed(list(find_fragments(program, suffix))):
        program = program[: found.start] + program[found.end :]
    return program


def find_fragments(source: str, suffix: str) -> Iterator[Fragment]:
    """Yield a program's fragments in order; the file's suffix stands for the programming language."""
    return PARSERS[suffix](source)


def _parse_python(source: str) -> Iterator[Fragment]:
    for found in PYTHON.finditer(source):
        if found["quote"] is None:
            yield _parse_comment(source, found)
        elif "b" not in (prefix := (found["prefix"] or "").lower()):
            yield from _parse_string(source, found, prefix)


def _parse_java(source: str) -> Iterator[Fragment]:
    for found in JAVA.finditer(source):
        if found["block"] is not None:
            yield _parse_block_comment(source, found)
        elif found["quote"] is None:
            yield _parse_comment(source, found)
        elif found["quote"] != "'":
            yield _make_literal(found, FORMAT)


PARSERS: dict[str, Callable[[str], Iterator[Fragment]]] = {
    ".py": _parse_python,
    ".java": _parse_java,
}


def _parse_comment(source: str, found: re.Match[str]) -> Fragment:
    """Return one fragment for a comment on one line or several successive lines."""
    group = "lines" if found["comment"] is None else "comment"
    text, start, end = found[group], found.start(group), found.end()
    mark = COMMENT_MARK.match(text)
    assert mark is not None
    line_break = f"\n{_indentation(source, start)}{mark[0].rstrip()} "
    words = COMMENT_MARK.sub("", text)
    return Fragment("comment", start + len(mark[0]), end, (start, end), words, line_break)


def _parse_block_comment(source: str, found: re.Match[str]) -> Fragment:
    parts = BLOCK_COMMENT.fullmatch(found[0])
    assert parts is not None
    start, end = found.start() + len(parts[1]), found.end() - len(parts[3])
    line_break = f"\n{_indentation(source, found.start())} * "
    text = BLOCK_COMMENT_LINE.sub("\n", parts[2])
    return Fragment("comment", start, end, found.span(), text, line_break)


def _make_literal(found: re.Match[str], ignored: re.Pattern[str]) -> Fragment:
    start, end = found.span("body")
    return Fragment("string", start, end, found.span(), found["body"], "\n", ignored, True)


def _parse_string(source: str, found: re.Match[str], prefix: str) -> Iterator[Fragment]:
    ignored = COMMAND if "r" in prefix else ESCAPE
    if "f" in prefix:
        yield from _parse_f_string(found, ignored)
        return
    string, indentation = _make_literal(found, ignored), _indentation(source, found.start())
    is_first = indentation and BODY.search(source, 0, found.start())
    if is_first and len(found["quote"]) == 3:
        line_break = "\n" + indentation
        text = string.text.replace(line_break, "\n")
        string = replace(string, kind="docstring", text=text, line_break=line_break)
    yield string


def _parse_f_string(found: re.Match[str], ignored: re.Pattern[str]) -> Iterator[Fragment]:
    """Yield an f-string's literal parts, and the strings in its expressions."""
    body, start = found["body"], found.start("body")
    depth = 0
    part_start = 0  # in the body
    for brace in BRACE.finditer(body):
        if depth == 0 and len(brace[0]) == 2:
            continue
        part, offset = body[part_start : brace.start()], start + part_start
        if depth == 0:
            end = offset + len(part)
            yield Fragment("string", offset, end, (offset, end), part, "\n", ignored)
            part_start = brace.end() if brace[0] == "{" else part_start
        depth += brace[0].count("{") - brace[0].count("}")
        if depth == 0:
            yield from (_shift(each, offset) for each in _parse_python(_strip_format(part)))
            part_start = brace.end()
    span = start + part_start, start + len(body)
    yield Fragment("string", *span, span, body[part_start:], "\n", ignored)


def _shift(found: Fragment, offset: int) -> Fragment:
    span = found.span[0] + offset, found.span[1] + offset
    return replace(found, start=found.start + offset, end=found.end + offset, span=span)


def _strip_format(code: str) -> str:
    """Remove the format specifier: what follows a colon outside of brackets and strings."""
    depth = 0
    for found in re.finditer(r"'[^']*'|\"[^\"]*\"|[][(){}:]", code):
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if found[0] == ":" and depth == 0:
            return code[: found.start()]
    return code


def _indentation(source: str, position: int) -> str:
    """Return the indentation of the line at this position."""
    line = source[source.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]
