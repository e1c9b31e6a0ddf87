"""MovieLens 100K (Harper and Konstan, 2015): 943 users' ratings of 1,682 films, with their times."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import format_value, message, real, size
from d2l_compat._shared.data.hub import download_extract

COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
Interactions = NDArray[np.float32] | dict[int, list[int]]


def read_data_ml100k() -> tuple[Any, int, int]:
    """Return the ratings, the number of users, and the number of items.

    The ratings are a pandas table of user_id and item_id, counted from 1, rating and timestamp. Raises ImportError if
    pandas is not installed, and what :func:`download_extract` raises.
    """
    read_csv = _import_pandas().read_csv
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
    """Split the ratings into a training table and a test table; ``draw(n)`` draws n numbers from 0 to 1."""
    _check_table(data, num_users, num_items)
    if split_mode == "seq-aware":
        return _split_newest(data)
    if split_mode != "random":
        raise ValueError(message("split_mode", format_value(split_mode), "'random' or 'seq-aware'"))
    need = "a share, from 0 to 1"
    if not 0 <= real("test_ratio", test_ratio, need) <= 1:
        raise ValueError(message("test_ratio", test_ratio, need))
    is_train = draw(len(data)) < 1 - test_ratio
    return data[is_train], data[~is_train]


def _split_newest(data: Any) -> tuple[Any, Any]:
    """Return the ratings sorted by user and time, without each user's newest one, and the newest ones.

    As in D2L, columns have no names.
    """
    index = _import_pandas().MultiIndex.from_frame
    rows = data.set_axis(range(data.shape[1]), axis=1).reset_index(drop=True)
    newest = rows.loc[rows.groupby(0, sort=False)[3].idxmax()]
    others = rows[~index(rows).isin(index(newest))]  # a rating may occur twice
    others = others.sort_values(3, kind="stable").sort_values(0, kind="stable")
    return others.reset_index(drop=True), newest.reset_index(drop=True)


def list_interactions(
    data: Any, num_users: int, num_items: int, feedback: str
) -> tuple[list[int], list[int], list[int], Interactions]:
    """Return users and items, counted from 0, ratings and their matrix or, for implicit feedback, each user's items."""
    _check_table(data, num_users, num_items)
    users = data.iloc[:, 0].to_numpy().astype(int) - 1
    items = data.iloc[:, 1].to_numpy().astype(int) - 1
    if feedback == "implicit":
        items_by_user: dict[int, list[int]] = {}
        for user, item in zip(users.tolist(), items.tolist(), strict=True):
            items_by_user.setdefault(user, []).append(item)
        return users.tolist(), items.tolist(), [1] * len(users), items_by_user
    if feedback != "explicit":
        raise ValueError(message("feedback", format_value(feedback), "'explicit' or 'implicit'"))
    ratings = data.iloc[:, 2].to_numpy().astype(int)
    matrix = np.zeros((num_items, num_users), "float32")
    matrix[items, users] = ratings
    return users.tolist(), items.tolist(), ratings.tolist(), matrix


def _check_table(data: Any, num_users: Any, num_items: Any) -> None:
    """Check that a table's users and items are counted from 1 to ``num_users`` and ``num_items``."""
    if not hasattr(data, "iloc") or data.ndim != 2 or data.shape[1] < len(COLUMNS):
        need = f"a pandas table with {', '.join(COLUMNS)}"
        raise TypeError(message("data", format_value(data), need))
    counts = size("num_users", num_users), size("num_items", num_items)
    for column, (what, count) in enumerate(zip(("users", "items"), counts, strict=True)):
        numbers = data.iloc[:, column]
        if len(numbers) and not 1 <= numbers.min() <= numbers.max() <= count:
            got = f"{what} from {numbers.min()} to {numbers.max()}"
            raise ValueError(message("data", got, f"{what} from 1 to {count}"))


def _import_pandas() -> ModuleType:
    try:
        import pandas  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise ImportError(
            "pandas is needed for MovieLens' ratings, and it is not installed. Install it: pip install pandas"
        ) from None
    return pandas
