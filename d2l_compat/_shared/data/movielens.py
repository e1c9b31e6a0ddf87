"""MovieLens 100K (Harper and Konstan, 2015): which of 943 users gave which of 1,682 films how many stars, and when."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import fault, format_value, real, size
from d2l_compat._shared.data.hub import download_extract

COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
Interactions = NDArray[np.float32] | dict[int, list[int]]


def read_data_ml100k() -> tuple[Any, int, int]:
    """The ratings, how many users there are, and how many items.

    The ratings are a table of pandas: user_id and item_id, counted from 1, rating and timestamp. Raises ImportError
    where pandas is not installed, and what :func:`download_extract` does.
    """
    read_csv = _pandas().read_csv
    data = read_csv(Path(download_extract("ml-100k"), "u.data"), sep="\t", names=COLUMNS)
    return data, data.user_id.nunique(), data.item_id.nunique()


def split(
    data: Any,
    num_users: int,
    num_items: int,
    split_mode: str,
    test_ratio: float,
    draw: Callable[[int], NDArray[Any]],
) -> tuple[Any, Any]:
    """Tables for training and for the test; ``draw(n)`` gives as many numbers from 0 to 1."""
    _check(data, num_users, num_items)
    if split_mode == "seq-aware":
        return _newest_apart(data)
    if split_mode != "random":
        raise ValueError(fault("split_mode", format_value(split_mode), "'random' or 'seq-aware'"))
    need = "a share, from 0 to 1"
    if not 0 <= real("test_ratio", test_ratio, need) <= 1:
        raise ValueError(fault("test_ratio", test_ratio, need))
    for_training = draw(len(data)) < 1 - test_ratio
    return data[for_training], data[~for_training]


def _newest_apart(data: Any) -> tuple[Any, Any]:
    """Without the newest rating of each user, by user and time; and these. As D2L's, columns have no names."""
    index = _pandas().MultiIndex.from_frame
    rows = data.set_axis(range(data.shape[1]), axis=1).reset_index(drop=True)
    newest = rows.loc[rows.groupby(0, sort=False)[3].idxmax()]
    others = rows[~index(rows).isin(index(newest))]  # a rating may be there twice
    others = others.sort_values(3, kind="stable").sort_values(0, kind="stable")
    return others.reset_index(drop=True), newest.reset_index(drop=True)


def interactions(
    data: Any, num_users: int, num_items: int, feedback: str
) -> tuple[list[int], list[int], list[int], Interactions]:
    """Users and items, counted from 0, what each gave, and the same as a matrix, or the items of each user."""
    _check(data, num_users, num_items)
    users, items = (data.iloc[:, column].to_numpy().astype(int) - 1 for column in (0, 1))
    if feedback == "implicit":
        known: dict[int, list[int]] = {}
        for user, item in zip(users.tolist(), items.tolist(), strict=True):
            known.setdefault(user, []).append(item)
        return users.tolist(), items.tolist(), [1] * len(users), known
    if feedback != "explicit":
        raise ValueError(fault("feedback", format_value(feedback), "'explicit' or 'implicit'"))
    ratings = data.iloc[:, 2].to_numpy().astype(int)
    matrix = np.zeros((num_items, num_users), "float32")
    matrix[items, users] = ratings
    return users.tolist(), items.tolist(), ratings.tolist(), matrix


def _check(data: Any, num_users: Any, num_items: Any) -> None:
    """Users and items of a table are counted from 1 to as many as there are."""
    if not hasattr(data, "iloc") or data.ndim != 2 or data.shape[1] < len(COLUMNS):
        need = f"a table of pandas with {', '.join(COLUMNS)}"
        raise TypeError(fault("data", format_value(data), need))
    counts = size("num_users", num_users), size("num_items", num_items)
    for column, (what, count) in enumerate(zip(("users", "items"), counts, strict=True)):
        numbers = data.iloc[:, column]
        if len(numbers) and not 1 <= numbers.min() <= numbers.max() <= count:
            got = f"{what} from {numbers.min()} to {numbers.max()}"
            raise ValueError(fault("data", got, f"{what} from 1 to {count}"))


def _pandas() -> ModuleType:
    try:
        import pandas  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        words = "pandas is needed for MovieLens' ratings, and it is not installed. "
        raise ImportError(f"{words}Install it: pip install pandas") from None
    return pandas
