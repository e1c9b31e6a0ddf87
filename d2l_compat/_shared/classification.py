"""The parts of classification that are the same in every framework: counts, plots and printed results."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from d2l_compat._shared import plot
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.boards import Animator
from d2l_compat._shared.checks import check_callable, message, size
from d2l_compat._shared.data.images import get_fashion_mnist_labels
from d2l_compat._shared.linear import batches, count_batches, no_examples_error
from d2l_compat._shared.measuring import Accumulator, Timer

LEGEND = "train loss", "train acc", "test acc"
Step = Callable[[Any, Any], tuple[Any, Any]]  # (X, y) -> (sum of the losses, number of hits)


def accuracy(y_hat: Any, y: Any) -> float:
    """Return how many of the predictions are right: their number, not a fraction.

    ``y_hat`` (examples, classes, ...) has its greatest entry at the predicted class. If it is (examples,) or
    has one column, it is the predictions themselves. ``y`` are the labels, one for each.
    Raises TypeError or ValueError unless labels are numbers, as many as predictions.
    """
    shape = tuple(getattr(y_hat, "shape", ()))
    if len(shape) > 1 and shape[1] > 1:
        # Computed on the array's device if possible, so that predictions are copied instead of logits.
        has_common_dtype = str(getattr(y_hat, "dtype", "")).endswith(("float32", "float64"))
        if not (has_common_dtype and hasattr(y_hat, "argmax")):
            y_hat = to_numpy("y_hat", y_hat)
        y_hat = y_hat.argmax(axis=1)
    predictions, labels = to_numpy("y_hat", y_hat), to_numpy("y", y)
    if predictions.size != labels.size:
        got = f"shape {labels.shape} for predictions of shape {predictions.shape}"
        raise ValueError(message("y", got, "one label for each prediction"))
    return float((predictions.astype(labels.dtype).ravel() == labels.ravel()).sum())


def corr2d(X: Any, K: Any) -> Any:
    """Return the cross-correlation of ``X`` (rows, columns) and a kernel ``K`` (height, width).

    Its shape is (rows - height + 1, columns - width + 1), and gradients flow through it. Raises TypeError or
    ValueError unless both are matrices of numbers, and the kernel is no larger than ``X``.
    """
    for what, matrix in ("X", X), ("K", K):
        need = "a matrix of numbers, (rows, columns)"
        if not any(kind in str(getattr(matrix, "dtype", "")) for kind in ("float", "int")):
            raise TypeError(message(what, _format_dtype(matrix), need))
        if len(matrix.shape) != 2:
            raise ValueError(message(what, f"shape {tuple(matrix.shape)}", need))
    height, width = K.shape
    rows, columns = X.shape[0] - height + 1, X.shape[1] - width + 1
    if min(*K.shape, rows, columns) < 1:
        got = f"shape {tuple(K.shape)} for X of shape {tuple(X.shape)}"
        raise ValueError(message("K", got, "at least one row and column, and no more than X has"))
    # A sum of arrays of the result's shape, one for each number of the kernel, is fast in any framework.
    # It changes no array in place.
    try:
        first, *others = [
            K[i, j] * X[i : i + rows, j : j + columns] for i in range(height) for j in range(width)
        ]
    except Exception as error:  # frameworks raise different ones
        got = f"dtype {K.dtype} for X of dtype {X.dtype}"
        raise TypeError(message("K", got, "the same dtype for both")) from error
    return sum(others, first)


def _format_dtype(matrix: Any) -> str:
    dtype = getattr(matrix, "dtype", None)
    return type(matrix).__name__ if dtype is None else f"dtype {dtype}"


def predict_ch3(net: Callable[[Any], Any], test_iter: Any, n: int = 6) -> None:
    """Show the first ``n`` images of a batch of Fashion-MNIST, with their labels and the predictions of ``net``.

    Raises TypeError or ValueError if ``net`` is not callable, or there is no batch (X, y).
    """
    check_callable("net", net)
    n = size("n", n)
    X, y = next(iter(batches(test_iter, "test_iter")), (None, None))
    if X is None:
        raise no_examples_error("test_iter")
    outputs = to_numpy("net", net(X))
    images = to_numpy("test_iter", X)[:n]
    if outputs.ndim != 2:
        got = f"an output of shape {outputs.shape}"
        raise ValueError(message("net", got, "shape (examples, classes)"))
    labels = get_fashion_mnist_labels(to_numpy("test_iter", y).ravel()[:n])
    predictions = get_fashion_mnist_labels(outputs.argmax(axis=1)[:n])
    titles = ["\n".join(pair) for pair in zip(labels, predictions, strict=True)]
    sides = [side for side in images.shape[1:] if side != 1]  # the channel may come first or last
    plot.show_images(images.reshape(-1, *sides), 1, len(images), titles=titles)


def mean_accuracy(net: Any, data_iter: Any) -> float:
    """Return the fraction of labels in all batches that ``net`` predicts correctly."""
    check_callable("net", net)
    return hit_rate(lambda X, y: accuracy(net(X), y), data_iter)


def hit_rate(count_hits: Callable[[Any, Any], float], data_iter: Any) -> float:
    """Return the fraction of right predictions; ``count_hits(X, y)`` returns their number in a batch."""
    hits, count = 0.0, 0
    for X, y in batches(data_iter):
        hits += count_hits(X, y)
        count += to_numpy("data_iter", y).size
    if not count:
        raise no_examples_error("data_iter")
    return hits / count


def yield_test_batches(test_iter: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each batch of the argument ``test_iter``.

    Raises TypeError or ValueError if an element is not a batch, or there are no batches.
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
    """Run ``step`` on each batch; return the mean loss of an example and the fraction of right predictions.

    ``watch(number, loss, accuracy)`` is called after each batch, counted from 1, with the means so far.
    """
    sums = Accumulator(4)
    for number, (X, y) in enumerate(batches(train_iter, "train_iter"), 1):
        loss, hits = step(X, y)
        sums.add(loss, hits, len(y), math.prod(y.shape))  # each pixel may have a label
        if watch:
            watch(number, sums[0] / sums[2], sums[1] / sums[3])
    if not sums[3]:
        raise no_examples_error("train_iter")
    return sums[0] / sums[2], sums[1] / sums[3]


def make_animator(num_epochs: int, ylim: list[float] | None = None) -> Animator:
    """Return an Animator for the loss, the training accuracy and the test accuracy."""
    xlim = [1, num_epochs] if num_epochs > 1 else None
    return Animator("epoch", xlim=xlim, ylim=ylim, legend=LEGEND)


def train_ch3(
    num_epochs: int, train: Callable[[], tuple[float, float]], evaluate: Callable[[], float]
) -> None:
    """Plot the loss and accuracy that ``train`` returns in each epoch, and the accuracy that ``evaluate`` returns."""
    animator = make_animator(size("num_epochs", num_epochs), [0.3, 0.9])
    for epoch in range(1, num_epochs + 1):
        loss, train_accuracy = train()
        animator.add(epoch, (loss, train_accuracy, evaluate()))


def train_ch6(
    train_iter: Any,
    num_epochs: int,
    step: Step,
    evaluate: Callable[[], float],
    device: Any,
    ylim: list[float] | None = None,
) -> None:
    """Run ``step`` on each batch of each epoch.

    Loss and accuracy are plotted five times in an epoch, and printed at the end with the speed of the steps.
    """
    num_epochs = size("num_epochs", num_epochs)
    num_batches = count_batches("train_iter", train_iter)
    animator, timer = make_animator(num_epochs, ylim), Timer()
    interval = max(1, num_batches // 5)
    examples = 0

    def timed_step(X: Any, y: Any) -> tuple[Any, Any]:
        nonlocal examples
        examples += len(y)
        timer.start()
        return step(X, y)

    for epoch in range(num_epochs):

        def watch(number: int, loss: float, accuracy: float, epoch: int = epoch) -> None:
            timer.stop()
            if number % interval == 0 or number == num_batches:
                animator.add(epoch + number / num_batches, (loss, accuracy, None))

        loss, train_accuracy = train_epoch(train_iter, timed_step, watch)
        test_accuracy = evaluate()
        animator.add(epoch + 1, (None, None, test_accuracy))
    print_results(loss, train_accuracy, test_accuracy, examples / timer.sum(), device)


def print_results(
    loss: float, train_accuracy: float, test_accuracy: float, speed: float, device: Any
) -> None:
    print(f"loss {loss:.3f}, train acc {train_accuracy:.3f}, test acc {test_accuracy:.3f}")
    print(f"{speed:.1f} examples/sec on {device}")
