"""Tests of classification, its metrics, training and plots, against NumPy in float64."""

import multiprocessing
import os
import re
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.shim.each.adapter import Adapter
from tests.shim.each.boards import watch_boards
from tests.shim.each.cases import assert_close
from tests.shim.each.test_training import write_fashion_mnist

pytestmark = pytest.mark.usefixtures("close_figures")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype("float32")
Y = (X[:, :3] + 0.5 * RNG.normal(size=(60, 3))).argmax(axis=1).astype("int32")
START = {"weight": RNG.normal(size=(4, 3)).astype("float32"), "bias": np.zeros(3, "float32")}
PROBE = np.concatenate([np.eye(4, dtype="float32"), np.zeros((1, 4), "float32")])
History = list[tuple[float, float]]


def loss_and_slope(w: Any, b: Any, X: Any, Y: Any) -> tuple[Any, Any, Any]:
    """Return softmax regression's losses, whether predictions are right, and gradients with respect to the logits."""
    logits = X.astype("float64") @ w + b
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    rows = np.arange(len(Y))
    return -np.log(probs[rows, Y]), logits.argmax(axis=1) == Y, probs - np.eye(3)[Y]


def descend(
    w: Any, b: Any, lr: float, batch_size: int, epochs: int = 1
) -> tuple[Any, Any, History]:
    """Return the final weights, and the mean loss and the accuracy in each epoch, measured before each step."""
    history = []
    for _ in range(epochs):
        losses, hits = [], []
        for start in range(0, len(X), batch_size):
            rows = slice(start, start + batch_size)
            loss, hit, slope = loss_and_slope(w, b, X[rows], Y[rows])
            w, b = w - lr * X[rows].T @ slope / len(slope), b - lr * slope.mean(axis=0)
            losses.extend(loss)
            hits.extend(hit)
        history.append((np.mean(losses), np.mean(hits)))
    return w, b, history


def make_batches(adapter: Adapter, batch_size: int = 16) -> Any:
    arrays = adapter.tensor(X), adapter.label_tensor(Y)
    return adapter.d2l.load_array(arrays, batch_size, is_train=False)


def compute_weights(adapter: Adapter, net: Any) -> tuple[Any, Any]:
    """Return a linear layer's weights and biases, computed from its outputs."""
    outputs = adapter.to_numpy(net(adapter.tensor(PROBE))).astype("float64")
    return outputs[:4] - outputs[4], outputs[4]


# Metrics


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 2, 4), (1, 2), (7, 2)])
def test_accuracy_counts_right_predictions(adapter: Adapter, shape: tuple[int, ...]) -> None:
    y_hat = RNG.normal(size=shape).astype("float32")
    right = y_hat.argmax(axis=1)
    y = np.where(RNG.random(right.shape) < 0.5, right, (right + 1) % shape[1])
    got = adapter.d2l.accuracy(adapter.tensor(y_hat), adapter.tensor(y.astype("int32")))
    assert isinstance(got, float)
    assert got == (right == y).sum()


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_accuracy_accepts_class_predictions(adapter: Adapter, shape: tuple[int, ...]) -> None:
    predictions = np.array([2, 0, 1, 1], "float32").reshape(shape)
    for labels in (np.array([2, 0, 1, 0], "int32"), np.array([[2], [0], [1], [0]], "int32")):
        assert adapter.d2l.accuracy(adapter.tensor(predictions), adapter.tensor(labels)) == 3


def test_corr2d_slides_kernel_over_matrix(adapter: Adapter) -> None:
    matrix = RNG.normal(size=(6, 8)).astype("float32")
    for size in ((1, 1), (2, 3), (6, 1), (6, 8)):
        kernel = RNG.normal(size=size).astype("float32")
        windows = np.lib.stride_tricks.sliding_window_view(matrix.astype("float64"), size)
        want = np.einsum("rchw,hw->rc", windows, kernel)
        assert_close(
            adapter.to_numpy(adapter.d2l.corr2d(adapter.tensor(matrix), adapter.tensor(kernel))),
            want,
        )


def test_benchmark_prints_elapsed_time(
    adapter: Adapter, capsys: pytest.CaptureFixture[str]
) -> None:
    with adapter.d2l.Benchmark("a nap"):
        time.sleep(0.02)
    output = re.fullmatch(r"a nap: (\d\.\d{4}) sec\n", capsys.readouterr().out)
    assert output
    assert 0.02 <= float(output[1]) < 9


