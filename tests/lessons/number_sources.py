"""Find the sources of the numbers in a lesson's text, by one rule for every lesson.

A section reaches from one heading to the next. Each of its numbers has one of these sources:

* one of its code cells prints the number, or has it as a constant, in every framework of the lesson
* it is part of a correct equation, or equal to a number in one
* LESSON/numbers.toml lists it, with the words around it

Consecutive numbers, as in (2, 1), must be consecutive in the source as well.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from pygments.lexers import get_lexer_by_name
from pygments.token import Number

from tests.lessons.arithmetic import evaluate, is_right, rounds_to
from tests.lessons.prose import NUMBER, hide, make_pattern, parse_pieces
from tools.weave.lessons import Notebook, find_frameworks
from tools.weave.prose import Passage, find_original, read_passages

YEAR = r"(?:19|20)\d\d"
CITATION = re.compile(rf"(\w+)(?: et al\.,? \(?|(?: and \w+)? \()({YEAR})\)?")
REFERENCE = re.compile(rf"^\* (\w+), \w\.[^*]*?\(({YEAR})\)", re.MULTILINE)
SOLUTION = re.compile(r"^### (\d+)\. ", re.MULTILINE)

PRINTED_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[-+]\d+)?")
MORE_NUMBERS = r"(?:(?:, | and | or | )\d+(?:\.\d+)?(?![A-Za-z\d]))*"
ROW = re.compile(rf"(?:{NUMBER.pattern}){MORE_NUMBERS}(?: ?\\?%)?")

Rows = list[list[float]]
Cell = tuple[Rows, Rows]  # printed numbers, and constants in the code


@dataclass(frozen=True)
class Exceptions:
    """The tables of LESSON/numbers.toml, whose comments explain them."""

    given: list[str] = field(default_factory=list)
    worked: dict[str, list[str]] = field(default_factory=dict)
    cells: dict[str, list[str]] = field(default_factory=dict)
    exercises: dict[str, str] = field(default_factory=dict)
    in_other_words: list[str] = field(default_factory=list)


def load_exceptions(lesson: Path) -> Exceptions:
    return Exceptions(**tomllib.loads((lesson / "numbers.toml").read_text(encoding="utf-8")))


def read_cells(notebook: Notebook) -> dict[str, Cell]:
    """Return what each code cell of the stored notebook prints, and the constants in its code."""
    lexer = get_lexer_by_name("java" if notebook.code.suffix == ".java" else "python")
    cells = {}
    for cell in nbformat.read(notebook.path, as_version=4).cells:
        if cell.cell_type == "code":
            constants: Rows = [[]]
            for kind, word in lexer.get_tokens(cell.source):
                number = word.replace("_", "").rstrip("fFLdD.")
                if kind in Number and PRINTED_NUMBER.fullmatch(number):
                    constants[-1].append(float(number))
                elif word.strip(" \n,-()[]{}"):  # a word ends a row
                    constants.append([])
            cells[cell.id] = (parse_printed_rows(cell.outputs), constants)
    return cells


def parse_printed_rows(outputs: list[nbformat.NotebookNode]) -> Rows:
    """Return the numbers of each line, and of each column of a table; not those of figures."""
    lines = []
    for output in outputs:
        if output.output_type == "stream":
            lines += output.text.splitlines()
        elif "image/png" not in output.data:
            lines += output.data.get("text/plain", "").splitlines()
    rows: Rows = []
    table: Rows = []
    for line in [*lines, ""]:
        row = [float(number.replace(",", "")) for number in PRINTED_NUMBER.findall(line)]
        if table and len(row) != len(table[0]):
            rows += [*table, *map(list, zip(*table, strict=True))]
            table = []
        if row:
            table.append(row)
    return rows


def read_sections(text: Path) -> dict[str, list[Passage]]:
    """Return the passages under each heading; a slide belongs to the next heading, an exercise to its solution."""
    sections: dict[str, list[Passage]] = {"": []}
    solutions = {}
    exercises = []
    slides = []
    title = ""
    for passage in read_passages(text):
        is_slide = passage.block is not None and passage.block.kind == "slide"
        if passage.heading and not is_slide:
            title = passage.prose.partition("\n")[0].strip("# ")
            sections.setdefault(title, [])
            if solution := SOLUTION.match(passage.prose):
                solutions[solution[1]] = sections[title]
        before, *items = re.split(r"^(?=\d+\. )", passage.prose, flags=re.MULTILINE)
        line = passage.line + before.count("\n")
        for item in items:
            number = item.partition(".")[0]
            exercises.append((number, title, Passage(line, item, block=passage.block)))
            line += item.count("\n")
        rest = Passage(passage.line, before, passage.cell, block=passage.block)
        if is_slide:
            slides.append(rest)
            continue
        if passage.cell or passage.prose.strip():
            sections[title] += slides
            slides = []
        sections[title].append(rest)
    for number, title, exercise in exercises:
        solutions.get(number, sections[title]).append(exercise)
    return sections


@dataclass(frozen=True)
class Span:
    """A part of a section's text; ``source`` is empty while it is unknown."""

    line: int
    text: str
    frameworks: list[str]
    source: str = ""


