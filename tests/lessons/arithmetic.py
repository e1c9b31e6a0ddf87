r"""Evaluate the LaTeX arithmetic of a lesson's text: is ``e^1 + e^0 = 2.7 + 1 = 3.7`` right?"""

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
    {letter: start + 0.017 * place for place, letter in enumerate(string.ascii_letters)}
    for start in (0.31, 1.23)
]


class Parser:
    """A recursive descent parser, which evaluates as it reads. Raises ValueError for other LaTeX."""

    def __init__(self, formula: str, letters: Mapping[str, float]) -> None:
        self._tokens = [*TOKEN.findall(SPACING.sub("", formula)), ""]
        self._values = {**letters, **CONSTANTS}

    def sum(self, end: str) -> float:
        found = self._product()
        while self._tokens[0] in ("+", "-"):
            sign = 1 if self._tokens.pop(0) == "+" else -1
            found += sign * self._product()
        if self._tokens.pop(0) != end:
            raise ValueError
        return found

    def _product(self) -> float:
        found = -1.0 if self._take("-") else 1.0
        found *= self._power()
        while self._tokens[0] not in ("", "+", "-", *BRACKETS.values()):
            if self._take("/"):
                found /= self._power()
            else:
                _ = self._take(r"\cdot") or self._take(r"\times")
                found *= self._power()
        return found

    def _power(self) -> float:
        base = self._atom()
        return base ** self._atom() if self._take("^") else base

    def _atom(self) -> float:
        token = self._tokens.pop(0)
        if token in BRACKETS:
            found = self.sum(BRACKETS[token])
        elif token == r"\frac":
            found = self._atom() / self._atom()
        elif token in FUNCTIONS:
            found = FUNCTIONS[token](self._atom())
        elif token in self._values:
            found = self._values[token]
        else:
            found = float(token)
        return math.radians(found) if self._take("°") else found

    def _take(self, token: str) -> bool:
        return self._tokens[0] == token and bool(self._tokens.pop(0))


def evaluate(formula: str, letters: Mapping[str, float] | None = None) -> float:
    """Return the value; not a number if this is not arithmetic, or has other letters than these."""
    try:
        return Parser(formula, letters or {}).sum(end="")
    except (ArithmeticError, IndexError, ValueError):
        return math.nan


def rounds_to(value: float, number: str) -> bool:
    """Whether the value, rounded as the number is, gives that number.

    0.7 does not count as a 1: without decimals, rounding may change at most a twentieth.
    """
    wanted, decimals = float(number), len(number.partition(".")[2])
    allowed = 0.5 * 10**-decimals if decimals else min(0.5, 0.05 * wanted)
    return abs(value - wanted) <= allowed + 1e-9


def is_right(formula: str) -> bool | None:
    """Whether a chain of equations holds; None where that cannot be computed.

    An equation with letters is right if it holds whatever the letters stand for, and else unknown.
    """
    parts = RELATION.split(formula)
    relations = parts[1::2]
    found = [*map(compare, parts[::2], relations, parts[2::2])]
    if False in found:
        return False
    known = [each for each, relation in zip(found, relations, strict=True) if relation not in "<>"]
    return True if known and None not in known else None


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
