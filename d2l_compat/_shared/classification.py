"""Classification, as far as it is the same in every framework: what is counted, drawn and printed."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from d2l_compat._shared import plot
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.boards import Animator
from d2l_compat._shared.checks import check_callable, fault, size
from d2l_compat._shared.data.images import get_fashion_mnist_labels
from d2l_compat._shared.linear import batches, count_batches, no_examples_error
from d2l_compat._shared.measuring import Accumulator, Timer

LEGEND = "train loss", "train acc", "test acc"
Step = Callable[[Any, Any], tuple[Any, Any]]  # of a batch: the sum of its losses, and its hits


def accuracy(y_hat: Any, y: Any) -> float:
    """How many of the predictions are right: a number of them, not their share.

    ``y_hat`` (examples, classes, ...) has its greatest entry at the class that is predicted; where it is
    (examples,) or has one column, it is the predictions themselves. ``y`` are the labels, one for each.
    Raises TypeError or ValueError where they are no numbers, or more or fewer than predictions.
    """
    shape = tuple(getattr(y_hat, "shape", ()))
    if len(shape) > 1 and shape[1] > 1:
        # Where it lies, if that can be: its entries are many, its predictions few.
        is_common = str(getattr(y_hat, "dtype", "")).endswith(("float32", "float64"))
        at_place = is_common and hasattr(y_hat, "argmax")
        y_hat = (y_hat if at_place else to_numpy("y_hat", y_hat)).argmax(axis=1)
    predictions, labels = to_numpy("y_hat", y_hat), to_numpy("y", y)
    if predictions.size != labels.size:
        got = f"shape {labels.shape} for predictions of shape {predictions.shape}"
        raise ValueError(fault("y", got, "one label for each prediction"))
    return float((predictions.astype(labels.dtype).ravel() == labels.ravel()).sum())


def corr2d(X: Any, K: Any) -> Any:
    """The cross-correlation of ``X`` (rows, columns) and a kernel ``K`` (height, width), which slides over it.

    It is (rows - height + 1, columns - width + 1), and has gradients. Raises TypeError or ValueError where
    one is no matrix of numbers, or the kernel larger than what it slides over.
    """
    for what, matrix in ("X", X), ("K", K):
        need = "a matrix of numbers, (rows, columns)"
        if not any(kind in str(getattr(matrix, "dtype", "")) for kind in ("float", "int")):
            raise TypeError(fault(what, _format_dtype(matrix), need))
        if len(matrix.shape) != 2:
            raise ValueError(fault(what, f"shape {tuple(matrix.shape)}", need))
    height, width = K.shape
    rows, columns = X.shape[0] - height + 1, X.shape[1] - width + 1
    if min(*K.shape, rows, columns) < 1:
        got = f"shape {tuple(K.shape)} for X of shape {tuple(X.shape)}"
        raise ValueError(fault("K", got, "at least one row and column, and no more than X has"))
    # Each number of the kernel meets a part of X as large as the result: as fast as one can without
    # knowing the framework, and never changed in place.
    try:
        first, *others = [
            K[i, j] * X[i : i + rows, j : j + columns] for i in range(height) for j in range(width)
        ]
    except Exception as error:  # as each framework has its own
        got = f"dtype {K.dtype} for X of dtype {X.dtype}"
        raise TypeError(fault("K", got, "one dtype of both")) from error
    return sum(others, first)


def _format_dtype(matrix: Any) -> str:
    dtype = getattr(matrix, "dtype", None)
    return type(matrix).__name__ if dtype is None else f"dtype {dtype}"


def predict_ch3(net: Callable[[Any], Any], test_iter: Any, n: int = 6) -> None:
    """Show the first ``n`` pictures of Fashion-MNIST in a batch: above each its label, and what ``net`` predicts.

    Raises TypeError or ValueError where ``net`` cannot be called, or there is no batch (X, y).
    """
    check_callable("net", net)
    n = size("n", n)
    X, y = next(iter(batches(test_iter, "test_iter")), (None, None))
    if X is None:
        raise no_examples_error("test_iter")
    outputs = to_numpy("net", net(X))
    pictures = to_numpy("test_iter", X)[:n]
    if outputs.ndim != 2:
        raise ValueError(fault("net", f"shape {outputs.shape} from it", "(examples, classes)"))
    named = (
        get_fashion_mnist_labels(each[:n])
        for each in (to_numpy("test_iter", y).ravel(), outputs.argmax(axis=1))
    )
    titles = ["\n".join(pair) for pair in zip(*named, strict=True)]
    sides = [side for side in pictures.shape[1:] if side != 1]  # the channel may come first or last
    plot.show_images(pictures.reshape(-1, *sides), 1, len(pictures), titles=titles)


def mean_accuracy(net: Any, data_iter: Any) -> float:
    """The share of labels in all batches that ``net`` predicts right."""
    check_callable("net", net)
    return hit_rate(lambda X, y: accuracy(net(X), y), data_iter)


def hit_rate(count_hits: Callable[[Any, Any], float], data_iter: Any) -> float:
    """The same, where ``count_hits(X, y)`` tells of each batch how many are right."""
    hits, count = 0.0, 0
    for X, y in batches(data_iter):
        hits += count_hits(X, y)
        count += to_numpy("data_iter", y).size
    if not count:
        raise no_examples_error("data_iter")
    return hits / count


def yield_test_batches(test_iter: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each batch of ``test_iter``, under which name a function that trains was given it.

    Raises TypeError or ValueError where one is no batch, or there is none.
    """
    is_empty = True
    for batch in batches(test_iter, "test_iter"):
        is_empty = False
        yield batch
    if is_empty:
        raise no_examples_error("test_iter")


