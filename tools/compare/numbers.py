"""Compare two texts: the words must be equal, and the numbers must agree within a tolerance."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# The last digit may differ only if one unit of it is a small part of the number, as in 0.75 but not in 0.1.
SMALL_PART = 0.02
# The number of zeros in a heat map, in the figure's description.
ZEROS = re.compile(r"\d+(?= of \d+ zero)|(?<=零有 )\d+")


@dataclass(frozen=True)
class Tolerance:
    """How much two executions may differ. Numbers agree if they are within any of the first three."""

    absolute: float = 1e-6  # for residuals, which are zero up to rounding
    relative: float = 1e-5  # float32 precision, with room for sums in another order
    # Units in the last printed place, if one unit is a small part of the number.
    last_digits: float = 1
    points: float = 0.05  # 1/72 inch each, for the strokes of a figure
    levels: float = 4  # of 255, for a heat map's colours: one step of the colour map
    zeros: float = 0  # for the number of zeros in a heat map


DEFAULT = Tolerance()
TAG = "tolerance:"


def read_tolerance(tags: Iterable[str]) -> Tolerance:
    """Return the tolerance of a cell with these tags, such as ``tolerance:relative=1e-3``.

    Raises ValueError for a tag that begins with ``tolerance:`` and is invalid.
    """
    tolerance = DEFAULT
    names = [field.name for field in fields(Tolerance)]
    for tag in tags:
        if tag.startswith(TAG):
            name, _, value = tag.removeprefix(TAG).partition("=")
            try:
                number = float(value)
            except ValueError:
                number = -1
            if name not in names or not 0 <= number < float("inf"):
                needed = f"need {TAG}NAME=NUMBER with a name of {', '.join(names)}"
                raise ValueError(f"the tag {tag!r}: {needed} and a number that is at least 0")
            tolerance = replace(tolerance, **{name: number})
    return tolerance


def compare_texts(stored: str, fresh: str, tolerance: Tolerance) -> str | None:
    """Return the first line that differs, or None."""
    fresh = _replace_zero_counts(stored, fresh, tolerance.zeros)
    if _texts_agree(stored, fresh, tolerance):
        return None
    old_lines, new_lines = stored.splitlines(), fresh.splitlines()
    for old, new in zip(old_lines, new_lines, strict=False):
        if not _texts_agree(old, new, tolerance):
            return f"{new[:200]!r} instead of {old[:200]!r}"
    return f"{len(new_lines)} lines instead of {len(old_lines)}"


def _replace_zero_counts(stored: str, fresh: str, max_distance: float) -> str:
    """Replace the counts of zeros by the stored ones if they differ by at most ``max_distance``.

    Below the smallest normal number, 1e-38 in float32, some processors compute zero.
    """
    counts = iter(ZEROS.findall(stored))

    def choose_count(match: re.Match[str]) -> str:
        old = next(counts, match[0])
        return old if abs(int(old) - int(match[0])) <= max_distance else match[0]

    return ZEROS.sub(choose_count, fresh)


def _texts_agree(old: str, new: str, tolerance: Tolerance) -> bool:
    if old == new:
        return True
    old_words, new_words = NUMBER.split(old), NUMBER.split(new)
    pairs = list(zip(NUMBER.findall(old), NUMBER.findall(new), strict=False))
    # Spaces align columns, so a sign or another digit changes how many there are.
    if any(len(old_number) != len(new_number) for old_number, new_number in pairs):
        old_words, new_words = map(_collapse_spaces, (old_words, new_words))
    if old_words != new_words:
        return False
    return all(_numbers_agree(*pair, tolerance) for pair in pairs)


def _collapse_spaces(words: list[str]) -> list[str]:
    return [re.sub(" +", " ", part).strip(" ") for part in words]


def _numbers_agree(old: str, new: str, tolerance: Tolerance) -> bool:
    if old == new:
        return True
    a, b = float(old), float(new)
    are_integers = not any(mark in number for number in (old, new) for mark in ".eE")
    if a == b:  # two spellings of one number, which may differ only in the sign of 0.0
        return a == 0 and not are_integers and old.lstrip("+-") == new.lstrip("+-")
    if are_integers:
        return False  # integers are exact
    size = max(abs(a), abs(b))
    allowed = max(tolerance.absolute, tolerance.relative * size)
    last_digit = max(_value_of_last_digit(old), _value_of_last_digit(new))
    if _count_decimals(old) == _count_decimals(new) and last_digit <= SMALL_PART * size:
        allowed = max(allowed, tolerance.last_digits * last_digit)
    return abs(a - b) <= allowed * (1 + 1e-9)


def _value_of_last_digit(number: str) -> float:
    """Return the value of one unit in the last decimal place, infinite if there are no decimals."""
    exponent = number.lower().partition("e")[2]
    decimals = _count_decimals(number)
    return 10.0 ** (int(exponent or 0) - decimals) if decimals else float("inf")


def _count_decimals(number: str) -> int:
    return len(number.lower().partition("e")[0].partition(".")[2])
