"""Tests of linear regression from scratch and the optimization chapter, against NumPy in float64."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.shim.each import fake_data
from tests.shim.each.adapter import Adapter
from tests.shim.each.boards import watch_boards
from tests.shim.each.cases import assert_close

pytestmark = pytest.mark.usefixtures("close_figures")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 5)).astype("float32")
NOISE = RNG.normal(size=500)
Y = (X @ [0.5, -1.0, 0.25, 0.75, -0.5] + 0.3 + 0.5 * NOISE).astype("float32")


def half_squares(X: Any, y: Any, w: Any, b: Any) -> Any:
    return (X @ w + b - y) ** 2 / 2


def descend(lr: float, batch_size: int, num_epochs: int, w: Any, b: Any) -> list[float]:
    """Return the mean loss after every 200 examples."""
    X64, y64 = X.astype("float64"), Y.astype("float64")
    losses = []
    examples = 0
    for _ in range(num_epochs):
        for start in range(0, len(X), batch_size):
            rows = slice(start, start + batch_size)
            error = X64[rows] @ w + b - y64[rows]
            w = w - lr * X64[rows].T @ error / len(error)
            b = b - lr * error.mean()
            examples += len(error)
            if examples % 200 == 0:
                losses.append(half_squares(X64, y64, w, b).mean())
    return losses


def test_linreg_and_squared_loss_match_formulas(adapter: Adapter, descent: Any) -> None:
    w, b = X[:5, :2], X[7, :2]
    outputs = adapter.d2l.linreg(*map(adapter.tensor, (X, w, b)))
    assert_close(adapter.to_numpy(outputs), X.astype("float64") @ w + b)
    flat = adapter.d2l.linreg(adapter.tensor(X), adapter.tensor(X[0]), 0.5)
    assert_close(adapter.to_numpy(flat), X.astype("float64") @ X[0] + 0.5)
    predictions = X[:, :1]
    losses = adapter.to_numpy(
        adapter.d2l.squared_loss(adapter.tensor(predictions), adapter.tensor(Y))
    )
    assert_close(losses, (predictions - Y[:, None].astype("float64")) ** 2 / 2)


def test_sgd_follows_mean_gradient(adapter: Adapter, descent: Any) -> None:
    w, b = descent.variable(X[0].reshape(5, 1)), descent.variable(np.zeros(1, "float32"))
    features, labels = adapter.tensor(X), adapter.tensor(Y)
    for step in range(2):  # the first step leaves no gradient for the second
        before = [adapter.to_numpy(x).astype("float64").copy() for x in (w, b)]
        descent.sgd(
            [w, b],
            lambda: adapter.d2l.reduce_sum(
                adapter.d2l.squared_loss(adapter.d2l.linreg(features, w, b), labels)
            ),
            0.1,
            len(X),
        )
        error = X @ before[0] + before[1] - Y[:, None]
        assert_close(adapter.to_numpy(w), before[0] - 0.1 * X.T @ error / len(X), 1e-4)
        assert_close(adapter.to_numpy(b), before[1] - 0.1 * error.mean(axis=0), 1e-4)
        assert step == 1 or np.abs(adapter.to_numpy(w) - before[0]).max() > 1e-3


def test_synthetic_data_follows_model(adapter: Adapter, descent: Any) -> None:
    w = np.array([2, -3.4], "float32")
    integer = adapter.tensor(np.array([4], "int32"))
    for weights, b, bias in (w, 4.2, 4.2), (w[:, None], 4.2, 4.2), (w, integer, 4):
        features, labels = adapter.d2l.synthetic_data(adapter.tensor(weights), b, 4000)
        features, labels = adapter.to_numpy(features), adapter.to_numpy(labels)
        assert (features.shape, labels.shape) == ((4000, 2), (4000, 1))
        assert np.abs(features.mean(axis=0)).max() < 0.1
        assert np.abs(features.std(axis=0) - 1).max() < 0.1
        outputs = adapter.d2l.linreg(*map(adapter.tensor, (features, w)), b)
        assert_close(adapter.to_numpy(outputs), features @ w + bias, 1e-4)
        noise = labels[:, 0] - features @ w - bias
        assert noise.std() == pytest.approx(0.01, rel=0.1)
        assert abs(noise.mean()) < 0.001


def test_load_array_shuffles_only_for_training(adapter: Adapter, descent: Any) -> None:
    arrays = adapter.tensor(X), adapter.tensor(Y)

    def rows(loader: Any) -> list[np.ndarray]:
        columns = zip(*loader, strict=True)
        return [np.concatenate([adapter.to_numpy(part) for part in parts]) for parts in columns]

    ordered_batches = adapter.d2l.load_array(arrays, 64, is_train=False)
    assert [len(adapter.to_numpy(y)) for _, y in ordered_batches] == [64] * 7 + [52]
    for got, want in zip(rows(ordered_batches), (X, Y), strict=True):
        np.testing.assert_array_equal(got, want)
    shuffled, labels = rows(adapter.d2l.load_array(arrays, 64))
    assert (shuffled != X).any()
    order = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in shuffled]
    assert sorted(order) == [*range(500)]
    np.testing.assert_array_equal(labels, Y[order])


def test_evaluate_loss_averages_all_examples(adapter: Adapter, descent: Any) -> None:
    w = adapter.tensor(X[0].reshape(5, 1))
    batches = adapter.d2l.load_array((adapter.tensor(X), adapter.tensor(Y)), 64, is_train=False)

    def net(X: Any) -> Any:
        return adapter.d2l.linreg(X, w, 0.5)

    got = adapter.d2l.evaluate_loss(net, batches, adapter.d2l.squared_loss)
    want = half_squares(X.astype("float64"), Y, X[0].astype("float64"), 0.5).mean()
    assert isinstance(got, float)
    assert got == pytest.approx(want, rel=1e-5)


def test_airfoil_data_is_standardized(
    adapter: Adapter, descent: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = RNG.normal(size=(60, 6)) * [1, 10, 100, 1, 2, 3] + [5, 0, -7, 1, 1, 100]
    fake_data.replace_airfoil(monkeypatch, adapter.d2l, tmp_path, table)
    batches, features = adapter.d2l.get_data_ch11(batch_size=8, n=50)
    assert (features, len(batches)) == (5, 7)
    parts = [np.column_stack([adapter.to_numpy(X), adapter.to_numpy(y)]) for X, y in batches]
    got = np.concatenate(parts)
    want = ((table - table.mean(axis=0)) / table.std(axis=0))[:50]  # statistics of all 60
    assert got.dtype == np.float32
    np.testing.assert_allclose(np.sort(got, axis=0), np.sort(want, axis=0), atol=1e-5)


@pytest.mark.parametrize("batch_size", [10, 100, 500])
def test_train_ch11_matches_gradient_descent(
    adapter: Adapter,
    descent: Any,
    batch_size: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boards = watch_boards(monkeypatch)
    batches = adapter.d2l.load_array(
        (adapter.tensor(X), adapter.tensor(Y)), batch_size, is_train=False
    )
    first: list[Any] = []

    def trainer(params: Any, *args: Any) -> Any:
        first.extend(adapter.to_numpy(x).astype("float64").copy() for x in params if len(first) < 2)
        assert args[-2:] == ("the states", {"lr": 0.05})
        return descent.take_step(params, *args)

    times, losses = adapter.d2l.train_ch11(trainer, "the states", {"lr": 0.05}, batches, 5)
    w, b = first
    assert (w.shape, b.tolist()) == ((5, 1), [0])
    assert 0 < np.abs(w).max() < 0.05
    want = descend(0.05, batch_size, 2, w[:, 0], 0.0)
    np.testing.assert_allclose(losses, want, rtol=1e-4)
    assert len(times) == len(losses)
    assert (np.diff([0, *times]) > 0).all()
    board = boards[-1]
    assert board.X[0] == pytest.approx([200 * (i + 1) / 500 for i in range(5)][-len(want) :])
    output = capsys.readouterr().out
    assert output.startswith(f"loss: {want[-1]:.3f}, ")
    assert output.endswith(" sec/epoch\n")


def test_short_training_is_measured_at_end(adapter: Adapter, descent: Any) -> None:
    batches = adapter.d2l.load_array((adapter.tensor(X[:7]), adapter.tensor(Y[:7])), 7)
    _, losses = adapter.d2l.train_ch11(descent.take_step, None, {"lr": 0.05}, batches, 5, 3)
    assert len(losses) == 1


def test_train_concise_ch11_matches_gradient_descent(
    adapter: Adapter, descent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare with descent from zero, since weights start near zero."""
    boards = watch_boards(monkeypatch)
    batches = adapter.d2l.load_array((adapter.tensor(X), adapter.tensor(Y)), 10, is_train=False)
    optimizer, hyperparams = descent.concise_optimizer(0.02)
    assert adapter.d2l.train_concise_ch11(optimizer, hyperparams, batches, 2) is None
    want = descend(0.02, 10, 2, np.zeros(5), 0.0)
    np.testing.assert_allclose(boards[-1].Y[0], want, atol=0.03)
    half, twice = (descend(lr, 10, 2, np.zeros(5), 0.0)[0] for lr in (0.01, 0.04))
    assert min(abs(half - want[0]), abs(twice - want[0])) > 0.06  # a wrong rate would be noticed


