"""Advertisements that were clicked or not, and what was known of each: fields, whose values become numbers."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance, fault
from d2l_compat._shared.data.files import told

Numbers = dict[int, dict[str, int]]  # of each field, counted from 1, the number of each value
Row = tuple[str, ...]


def read(data_path: str | Path, num_feat: int) -> tuple[NDArray[np.float32], list[Row]]:
    """Labels, and the values of ``num_feat`` fields: of a file with a label and values a line, between tabs.

    Lines with more or fewer values are left out.
    """
    check_instance("data_path", data_path, (str, Path), "a file's name")
    with told("data_path", Path(data_path), "a file that can be read"):
        lines = Path(data_path).read_text(encoding="utf-8").split("\n")
    rows = [row for line in lines if len(row := line.split("\t")) == num_feat + 1]
    need = f"lines of a label, 0 or 1, and {num_feat} values"
    if not rows:
        raise ValueError(fault("data_path", "no such line", need))
    if strange := {row[0] for row in rows} - {"0", "1"}:
        raise ValueError(fault("data_path", f"a label {min(strange)!r}", need))
    labels = np.array([row[0] for row in rows], "float32")
    return labels, [tuple(row[1:]) for row in rows]


def number(rows: list[Row], min_threshold: int) -> tuple[Numbers, dict[int, int]]:
    """Of each field the numbers of the values that are there so often, from 0 on; and one for all others."""
    counts = [Counter(values) for values in zip(*rows, strict=True)]
    often = [[value for value in count if count[value] >= min_threshold] for count in counts]
    numbers = {
        field: {value: i for i, value in enumerate(values)} for field, values in enumerate(often, 1)
    }
    return numbers, {field: len(values) for field, values in numbers.items()}


def check_numbers(feat_mapper: Any, defaults: Any, num_feat: int) -> None:
    """Both, for each field; or neither."""
    need = f"what another CTRDataset of {num_feat} fields has, or None of both"
    given = feat_mapper, defaults
    if any(not isinstance(each, dict) for each in given):
        got = " and ".join(type(each).__name__ for each in given)
        raise TypeError(fault("feat_mapper and defaults", got, need))
    if any(each.keys() != {*range(1, num_feat + 1)} for each in given):
        got = " and ".join(f"{len(each)} fields" for each in given)
        raise ValueError(fault("feat_mapper and defaults", got, need))


def encode(rows: list[Row], numbers: Numbers, defaults: dict[int, int]) -> NDArray[np.int64]:
    """(rows, fields): the numbers of each field follow upon those of the field before."""
    starts = np.cumsum([0, *sizes(numbers)])[:-1]
    columns = [
        [numbers[field].get(value, defaults[field]) for value in values]
        for field, values in enumerate(zip(*rows, strict=True), 1)
    ]
    return np.array(columns).T + starts


def sizes(numbers: Numbers) -> list[int]:
    """How many numbers each field has."""
    return [len(numbers[field]) + 1 for field in sorted(numbers)]