def train_epoch(
    train_iter: Any, step: Step, watch: Callable[[int, float, float], None] | None = None
) -> tuple[float, float]:
    """Do ``step`` with each batch: the mean loss of an example, and the share of labels predicted right.

    ``watch(number, loss, share)`` is told them after each batch, counted from 1, for all so far.
    """
    sums = Accumulator(4)
    for number, (X, y) in enumerate(batches(train_iter, "train_iter"), 1):
        loss, hits = step(X, y)
        sums.add(loss, hits, len(y), math.prod(y.shape))  # of a picture each pixel may have a label
        if watch:
            watch(number, sums[0] / sums[2], sums[1] / sums[3])
    if not sums[3]:
        raise no_examples_error("train_iter")
    return sums[0] / sums[2], sums[1] / sums[3]


def make_animator(num_epochs: int, ylim: list[float] | None = None) -> Animator:
    """For the loss, and the accuracy in training and in the test."""
    xlim = [1, num_epochs] if num_epochs > 1 else None
    return Animator("epoch", xlim=xlim, ylim=ylim, legend=LEGEND)


def train_ch3(
    num_epochs: int, train: Callable[[], tuple[float, float]], evaluate: Callable[[], float]
) -> None:
    """Epoch by epoch, ``train``, which gives loss and accuracy, and ``evaluate``; all are drawn."""
    drawn = make_animator(size("num_epochs", num_epochs), [0.3, 0.9])
    for number in range(1, num_epochs + 1):
        drawn.add(number, (*train(), evaluate()))


def train_ch6(
    train_iter: Any,
    num_epochs: int,
    step: Step,
    evaluate: Callable[[], float],
    device: Any,
    ylim: list[float] | None = None,
) -> None:
    """Do ``step`` with each batch of each epoch. Loss and accuracy are drawn five times an epoch, and printed
    in the end, with how many examples a second passed through the steps."""
    num_epochs, num_batches = (
        size("num_epochs", num_epochs),
        count_batches("train_iter", train_iter),
    )
    drawn, timer = make_animator(num_epochs, ylim), Timer()
    every = max(1, num_batches // 5)
    examples = 0

    def timed(X: Any, y: Any) -> tuple[Any, Any]:
        nonlocal examples
        examples += len(y)
        timer.start()
        return step(X, y)

    for passed in range(num_epochs):

        def watch(number: int, loss: float, share: float, passed: int = passed) -> None:
            timer.stop()
            if number % every == 0 or number == num_batches:
                drawn.add(passed + number / num_batches, (loss, share, None))

        loss, share = train_epoch(train_iter, timed, watch)
        test_share = evaluate()
        drawn.add(passed + 1, (None, None, test_share))
    print_results(loss, share, test_share, examples / timer.sum(), device)


def print_results(loss: float, share: float, test_share: float, speed: float, device: Any) -> None:
    print(f"loss {loss:.3f}, train acc {share:.3f}, test acc {test_share:.3f}")
    print(f"{speed:.1f} examples/sec on {device}")