def test_train_2d_returns_points(adapter: Adapter, capsys: pytest.CaptureFixture[str]) -> None:
    def gradient(x1: float, x2: float) -> tuple[float, float]:
        return 2 * x1, 4 * x2

    def momentum(x1: Any, x2: Any, s1: Any, s2: Any, f_grad: Any) -> Any:
        g1, g2 = f_grad(x1, x2)
        s1, s2 = 0.5 * s1 + g1, 0.5 * s2 + g2
        return x1 - 0.1 * s1, x2 - 0.1 * s2, s1, s2

    points = adapter.d2l.train_2d(momentum, 3, gradient)
    assert np.allclose(points, [(-5, -2), (-4, -1.2), (-2.7, -0.32), (-1.51, 0.248)])
    assert capsys.readouterr().out == "epoch 3, x1: -1.510000, x2: 0.248000\n"
    points_only = adapter.d2l.train_2d(lambda x1, x2, s1, s2: (x1 / 2, x2 / 2, s1, s2), 2)
    assert points_only == [(-5, -2), (-2.5, -1), (-1.25, -0.5)]


def test_trace_is_drawn_over_contours(adapter: Adapter, descent: Any) -> None:
    types = []

    def f(x1: Any, x2: Any) -> Any:
        types.append((type(x1), type(adapter.tensor(X))))
        return x1**2 + 2 * x2**2

    points = [(-5, -2), (-3.0, 0.5), (0.25, -0.25)]
    x1_tensor = adapter.tensor(np.array([0.25], "float32"))  # random steps may return tensors
    adapter.d2l.show_trace_2d(f, [*points[:2], (x1_tensor, -0.25)])
    ((got, want),) = types
    assert issubclass(got, want)
    axes = plt.gca()
    np.testing.assert_allclose(axes.lines[0].get_xydata(), points)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x1", "x2")
    (contours,) = axes.collections
    for level, paths in zip(contours.levels, contours.get_paths(), strict=True):
        if len(paths.vertices):  # points where the function has this level
            x1, x2 = paths.vertices.T
            assert np.abs(x1**2 + 2 * x2**2 - level).max() < 0.02
