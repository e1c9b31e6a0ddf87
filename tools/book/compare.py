"""Compare what the cells of a page print and draw on this package and on upstream's d2l."""

import math
import re
from itertools import zip_longest

from nbformat import NotebookNode

from tools.book.record import FIGURE

RELATIVE_TOLERANCE = 1e-3
ABSOLUTE_TOLERANCE = 2e-5
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
TOKEN = re.compile(rf"{NUMBER.pattern}|\w+|\S", re.IGNORECASE)
# What differs in any two runs (addresses, times and speeds), the names of the packages, and reports of downloads.
NOISE = re.compile(
    r"0x[0-9a-f]+|\d[\d.,e+-]*\s*(?:(?:[\w ]+/)?(?:sec\w*|秒)|[mµn]?s\b)|\b(?:d2l_compat|d2l_0_17)\b|"
    r"Downloading \S+ from \S+"
)
BEFORE, AFTER = 15, 30  # characters of a difference that are quoted


def read_outputs(cell: NotebookNode) -> list[str]:
    """Return what a cell printed, and the text of each result and figure that it shows."""
    printed = "".join(each.text for each in cell.outputs if each.get("name") == "stdout")
    bundles = [each.data for each in cell.outputs if "data" in each]
    shown = [data.get(FIGURE, data.get("text/plain", "")) for data in bundles]
    return [text for text in (printed, *shown) if text.strip()]


def find_difference(ours: list[str], theirs: list[str]) -> str:
    """Return the first difference between two cells' outputs, quoted from both; "" if they are equal.

    Numbers may differ within a tolerance. White space, times, speeds and addresses are not compared.
    """
    texts = [NOISE.sub("", "\n".join(outputs)) for outputs in (ours, theirs)]
    for tokens in zip_longest(*(TOKEN.finditer(text) for text in texts)):
        if not _is_same(*(token and token[0] for token in tokens)):
            return " / ".join(_quote(*pair) for pair in zip(texts, tokens, strict=True))
    return ""


def _is_same(ours: str | None, theirs: str | None) -> bool:
    if ours and theirs and NUMBER.fullmatch(ours) and NUMBER.fullmatch(theirs):
        return math.isclose(
            float(ours), float(theirs), rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE
        )
    return ours == theirs


def _quote(text: str, token: re.Match[str] | None) -> str:
    position = token.start() if token else len(text)
    return " ".join(text[max(0, position - BEFORE) : position + AFTER].split())
