"""Find the comments, docstrings and strings of a program in Python or Java.

In an f-string, the literal parts and the strings in its expressions are found. Regular expressions find them, so that
the result does not depend on the version of Python.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from d2l_compat._shared.description import CHINESE

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
BLOCK_COMMENT = re.compile(r"(/\*+(?:\s*\n[ \t]*\*)?\s?)([\s\S]*?)(\s*\*/)")
TRAILING_SPACES = re.compile(r"[ \t]+(?=\n)")
BLOCK_COMMENT_LINE = re.compile(r"\n[ \t]*\*? ?")
# Parts of a string that are not words: escapes, LaTeX commands (in a raw string), Java's format specifiers.
ESCAPE = re.compile(r"\\[\s\S]")
COMMAND = re.compile(r"\\(?:[A-Za-z]+|[\s\S])")
FORMAT = re.compile(r"\\[\s\S]|%(?:\d+\$)?[-#+0,(]*\d*(?:\.\d+)?[A-Za-z%]")
NOTHING = re.compile(r"(?!)")  # matches nowhere
# The beginning of a program or of an indented body, after which a docstring may follow.
BODY = re.compile(r"(?:\A|:[ \t]*(?:#.*)?\n)(?:[ \t]*(?:#.*)?\n)*(?P<indentation>[ \t]*)\Z")
BRACE = re.compile(r"\{\{|\}\}|[{}]")


@dataclass(frozen=True)
class Fragment:
    """The text of a comment, a docstring or a string."""

    kind: str  # comment, docstring or string
    start: int
    end: int
    span: tuple[int, int]  # with the comment's marks or the quotes
    text: str  # without marks and indentation
    line_break: str = "\n"  # between two lines in the program
    ignored: re.Pattern[str] = NOTHING  # matches parts of the text that are not words
    is_literal: bool = False  # whether it is a whole string, not a part of an f-string

    def format(self, text: str) -> str:
        """Return another text, such as a translation, in the form that it needs in the program."""
        text = text.replace("\n", self.line_break)
        return text if self.kind == "string" else TRAILING_SPACES.sub("", text)


def strip_comments(source: str, suffix: str) -> str:
    """Return a program without its comments, docstrings and empty lines."""
    for fragment in reversed(list(find_fragments(source, suffix))):
        if fragment.kind != "string":
            start, end = fragment.span
            source = source[:start] + source[end:]
    return "\n".join(line.rstrip() for line in source.splitlines() if line.strip())


def strip_strings(source: str, suffix: str) -> str:
    """Return a program without comments and with empty strings, so that it is the same in every language."""
    program = strip_comments(source, suffix)
    for fragment in reversed(list(find_fragments(program, suffix))):
        program = program[: fragment.start] + program[fragment.end :]
    return program


def find_chinese(source: str, suffix: str) -> set[str]:
    """Return the Chinese characters in a program's strings, which its figures may show."""
    fragments = find_fragments(source, suffix)
    strings = [fragment.text for fragment in fragments if fragment.kind == "string"]
    return {*CHINESE.findall("".join(strings))}


def find_fragments(source: str, suffix: str) -> Iterator[Fragment]:
    """Yield a program's fragments in order; the file's suffix determines the programming language."""
    return PARSERS[suffix](source)


def _parse_python(source: str) -> Iterator[Fragment]:
    for match in PYTHON.finditer(source):
        prefix = (match["prefix"] or "").lower()
        if match["quote"] is None:
            yield _parse_comment(source, match)
        elif "b" not in prefix:
            yield from _parse_string(source, match, prefix)


def _parse_java(source: str) -> Iterator[Fragment]:
    for match in JAVA.finditer(source):
        if match["block"] is not None:
            yield _parse_block_comment(source, match)
        elif match["quote"] is None:
            yield _parse_comment(source, match)
        elif match["quote"] != "'":  # not a character
            yield _make_literal(match, FORMAT)


PARSERS: dict[str, Callable[[str], Iterator[Fragment]]] = {
    ".py": _parse_python,
    ".java": _parse_java,
}


def _parse_comment(source: str, match: re.Match[str]) -> Fragment:
    """Return one fragment for a comment on one line or several successive lines."""
    group = "lines" if match["comment"] is None else "comment"
    text = match[group]
    start, end = match.span(group)
    mark = COMMENT_MARK.match(text)
    assert mark is not None
    line_break = f"\n{_find_indentation(source, start)}{mark[0].rstrip()} "
    words = COMMENT_MARK.sub("", text)
    return Fragment("comment", start + len(mark[0]), end, (start, end), words, line_break)


def _parse_block_comment(source: str, match: re.Match[str]) -> Fragment:
    parts = BLOCK_COMMENT.fullmatch(match[0])
    assert parts is not None
    start, end = match.start() + len(parts[1]), match.end() - len(parts[3])
    line_break = f"\n{_find_indentation(source, match.start())} * "
    text = BLOCK_COMMENT_LINE.sub("\n", parts[2])
    return Fragment("comment", start, end, match.span(), text, line_break)


def _make_literal(match: re.Match[str], ignored: re.Pattern[str]) -> Fragment:
    start, end = match.span("body")
    return Fragment(
        "string", start, end, match.span(), match["body"], ignored=ignored, is_literal=True
    )


def _parse_string(source: str, match: re.Match[str], prefix: str) -> Iterator[Fragment]:
    ignored = COMMAND if "r" in prefix else ESCAPE
    if "f" in prefix:
        yield from _parse_f_string(match, ignored)
        return
    string = _make_literal(match, ignored)
    has_triple_quotes = len(match["quote"]) == 3
    if has_triple_quotes and (body_start := BODY.search(source, 0, match.start())):
        line_break = "\n" + body_start["indentation"]
        text = string.text.replace(line_break, "\n")
        string = replace(string, kind="docstring", text=text, line_break=line_break)
    yield string


def _parse_f_string(match: re.Match[str], ignored: re.Pattern[str]) -> Iterator[Fragment]:
    """Yield an f-string's literal parts, and the strings in its expressions."""
    body, start = match["body"], match.start("body")
    depth = 0
    part_start = 0  # in the body
    for brace in BRACE.finditer(body):
        if depth == 0 and len(brace[0]) == 2:  # an escaped brace
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


def _shift(fragment: Fragment, offset: int) -> Fragment:
    start, end = fragment.start + offset, fragment.end + offset
    span = fragment.span[0] + offset, fragment.span[1] + offset
    return replace(fragment, start=start, end=end, span=span)


def _strip_format(code: str) -> str:
    """Remove the format specifier, which begins with a colon outside of brackets and strings."""
    depth = 0
    for token in re.finditer(r"'[^']*'|\"[^\"]*\"|[][(){}:]", code):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if token[0] == ":" and depth == 0:
            return code[: token.start()]
    return code


def _find_indentation(source: str, position: int) -> str:
    """Return the indentation of the line at this position."""
    line = source[source.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]