def test_dataloader_workers_depend_on_cores_and_start_method(
    adapter: Adapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def workers(cores: int | None, methods: list[str], chosen: str | None = None) -> int:
        monkeypatch.setattr(os, "cpu_count", lambda: cores)
        monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: methods)
        monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none: chosen)
        return adapter.d2l.get_dataloader_workers()

    assert [workers(cores, ["fork", "spawn"]) for cores in (None, 1, 3, 64)] == [1, 1, 3, 4]
    assert [workers(8, [method, "fork"]) for method in ("spawn", "forkserver")] == [0, 0]
    assert workers(8, ["fork", "spawn"], chosen="spawn") == 0


# Images


def test_fashion_mnist_has_train_and_test_batches(
    adapter: Adapter, descent: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = write_fashion_mnist(adapter.d2l, tmp_path, monkeypatch)
    train, test = adapter.d2l.load_data_fashion_mnist(4)
    assert [len(train), len(test)] == [3, 2]
    images, labels = (adapter.to_numpy(part) for part in next(iter(test)))
    assert_close(images.reshape(4, 28, 28), stored["t10k"][:4] / 255)
    assert labels.shape == ((4, 1) if adapter.d2l.__name__.endswith("paddle") else (4,))
    assert labels.ravel().tolist() == [0, 1, 2, 3]
    assert adapter.is_shuffled(train)
    for resize, sides in ((14, (14, 14)), ((14, 21), (14, 21))):
        for loader in adapter.d2l.load_data_fashion_mnist(4, resize):
            images, _ = next(iter(loader))
            assert np.squeeze(adapter.to_numpy(images)).shape == (4, *sides)
    assert adapter.d2l.get_fashion_mnist_labels(labels) == [
        "t-shirt",
        "trouser",
        "pullover",
        "dress",
    ]


def test_images_are_shown_with_labels_and_predictions(adapter: Adapter) -> None:
    images = RNG.random((5, 1, 6, 7)).astype("float32")
    labels = np.array([9, 0, 1, 2, 3], "int32")

    def net(X: Any) -> Any:
        assert tuple(X.shape) == (5, 1, 6, 7)
        return adapter.tensor(np.eye(10, dtype="float32")[[9, 1, 1, 2, 3]])

    adapter.d2l.predict_ch3(net, [(adapter.tensor(images), adapter.tensor(labels))], 3)
    panels = plt.gcf().axes
    assert [axes.get_title() for axes in panels] == [
        "ankle boot\nankle boot",
        "t-shirt\ntrouser",
        "trouser\ntrouser",
    ]
    for axes, image in zip(panels, images, strict=False):
        np.testing.assert_allclose(axes.images[0].get_array(), image[0])


# Training


def test_evaluate_accuracy_averages_all_examples(adapter: Adapter, descent: Any) -> None:
    net = adapter.build_linear(4, START)
    _, hits, _ = loss_and_slope(START["weight"], START["bias"], X, Y)
    data = make_batches(adapter)
    got = adapter.d2l.evaluate_accuracy(net, data)
    assert isinstance(got, float)
    assert got == pytest.approx(hits.mean())
    if hasattr(adapter.d2l, "evaluate_accuracy_gpu"):
        evaluate = adapter.d2l.evaluate_accuracy_gpu
        cpu = adapter.d2l.cpu()
        assert evaluate(net, data) == pytest.approx(hits.mean())
        assert evaluate(net, data, cpu) == pytest.approx(hits.mean())
        pairs = [([X, X], y) for X, y in data]
        assert evaluate(lambda X: net(X[1]), pairs, cpu) == pytest.approx(hits.mean())


def test_dropout_is_active_only_in_training(adapter: Adapter, descent: Any) -> None:
    start = {"weight": 9 * np.eye(4, 3, dtype="float32"), "bias": np.zeros(3, "float32")}
    net = descent.add_dropout(adapter.build_linear(4, start), 0.9)
    rows = np.tile(np.eye(3, 4, dtype="float32"), (40, 1))
    exact = [(adapter.tensor(rows), adapter.label_tensor(np.tile(np.arange(3, dtype="int32"), 40)))]
    optimizer = descent.optimizer(net, 0.0)
    _, accuracy = adapter.d2l.train_epoch_ch3(net, exact, descent.losses, optimizer)
    assert accuracy < 0.9
    assert adapter.d2l.evaluate_accuracy(net, exact) == 1
    if hasattr(adapter.d2l, "evaluate_accuracy_gpu"):
        adapter.d2l.train_epoch_ch3(net, exact, descent.losses, descent.optimizer(net, 0.0))
        assert adapter.d2l.evaluate_accuracy_gpu(net, exact) == 1


@pytest.mark.parametrize("batch_size", [16, 60])
def test_epoch_from_scratch_matches_gradient_descent(
    adapter: Adapter, descent: Any, batch_size: int
) -> None:
    w, b = (descent.variable(START[name]) for name in ("weight", "bias"))

    def net(X: Any) -> Any:
        return adapter.d2l.linreg(X, w, b)

    update = descent.updater([w, b], 0.5)
    final_w, final_b, history = descend(START["weight"], START["bias"], 0.5, batch_size, 2)
    data = make_batches(adapter, batch_size)
    for want in history:
        got = adapter.d2l.train_epoch_ch3(net, data, descent.losses, update)
        assert got == pytest.approx(want, rel=1e-4)
    assert_close(adapter.to_numpy(w), final_w, 1e-4)
    assert_close(adapter.to_numpy(b), final_b, 1e-4)


def test_epoch_with_optimizer_matches_gradient_descent(adapter: Adapter, descent: Any) -> None:
    net = adapter.build_linear(4, START)
    loss = descent.mean_loss() if hasattr(descent, "mean_loss") else descent.losses
    final_w, final_b, history = descend(START["weight"], START["bias"], 0.5, 16, 2)
    optimizer = descent.optimizer(net, 0.5)
    for want in history:
        got = adapter.d2l.train_epoch_ch3(net, make_batches(adapter), loss, optimizer)
        assert got == pytest.approx(want, rel=1e-4)
    for got, want in zip(compute_weights(adapter, net), (final_w, final_b), strict=True):
        assert_close(got, want, 1e-4)


def test_training_plots_each_epoch(
    adapter: Adapter, descent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = watch_boards(monkeypatch)
    w, b = (descent.variable(START[name]) for name in ("weight", "bias"))

    def net(X: Any) -> Any:
        return adapter.d2l.linreg(X, w, b)

    update = descent.updater([w, b], 0.5)
    data = make_batches(adapter)
    assert adapter.d2l.train_ch3(net, data, data, descent.losses, 3, update) is None
    final_w, final_b, history = descend(START["weight"], START["bias"], 0.5, 16, 3)
    (board,) = boards
    assert board.X == [[1, 2, 3]] * 3
    assert board.Y[:2] == [pytest.approx(curve, rel=1e-4) for curve in zip(*history, strict=True)]
    _, hits, _ = loss_and_slope(final_w, final_b, X, Y)
    assert board.Y[2][-1] == pytest.approx(hits.mean())
    legend = [text.get_text() for text in board.axes[0].get_legend().get_texts()]
    assert legend == ["train loss", "train acc", "test acc"]


@pytest.mark.parametrize("batch_size", [5, 16])
def test_network_trains_from_xavier_weights(
    adapter: Adapter,
    descent: Any,
    batch_size: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    boards = watch_boards(monkeypatch)
    start = {"weight": 2 * START["weight"], "bias": START["bias"]}
    before: list[Any] = []
    train = make_batches(adapter, batch_size)
    net = descent.train_ch6(
        lambda: adapter.build_linear(4, start),
        lambda net: before.extend(compute_weights(adapter, net)),
        train,
        make_batches(adapter),
        2,
        0.3,
    )
    if adapter.d2l.__name__.endswith("tensorflow"):  # its train_ch6 keeps the model's weights
        assert_close(before[0], start["weight"])
    else:
        assert 0.2 < np.abs(before[0]).max() <= np.sqrt(6 / (4 + 3))
    *after, history = descend(*before, 0.3, batch_size, 2)
    for got, want in zip(compute_weights(adapter, net), after, strict=True):
        assert_close(got, want, 1e-4)
    _, hits, _ = loss_and_slope(*after, X, Y)
    (board,) = boards
    assert [curve[-1] for curve in board.X] == [2, 2, 2]
    want = *history[-1], hits.mean()
    assert [curve[-1] for curve in board.Y] == [pytest.approx(x, rel=1e-4) for x in want]
    assert board.X[2] == [1, 2]
    if len(board.X[0]) > 2:  # Keras's training loop reports only whole epochs
        interval = len(train) // 5 or 1
        steps = [n for n in range(1, len(train) + 1) if n % interval == 0 or n == len(train)]
        expected = [epoch + n / len(train) for epoch in range(2) for n in steps]
        assert board.X[0] == board.X[1] == pytest.approx(expected)
    output = capsys.readouterr().out
    assert "loss {:.3f}, train acc {:.3f}, test acc {:.3f}\n".format(*want) in output
    assert re.search(r"^\d+\.\d examples/sec on ", output, re.MULTILINE)
