"""Recommender systems, as far as no framework is known: how rankings are judged, and how training is drawn."""

from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.boards import Animator
from d2l_compat._shared.checks import Arrays, check_instance, fault, format_value, integer, size
from d2l_compat._shared.linear import no_examples_error
from d2l_compat._shared.measuring import Timer

FIRST = 50  # so many items are recommended
Step = Callable[[list[Any]], tuple[Any, int]]  # of a batch: the sum of its losses, and their number
Score = Callable[[int, NDArray[np.int64]], Any]  # of a user and items: a number for each item


def hit_and_auc(rankedlist: Any, test_matrix: Any, k: int) -> tuple[int, float]:
    """How many of ``test_matrix`` are among the first ``k`` of a ranking; and the area under the ROC curve.

    That is the share of all others that come after the first one of ``test_matrix``; 0 where none is ranked.
    Raises TypeError or ValueError where these are no lists of items, or ``k`` is negative.
    """
    for what, items in ("rankedlist", rankedlist), ("test_matrix", test_matrix):
        check_instance(what, items, Iterable, "a list of items")
    check_instance("rankedlist", rankedlist, Sized, "a list of items")
    k, wanted = integer("k", k, 0), set(test_matrix)
    ranks = [rank for rank, item in enumerate(rankedlist) if item in wanted]
    if not ranks:
        return 0, 0.0
    others = len(rankedlist) - 1
    return sum(rank < k for rank in ranks), 1 - ranks[0] / others if others else 1.0


def evaluate(
    score: Score, test_input: Any, candidates: Any, num_users: int, num_items: int
) -> tuple[float, float]:
    """The means over all users of their hits among the first 50, and of their areas under the ROC curve.

    Of each user all items are ranked but those of ``candidates``, which are known already.
    """
    num_users, num_items = size("num_users", num_users), size("num_items", num_items)
    for what, items in ("test_input", test_input), ("candidates", candidates):
        check_instance(what, items, Mapping, "a dict: of each user, counted from 0, the items")
    found = []
    for user in range(num_users):
        if user not in test_input:
            need = f"the items of each user from 0 to {num_users - 1}"
            raise KeyError(fault("test_input", f"none of user {user}", need))
        items = np.setdiff1d(np.arange(num_items), candidates.get(user, ()))
        scores = to_numpy("net", score(user, items)).reshape(-1)
        if len(scores) != len(items):
            got = f"{len(scores)} numbers for {len(items)} items"
            raise ValueError(fault("net", got, "one number for each item"))
        ranked = items[np.argsort(-scores, kind="stable")].tolist()
        found.append(hit_and_auc(ranked, test_input[user], FIRST))
    hits, areas = np.mean(found, axis=0).tolist()
    return hits, areas


def check_scores(arrays: Arrays, positive: Any, negative: Any) -> None:
    """Of items that are to rank higher, and of as many that are to rank lower."""
    for what, scores in ("positive", positive), ("negative", negative):
        arrays.check_instance(what, scores)
        arrays.check_floating(what, scores)
    shapes = [tuple(arrays.shape(scores)) for scores in (positive, negative)]
    if shapes[0] != shapes[1]:
        got = f"shapes {shapes[0]} and {shapes[1]}"
        raise ValueError(fault("positive and negative", got, "two equal ones"))


def train_rating(
    train_iter: Any,
    num_epochs: int,
    step: Step,
    evaluate: Callable[[], Any],
    devices: list[Any],
) -> None:
    """Do ``step`` with each batch of each epoch; the mean loss and the error in the test are drawn and printed."""
    drawn, timer, examples = _board(num_epochs, 2, "train loss", "test RMSE"), Timer(), 0
    for number in range(1, num_epochs + 1):
        loss, count = _epoch(train_iter, step, timer, 1)
        examples += count
        error = evaluate()
        drawn.add(number, (loss, error))
    print(f"train loss {loss:.3f}, test RMSE {float(error):.3f}")
    _tell_speed(examples, timer, devices)


def train_ranking(
    train_iter: Any,
    num_epochs: int,
    step: Step,
    evaluate: Callable[[], tuple[Any, Any]],
    devices: list[Any],
    eval_step: int,
) -> None:
    """The same for rankings: hits and areas are drawn, after every ``eval_step`` epochs, and printed."""
    eval_step = size("eval_step", eval_step)
    drawn, timer, examples = _board(num_epochs, 1, "test hit rate", "test AUC"), Timer(), 0
    hit_rate, auc = 0.0, 0.0
    for number in range(1, num_epochs + 1):
        loss, count = _epoch(train_iter, step, timer, 3)
        examples += count
        if number % eval_step == 0:
            hit_rate, auc = map(float, evaluate())
            drawn.add(number, (hit_rate, auc))
    print(f"train loss {loss:.3f}, test hit rate {hit_rate:.3f}, test AUC {auc:.3f}")
    _tell_speed(examples, timer, devices)


def _board(num_epochs: int, highest: int, *legend: str) -> Animator:
    xlim = [1, num_epochs] if size("num_epochs", num_epochs) > 1 else None
    return Animator("epoch", xlim=xlim, ylim=[0, highest], legend=legend)


def _epoch(train_iter: Any, step: Step, timer: Timer, at_least: int) -> tuple[float, int]:
    """The mean of all losses, and how many examples there were: batches of so many arrays."""
    need = f"batches of at least {at_least} arrays"
    if not isinstance(train_iter, Iterable) or isinstance(train_iter, (str, bytes, dict)):
        raise TypeError(fault("train_iter", format_value(train_iter), need))
    total, losses, examples = 0.0, 0, 0
    for batch in train_iter:
        timer.start()
        values = [*batch] if isinstance(batch, (list, tuple)) else [batch]
        if len(values) < at_least:
            raise ValueError(fault("train_iter", f"a batch of {len(values)}", need))
        loss, count = step(values)
        total, losses, examples = total + float(loss), losses + count, examples + len(values[0])
        timer.stop()
    if not losses:
        raise no_examples_error("train_iter")
    return total / losses, examples


def _tell_speed(examples: int, timer: Timer, devices: list[Any]) -> None:
    print(f"{examples / timer.sum():.1f} examples/sec on {devices}")
