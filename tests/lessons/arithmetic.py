r"""Evaluate the LaTeX arithmetic of a lesson's text, such as ``e^1 + e^0 = 2.7 + 1 = 3.7``."""

import math
import re
import string
from collections.abc import Mapping

TOKEN = re.compile(r"\d+(?:\.\d+)?|\\[a-z]+|[^\s\\]")
SPACING = re.compile(r"\\(?:left|right|[,;!])")
RELATION = re.compile(r"(=|\\approx|<|>)")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
CONSTANTS = {"e": math.e, r"\pi": math.pi, r"\infty": math.inf}
FUNCTIONS = {r"\exp": math.exp, r"\ln": math.log, r"\sqrt": math.sqrt}
FUNCTIONS |= {r"\sin": math.sin, r"\cos": math.cos, r"\tan": math.tan}
BRACKETS = {"(": ")", "{": "}"}
# Values for the letters of an equation, which is an identity if it holds with both sets.
SAMPLES = [
    {letter: start + 0.017 * index for index, letter in enumerate(string.ascii_letters)}
    for start in (0.31, 1.23)
]


class Parser:
    """A recursive descent parser that evaluates what it parses. Raises ValueError for other LaTeX."""

    def __init__(self, formula: str, letters: Mapping[str, float]) -> None:
        self._tokens = [*TOKEN.findall(SPACING.sub("", formula)), ""]
        self._values = {**letters, **CONSTANTS}

    def parse_sum(self, end: str) -> float:
        value = self._parse_product()
        while self._tokens[0] in ("+", "-"):
            sign = 1 if self._tokens.pop(0) == "+" else -1
            value += sign * self._parse_product()
        if self._tokens.pop(0) != end:
            raise ValueError
        return value

    def _parse_product(self) -> float:
        value = -1.0 if self._skip("-") else 1.0
        value *= self._parse_power()
        while self._tokens[0] not in ("", "+", "-", *BRACKETS.values()):
            if self._skip("/"):
                value /= self._parse_power()
            else:
                _ = self._skip(r"\cdot") or self._skip(r"\times")
                value *= self._parse_power()
        return value

    def _parse_power(self) -> float:
        base = self._parse_atom()
        return base ** self._parse_atom() if self._skip("^") else base

    def _parse_atom(self) -> float:
        token = self._tokens.pop(0)
        if token in BRACKETS:
            value = self.parse_sum(BRACKETS[token])
        elif token == r"\frac":
            value = self._parse_atom() / self._parse_atom()
        elif token in FUNCTIONS:
            value = FUNCTIONS[token](self._parse_atom())
        elif token in self._values:
            value = self._values[token]
        else:
            value = float(token)
        return math.radians(value) if self._skip("°") else value

    def _skip(self, token: str) -> bool:
        """Return whether this is the next token, and if so, remove it."""
        is_next = self._tokens[0] == token
        if is_next:
            self._tokens.pop(0)
        return is_next


def evaluate(formula: str, letters: Mapping[str, float] | None = None) -> float:
    """Return a formula's value, or NaN if it is not arithmetic, or has letters without a value."""
    try:
        return Parser(formula, letters or {}).parse_sum(end="")
    except (ArithmeticError, IndexError, ValueError):
        return math.nan


def rounds_to(value: float, number: str) -> bool:
    """Check whether the value rounds to the number.

    A number without decimals may differ by at most a twentieth, so 0.7 does not round to 1.
    """
    rounded = float(number)
    decimals = len(number.partition(".")[2])
    allowed = 0.5 * 10**-decimals if decimals else min(0.5, 0.05 * rounded)
    return abs(value - rounded) <= allowed + 1e-9


def is_right(formula: str) -> bool | None:
    """Check whether a chain of equations holds; return None if that cannot be computed.

    An equation with letters is right if it holds for all values of the letters, and otherwise unknown.
    """
    parts = RELATION.split(formula)
    relations = parts[1::2]
    results = [*map(compare, parts[::2], relations, parts[2::2])]
    if False in results:
        return False
    equations = [x for x, relation in zip(results, relations, strict=True) if relation not in "<>"]
    return True if equations and None not in equations else None


def compare(left: str, relation: str, right: str) -> bool | None:
    a, b = evaluate(left), evaluate(right)
    if math.isnan(a + b):
        pairs = [(evaluate(left, letters), evaluate(right, letters)) for letters in SAMPLES]
        is_identity = relation == "=" and all(math.isclose(*pair, rel_tol=1e-4) for pair in pairs)
        return True if is_identity else None
    if relation in "<>":
        return (a < b) == (relation == "<")
    if NUMBER.fullmatch(right.strip()):
        return rounds_to(a, right.strip())
    decimals = max(len(number.partition(".")[2]) for number in NUMBER.findall(left + right))
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=0.5 * 10**-decimals if decimals else 1e-9)