def split_numbers(text: str) -> list[str]:
    return [number.replace(",", "") for number in NUMBER.findall(text)]


def find_numbers(lesson: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line of each number in the lesson's original text, the number and its source.

    The source is "printed", "written" in the code, part of an "equation", "worked" out or "given". If there is an
    error, it is "missing" or "false".
    """
    text = find_original(lesson)
    language = text.name.split(".")[1]
    exceptions = load_exceptions(lesson)
    frameworks = find_frameworks(lesson)
    notebooks = {name: read_cells(Notebook(lesson, language, name)) for name in frameworks}
    for title, passages in read_sections(text).items():
        names = [passage.cell for passage in passages] + exceptions.cells.get(title, [])
        cells = {
            framework: [notebook[name] for name in names if name in notebook]
            for framework, notebook in notebooks.items()
        }
        spans = [*read_spans(text, passages, exceptions, frameworks)]
        worked: Rows = []
        for span in spans:
            row = [*map(float, split_numbers(span.text))]
            if span.source == "worked":
                worked.append(row)
            elif span.source == "equation":
                worked += [[number] for number in row]
        for span in spans:
            all_cells = [cells[framework] for framework in span.frameworks]
            for row in ROW.finditer(span.text):
                source = span.source or find_source(row[0], all_cells, worked)
                for number in split_numbers(row[0]):
                    yield span.line, number, source


def read_spans(
    text: Path, passages: list[Passage], exceptions: Exceptions, frameworks: list[str]
) -> Iterator[Span]:
    """Yield the spans that numbers.toml lists, and then the rest of the text, with each formula separate."""
    # Other tests check citations, and the numbers of exercises and solutions.
    content = text.read_text(encoding="utf-8")
    hidden = [match[0] for match in [*CITATION.finditer(content), *SOLUTION.finditer(content)]]
    hidden += [f"({year})" for _, year in REFERENCE.findall(content)]
    for passage in passages:
        allowed = passage.block.frameworks if passage.block else ()
        passage_frameworks = [name for name in frameworks if name in allowed or not allowed]
        if not passage_frameworks:
            continue
        prose = hide(passage.prose, [*hidden, *exceptions.exercises])
        for words in [*exceptions.given, *exceptions.worked]:
            for match in make_pattern(words).finditer(prose):
                line = passage.line + prose.count("\n", 0, match.start())
                plain = " ".join(piece.text for piece in parse_pieces(words))
                source = classify(plain, exceptions.worked.get(words))
                yield Span(line, plain, passage_frameworks, source)
            prose = hide(prose, [words])
        for piece in parse_pieces(prose, passage.line):
            for i, part in enumerate(piece.text.split("$")):
                is_true = is_right(part) if i % 2 else None  # every second part is a formula
                source = {True: "equation", False: "false", None: ""}[is_true]
                yield Span(piece.line, part, passage_frameworks, source)


def classify(words: str, formulas: list[str] | None) -> str:
    """Return the source of the numbers in these words, given a formula for each, if any."""
    if formulas is None:
        return "given"
    numbers = split_numbers(words)
    if len(formulas) != len(numbers):
        return "false"
    return "worked" if all(map(rounds_to, map(evaluate, formulas), numbers)) else "false"


def find_source(words: str, all_cells: list[list[Cell]], worked: Rows) -> str:
    """Return the source of these consecutive numbers; ``all_cells`` has the section's cells in each framework."""
    if has_row(worked, words):
        return "worked"
    factor = 100 if words.endswith("%") else 1
    sources = set()
    for cells in all_cells:
        printed = [row for rows, _ in cells for row in rows]
        written = [row for _, rows in cells for row in rows]
        shares = [[factor * share for share in row] for row in printed]
        if has_row(printed + shares, words, are_rounded=True):
            sources.add("printed")
        elif has_row(written, words):
            sources.add("written")
        else:
            return "missing"
    return max(sources)  # "written" sorts last: it wins if any framework needs it


def has_row(rows: Rows, words: str, are_rounded: bool = False) -> bool:
    numbers = split_numbers(words)
    agree = rounds_to if are_rounded else lambda value, number: value == float(number)
    length = len(numbers)
    windows = [row[i : i + length] for row in rows for i in range(len(row) - length + 1)]
    return any(all(map(agree, window, numbers)) for window in windows)
