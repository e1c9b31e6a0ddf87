"""Click-through data: for each advertisement whether it was clicked, and fields whose values are numbered."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance, message
from d2l_compat._shared.data.files import rephrase_os_errors

Numbers = dict[int, dict[str, int]]  # by field, counted from 1: the number for each value
Row = tuple[str, ...]


def read(data_path: str | Path, num_feat: int) -> tuple[NDArray[np.float32], list[Row]]:
    """Read labels and values of ``num_feat`` fields from a file: in each line a label and values, separated by tabs.

    Lines with more or fewer values are skipped.
    """
    check_instance("data_path", data_path, (str, Path), "a file's name")
    with rephrase_os_errors("data_path", Path(data_path), "a file that can be read"):
        lines = Path(data_path).read_text(encoding="utf-8").split("\n")
    rows = [line.split("\t") for line in lines]
    rows = [row for row in rows if len(row) == num_feat + 1]
    need = f"lines of a label, 0 or 1, and {num_feat} values"
    if not rows:
        raise ValueError(message("data_path", "no valid lines", need))
    if invalid := {row[0] for row in rows} - {"0", "1"}:
        raise ValueError(message("data_path", f"a label {min(invalid)!r}", need))
    labels = np.array([row[0] for row in rows], "float32")
    return labels, [tuple(row[1:]) for row in rows]


def number_values(rows: list[Row], min_threshold: int) -> tuple[Numbers, dict[int, int]]:
    """Assign numbers from 0 to each field's values that occur ``min_threshold`` times, and one number to all others."""
    numbers: Numbers = {}
    for field, values in enumerate(zip(*rows, strict=True), 1):
        counts = Counter(values)
        frequent = [value for value in counts if counts[value] >= min_threshold]
        numbers[field] = {value: i for i, value in enumerate(frequent)}
    return numbers, {field: len(values) for field, values in numbers.items()}


def check_numbers(feat_mapper: Any, defaults: Any, num_feat: int) -> None:
    """Check that both arguments are dictionaries with a key for each field."""
    need = f"those of another CTRDataset with {num_feat} fields, or None for both"
    mappings = feat_mapper, defaults
    if any(not isinstance(mapping, dict) for mapping in mappings):
        got = " and ".join(type(mapping).__name__ for mapping in mappings)
        raise TypeError(message("feat_mapper and defaults", got, need))
    if any(mapping.keys() != {*range(1, num_feat + 1)} for mapping in mappings):
        got = " and ".join(f"{len(mapping)} fields" for mapping in mappings)
        raise ValueError(message("feat_mapper and defaults", got, need))


def encode(rows: list[Row], numbers: Numbers, defaults: dict[int, int]) -> NDArray[np.int64]:
    """Return the numbers of all values, (rows, fields); a field's numbers follow those of the previous field."""
    starts = np.cumsum([0, *field_sizes(numbers)])[:-1]
    columns = [
        [numbers[field].get(value, defaults[field]) for value in values]
        for field, values in enumerate(zip(*rows, strict=True), 1)
    ]
    return np.array(columns).T + starts


def field_sizes(numbers: Numbers) -> list[int]:
    """Return how many numbers each field has."""
    return [len(numbers[field]) + 1 for field in sorted(numbers)]
