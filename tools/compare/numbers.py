"""When two texts agree: the same words, and numbers within a tolerance."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# The last digit counts only where it is a small part of the number: 1 of 0.1 is not.
SMALL_PART = 0.02
# How many cells of a heat map are zero, in its words.
ZEROS = re.compile(r"\d+(?= of \d+ zero)|(?<=零有 )\d+")


@dataclass(frozen=True)
class Tolerance:
    """How far two executions may lie apart. Numbers agree within any of the first three."""

    absolute: float = 1e-6  # residuals that only say "zero, up to rounding"
    relative: float = 1e-5  # of float32, with room for sums in another order
    last_digits: float = 1  # units in the last printed place, where one is a small part
    points: float = 0.05  # 1/72 inch each: how far a stroke of a figure may lie from where it lay
    levels: float = 4  # of 255: a heat map's colour, one step along the colour map
    zeros: float = 0  # how many cells more or fewer of a heat map are said to be zero


DEFAULT = Tolerance()
TAG = "tolerance:"


def tolerance(tags: Iterable[str]) -> Tolerance:
    """That of a cell with these tags, such as ``tolerance:relative=1e-3``.

    Raises ValueError for a tag that begins so and says something else.
    """
    chosen = DEFAULT
    names = [field.name for field in fields(Tolerance)]
    for tag in tags:
        if tag.startswith(TAG):
            name, _, value = tag.removeprefix(TAG).partition("=")
            try:
                number = float(value)
            except ValueError:
                number = -1
            if name not in names or not 0 <= number < float("inf"):
                needed = f"need {TAG}NAME=NUMBER, of {', '.join(names)}, and a number from 0 on"
                raise ValueError(f"the tag {tag!r}: {needed}")
            chosen = replace(chosen, **{name: number})
    return chosen


def text_difference(
    stored: str, fresh: str, tolerance: Tolerance, within: float | None = None
) -> str | None:
    """The first line that differs, or None; ``within`` takes the place of the tolerance."""
    fresh = _with_zeros_of(stored, fresh, tolerance.zeros)
    if _texts_agree(stored, fresh, tolerance, within):
        return None
    old_lines, new_lines = stored.splitlines(), fresh.splitlines()
    for old, new in zip(old_lines, new_lines, strict=False):
        if not _texts_agree(old, new, tolerance, within):
            return f"{new[:200]!r} instead of {old[:200]!r}"
    return f"{len(new_lines)} lines instead of {len(old_lines)}"


def _with_zeros_of(stored: str, fresh: str, within: float) -> str:
    """The fresh words, where a count of zeros that lies so near the stored one is that one.

    Below the smallest normal number, 1e-38 in float32, some processors have nothing but zero.
    """
    counts = iter(ZEROS.findall(stored))

    def counted(match: re.Match[str]) -> str:
        old = next(counts, match[0])
        return old if abs(int(old) - int(match[0])) <= within else match[0]

    return ZEROS.sub(counted, fresh)


def _texts_agree(old: str, new: str, tolerance: Tolerance, within: float | None) -> bool:
    if old == new:
        return True
    old_words, new_words = NUMBER.split(old), NUMBER.split(new)
    pairs = list(zip(NUMBER.findall(old), NUMBER.findall(new), strict=False))
    # Blanks make columns. A number that is wider, by a sign or a digit, moves them.
    if any(len(was) != len(now) for was, now in pairs):
        old_words, new_words = map(_without_columns, (old_words, new_words))
    return old_words == new_words and all(_agree(*pair, tolerance, within) for pair in pairs)


def _without_columns(words: list[str]) -> list[str]:
    return [re.sub(" +", " ", part).strip(" ") for part in words]


def _agree(old: str, new: str, tolerance: Tolerance, within: float | None) -> bool:
    if old == new:
        return True
    a, b = float(old), float(new)
    are_integers = not any(mark in number for number in (old, new) for mark in ".eE")
    if a == b:  # the same number, written otherwise: nothing but the sign of a 0.0 is forgiven
        return a == 0 and not are_integers and old.lstrip("+-") == new.lstrip("+-")
    if within is not None:
        return abs(a - b) <= within
    if are_integers:
        return False  # they are exact
    size = max(abs(a), abs(b))
    allowed = max(tolerance.absolute, tolerance.relative * size)
    last_digit = max(_last_digit(old), _last_digit(new))
    if _decimals(old) == _decimals(new) and last_digit <= SMALL_PART * size:
        allowed = max(allowed, tolerance.last_digits * last_digit)
    return abs(a - b) <= allowed * (1 + 1e-9)


def _last_digit(number: str) -> float:
    """The worth of one unit in the last decimal place; infinite where none is printed."""
    exponent = number.lower().partition("e")[2]
    decimals = _decimals(number)
    return 10.0 ** (int(exponent or 0) - decimals) if decimals else float("inf")


def _decimals(number: str) -> int:
    return len(number.lower().partition("e")[0].partition(".")[2])
