"""The parts of recommender systems that are the same in every framework: evaluation, and plots of training."""

from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.boards import Animator
from d2l_compat._shared.checks import Arrays, check_instance, format_value, integer, message, size
from d2l_compat._shared.linear import no_examples_error
from d2l_compat._shared.measuring import Timer

NUM_RECOMMENDED = 50  # items at the head of a ranking
Step = Callable[[list[Any]], tuple[Any, int]]  # batch -> (sum of the losses, their number)
Score = Callable[[int, NDArray[np.int64]], Any]  # (user, items) -> a number for each item


def hit_and_auc(rankedlist: Any, test_matrix: Any, k: int) -> tuple[int, float]:
    """Return how many of ``test_matrix`` are among the first ``k`` of a ranking, and the area under the ROC curve.

    The area is the fraction of all other items that rank below the best-ranked item of ``test_matrix``; 0 if none of
    them is ranked. Raises TypeError or ValueError unless these are lists of items, and ``k`` is not negative.
    """
    for what, items in ("rankedlist", rankedlist), ("test_matrix", test_matrix):
        check_instance(what, items, Iterable, "a list of items")
    check_instance("rankedlist", rankedlist, Sized, "a list of items")
    k = integer("k", k, 0)
    test_items = set(test_matrix)
    ranks = [rank for rank, item in enumerate(rankedlist) if item in test_items]
    if not ranks:
        return 0, 0.0
    others = len(rankedlist) - 1
    return sum(rank < k for rank in ranks), 1 - ranks[0] / others if others else 1.0


def evaluate(
    score: Score, test_input: Any, candidates: Any, num_users: int, num_items: int
) -> tuple[float, float]:
    """Return the mean number of hits among the first 50 items, and the mean area under the ROC curve, over all users.

    For each user, all items are ranked except those in ``candidates``, which the user knows already.
    """
    num_users, num_items = size("num_users", num_users), size("num_items", num_items)
    for what, items in ("test_input", test_input), ("candidates", candidates):
        check_instance(what, items, Mapping, "a dict with the items of each user, counted from 0")
    results = []
    for user in range(num_users):
        if user not in test_input:
            need = f"the items of each user from 0 to {num_users - 1}"
            raise KeyError(message("test_input", f"no items for user {user}", need))
        items = np.setdiff1d(np.arange(num_items), candidates.get(user, ()))
        scores = to_numpy("net", score(user, items)).reshape(-1)
        if len(scores) != len(items):
            got = f"{len(scores)} numbers for {len(items)} items"
            raise ValueError(message("net", got, "one number for each item"))
        ranked = items[np.argsort(-scores, kind="stable")].tolist()
        results.append(hit_and_auc(ranked, test_input[user], NUM_RECOMMENDED))
    hits, areas = np.mean(results, axis=0).tolist()
    return hits, areas


def check_scores(arrays: Arrays, positive: Any, negative: Any) -> None:
    """Check the scores of items that should rank higher (``positive``) and lower (``negative``), equal in number."""
    for what, scores in ("positive", positive), ("negative", negative):
        arrays.check_instance(what, scores)
        arrays.check_floating(what, scores)
    shapes = [tuple(arrays.shape(scores)) for scores in (positive, negative)]
    if shapes[0] != shapes[1]:
        got = f"shapes {shapes[0]} and {shapes[1]}"
        raise ValueError(message("positive and negative", got, "equal shapes"))


def train_rating(
    train_iter: Any,
    num_epochs: int,
    step: Step,
    evaluate: Callable[[], Any],
    devices: list[Any],
) -> None:
    """Run ``step`` on each batch of each epoch; plot and print the mean loss and the test error."""
    animator = _make_animator(num_epochs, 2, "train loss", "test RMSE")
    timer = Timer()
    num_examples = 0
    for epoch in range(1, num_epochs + 1):
        loss, count = _train_epoch(train_iter, step, timer, 1)
        num_examples += count
        error = evaluate()
        animator.add(epoch, (loss, error))
    print(f"train loss {loss:.3f}, test RMSE {float(error):.3f}")
    _print_speed(num_examples, timer, devices)


def train_ranking(
    train_iter: Any,
    num_epochs: int,
    step: Step,
    evaluate: Callable[[], tuple[Any, Any]],
    devices: list[Any],
    eval_step: int,
) -> None:
    """Run ``step`` on each batch; plot hit rate and AUC after every ``eval_step`` epochs, and print the last ones."""
    eval_step = size("eval_step", eval_step)
    animator = _make_animator(num_epochs, 1, "test hit rate", "test AUC")
    timer = Timer()
    num_examples = 0
    hit_rate, auc = 0.0, 0.0
    for epoch in range(1, num_epochs + 1):
        loss, count = _train_epoch(train_iter, step, timer, 3)
        num_examples += count
        if epoch % eval_step == 0:
            hit_rate, auc = map(float, evaluate())
            animator.add(epoch, (hit_rate, auc))
    print(f"train loss {loss:.3f}, test hit rate {hit_rate:.3f}, test AUC {auc:.3f}")
    _print_speed(num_examples, timer, devices)


def _make_animator(num_epochs: int, highest: int, *legend: str) -> Animator:
    xlim = [1, num_epochs] if size("num_epochs", num_epochs) > 1 else None
    return Animator("epoch", xlim=xlim, ylim=[0, highest], legend=legend)


def _train_epoch(train_iter: Any, step: Step, timer: Timer, min_arrays: int) -> tuple[float, int]:
    """Run ``step`` on each batch, of ``min_arrays`` or more arrays; return the mean loss and the number of examples."""
    need = f"batches of at least {min_arrays} arrays"
    if not isinstance(train_iter, Iterable) or isinstance(train_iter, (str, bytes, dict)):
        raise TypeError(message("train_iter", format_value(train_iter), need))
    total, num_losses, num_examples = 0.0, 0, 0
    for batch in train_iter:
        timer.start()
        arrays = [*batch] if isinstance(batch, (list, tuple)) else [batch]
        if len(arrays) < min_arrays:
            raise ValueError(message("train_iter", f"a batch of {len(arrays)}", need))
        loss, count = step(arrays)
        total += float(loss)
        num_losses += count
        num_examples += len(arrays[0])
        timer.stop()
    if not num_losses:
        raise no_examples_error("train_iter")
    return total / num_losses, num_examples


def _print_speed(num_examples: int, timer: Timer, devices: list[Any]) -> None:
    print(f"{num_examples / timer.sum():.1f} examples/sec on {devices}")
