"""Tests of the models of D2L 1.0's first chapters, and of GAN steps, against NumPy in float64."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from tests.shim.each.adapter import Adapter
from tests.shim.each.cases import assert_close

pytestmark = pytest.mark.usefixtures("close_figures")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3)).astype("float32")
Y = (X @ [[2.0], [-3.4], [1.0]] + 4.2).astype("float32")
IMAGES = RNG.normal(size=(2, 4, 5, 5)).astype("float32")


@pytest.fixture
def models(adapter: Adapter, pytestconfig: pytest.Config) -> Any:
    """Return helpers for the framework's models; if D2L has no such chapters, check that their names are missing."""
    framework = pytestconfig.getoption("framework")
    if find_spec(f"tests.shim.each.{framework}.models") is None:
        adapter.assert_missing("LeNet", "SyntheticRegressionData", "ResNeXtBlock")
        pytest.skip("D2L 1.0 does not have this framework")
    return import_module(f"tests.shim.each.{framework}.models")


def convolve(X: Any, w: Any, b: Any, stride: int = 1, padding: int = 0, groups: int = 1) -> Any:
    """Convolve X (examples, channels, height, width) with w (outputs, channels of a group, height, width)."""
    edge = (padding, padding)
    X = np.pad(X.astype("float64"), ((0, 0), (0, 0), edge, edge))
    parts = []
    for x, kernel in zip(np.split(X, groups, 1), np.split(w, groups), strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[2:], (2, 3))
        parts.append(np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], kernel))
    return np.concatenate(parts, 1) + b[:, None, None]


def average_pool(X: Any) -> Any:
    n, c, h, w = X.shape
    return X.reshape(n, c, h // 2, 2, w // 2, 2).mean((3, 5))


def flatten(adapter: Adapter, X: Any) -> Any:
    has_channels_last = adapter.d2l.__name__.rsplit(".")[-1] in ("tensorflow", "jax")
    return (X.transpose(0, 2, 3, 1) if has_channels_last else X).reshape(len(X), -1)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def make_data(adapter: Adapter, d2l: Any = None) -> Any:
    """Make a batch of twenty examples of linear regression."""
    data = adapter.build_data_module(d2l or adapter.d2l, adapter.tensor(X), adapter.tensor(Y))
    data.train_batch = lambda: (adapter.tensor(X), adapter.tensor(Y))
    return data


def descend(w: Any, b: Any, lr: float, epochs: int) -> tuple[Any, Any]:
    """Return weights and bias after gradient descent on half the mean squared error."""
    for _ in range(epochs):
        slope = (X.astype("float64") @ w + b - Y[:, 0]) / len(X)
        w, b = w - lr * X.T @ slope, b - lr * slope.sum()
    return w, b


# Linear regression


def test_synthetic_data_lies_around_line(adapter: Adapter, models: Any) -> None:
    w = adapter.tensor(np.array([2, -3.4], "float32"))
    data = adapter.d2l.SyntheticRegressionData(w, 4.2, 0.5, 1500, 600, 100)
    inputs, labels = adapter.to_numpy(data.X).astype("float64"), adapter.to_numpy(data.y)
    assert (inputs.shape, labels.shape) == ((2100, 2), (2100, 1))
    assert np.abs(inputs.mean(axis=0)).max() < 0.1
    assert_close(np.cov(inputs.T), np.eye(2), 0.1)
    errors = labels[:, 0] - (inputs @ [2, -3.4] + 4.2)
    assert abs(errors.mean()) < 0.05
    assert errors.std() == pytest.approx(0.5, rel=0.1)
    column = adapter.tensor(np.array([[2], [-3.4]], "float32"))
    for b in 1, adapter.tensor(np.array([1], "int32")):
        exact = adapter.d2l.SyntheticRegressionData(column, b, 0)
        inputs, labels = adapter.to_numpy(exact.X), adapter.to_numpy(exact.y)
        assert_close(labels[:, 0], inputs @ [2, -3.4] + 1, 1e-4)
    assert [len(exact.train_dataloader()), len(exact.val_dataloader())] == [32, 32]


def test_training_examples_are_first_and_shuffled(adapter: Adapter, models: Any) -> None:
    w = adapter.tensor(np.array([1.0], "float32"))
    data = adapter.d2l.SyntheticRegressionData(w, 0, 0.1, 12, 5, 4)
    rows = [*zip(adapter.to_numpy(data.X)[:, 0], adapter.to_numpy(data.y)[:, 0], strict=True)]

    def read(loader: Any) -> list[tuple[float, float]]:
        batches = [[adapter.to_numpy(part)[:, 0] for part in batch] for batch in loader]
        return [pair for X, y in batches for pair in zip(X, y, strict=True)]

    assert read(data.val_dataloader()) == rows[12:]
    orders = [read(data.train_dataloader()) for _ in range(3)]
    assert all(sorted(order) == sorted(rows[:12]) for order in orders)
    assert any(order != rows[:12] for order in orders)


@pytest.mark.parametrize("name", ["LinearRegressionScratch", "LinearRegression"])
def test_linear_regression_matches_gradient_descent(
    adapter: Adapter, models: Any, name: str
) -> None:
    is_scratch = name == "LinearRegressionScratch"
    model = getattr(adapter.d2l, name)(*([3] if is_scratch else []), lr=0.1)
    (w, b), after = models.fit(model, make_data(adapter), 3)
    assert 0 < np.abs(w).max() < 0.06  # near zero
    assert b == [0]
    rate = 0.1 if is_scratch else 0.1 * models.FACTOR
    for got, want in zip(after, descend(w, b, rate, 3), strict=True):
        assert_close(got, want, 1e-5)


def test_sigma_is_standard_deviation_of_initial_weights(adapter: Adapter, models: Any) -> None:
    model = adapter.d2l.LinearRegressionScratch(500, 0.0, sigma=2.0)
    data = adapter.build_data_module(
        adapter.d2l, adapter.tensor(np.zeros((2, 500), "float32")), adapter.tensor(Y[:2])
    )
    data.train_batch = lambda: (adapter.tensor(np.zeros((2, 500), "float32")),)
    (w, _), _ = models.fit(model, data, 1)
    assert w.std() == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize("name", ["LinearRegressionScratch", "LinearRegression"])
def test_loss_accepts_labels_of_other_shape(adapter: Adapter, models: Any, name: str) -> None:
    if not hasattr(adapter.d2l, "linreg"):
        pytest.skip("Flax's loss takes a state")
    is_scratch = name == "LinearRegressionScratch"
    model = getattr(adapter.d2l, name)(*([3] if is_scratch else []), lr=0.1)
    loss = model.loss(adapter.tensor(X[:, :1]), adapter.tensor(Y[:, 0].copy()))
    factor = 1 if is_scratch else models.FACTOR
    want = ((X[:, 0].astype("float64") - Y[:, 0]) ** 2).mean() / 2 * factor
    assert float(adapter.to_numpy(loss)) == pytest.approx(want, rel=1e-5)


# Classification


def test_softmax_regression_matches_formula(adapter: Adapter, models: Any) -> None:
    model = adapter.d2l.SoftmaxRegression(num_outputs=3, lr=0.1)
    got = models.predict(model, IMAGES)
    ((w, b),) = models.layer_weights(model)
    assert_close(got, flatten(adapter, IMAGES).astype("float64") @ w + b, 1e-5)


def test_lenet_matches_formula(adapter: Adapter, models: Any) -> None:
    images = RNG.normal(size=(2, 1, 28, 28)).astype("float32")
    model = adapter.d2l.LeNet(num_classes=7)
    got = models.predict(model, images)
    (w1, b1), (w2, b2), *dense = models.layer_weights(model)
    H = average_pool(sigmoid(convolve(images, w1, b1, padding=2)))
    H = flatten(adapter, average_pool(sigmoid(convolve(H, w2, b2))))
    for number, (w, b) in enumerate(dense):
        H = (H if number == 0 else sigmoid(H)) @ w + b
    assert [w.shape[-1] for w, _ in dense] == [120, 84, 7]
    assert got.shape == (2, 7)
    assert_close(got, H, 1e-4)


def normalize(H: Any, models: Any) -> Any:
    """Normalize by the batch's statistics."""
    mean, variance = (f(H, axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.var))
    return (H - mean) / np.sqrt(variance + models.BN_EPSILON)


@pytest.mark.parametrize(("channels", "others"), [(4, ()), (6, (True, 2))])
def test_residual_block_matches_formula(
    adapter: Adapter, models: Any, channels: int, others: tuple[Any, ...]
) -> None:
    block = adapter.d2l.Residual(channels, *others)
    got = models.predict(block, IMAGES, training=True)
    strides = others[1] if others else 1
    first, second, *third = models.layer_weights(block)
    assert len(third) == bool(others)
    H = np.maximum(normalize(convolve(IMAGES, *first, strides, 1), models), 0)
    H = normalize(convolve(H, *second, 1, 1), models)
    shortcut = convolve(IMAGES, *third[0], strides) if third else IMAGES
    assert_close(got, np.maximum(H + shortcut, 0), 1e-3)


@pytest.mark.parametrize(
    ("groups", "bot_mul", "use_1x1conv", "strides"),
    [(2, 1, False, 1), (1, 0.5, True, 2)],
)
def test_resnext_block_matches_formula(
    adapter: Adapter, models: Any, groups: int, bot_mul: float, use_1x1conv: bool, strides: int
) -> None:
    block = adapter.d2l.ResNeXtBlock(4, groups, bot_mul, use_1x1conv, strides)
    got = models.predict(block, IMAGES, training=True)
    layers = models.layer_weights(block)
    assert len(layers) == 3 + use_1x1conv
    channels = round(4 * bot_mul)
    assert layers[1][0].shape == (channels, groups, 3, 3)
    H = np.maximum(normalize(convolve(IMAGES, *layers[0]), models), 0)
    H = normalize(convolve(H, *layers[1], strides, 1, channels // groups), models)
    H = normalize(convolve(np.maximum(H, 0), *layers[2]), models)
    shortcut = normalize(convolve(IMAGES, *layers[3], strides), models) if use_1x1conv else IMAGES
    assert_close(got, np.maximum(H + shortcut, 0), 1e-3)


def test_init_cnn_skips_layers_without_sizes(adapter: Adapter) -> None:
    if not hasattr(adapter.d2l, "init_cnn"):
        pytest.skip("layers get their initializers as arguments in this framework")
    from torch import nn

    net = nn.Sequential(nn.LazyConv2d(8, 3), nn.Conv2d(6, 40, 5), nn.Linear(30, 50))
    nn.init.zeros_(net[1].weight)
    nn.init.ones_(net[1].bias)
    net.apply(adapter.d2l.init_cnn)
    for layer, fan_sum in (net[1], 25 * (6 + 40)), (net[2], 30 + 50):
        bound = np.sqrt(6 / fan_sum)
        assert 0.95 * bound < np.abs(adapter.to_numpy(layer.weight)).max() <= bound
    assert (adapter.to_numpy(net[1].bias) == 1).all()


def test_nn_module_is_base_of_module(adapter: Adapter, models: Any) -> None:
    assert issubclass(adapter.d2l.Module, adapter.d2l.nn_Module)
    assert adapter.d2l.nn_Module is not adapter.d2l.Module


def test_check_len_accepts_right_length(adapter: Adapter) -> None:
    for a in ([], (1, 2), adapter.tensor(X)):
        assert adapter.d2l.check_len(a, len(a)) is None


# Adversarial networks

W_G, B_G = RNG.normal(size=(2, 3)).astype("float32"), np.array([0.1, 0.2, 0.3], "float32")
W_D, B_D = RNG.normal(size=(3, 1)).astype("float32"), np.array([-0.2], "float32")
REAL = X[:6]
NOISE = RNG.normal(size=(6, 2)).astype("float32")


@pytest.fixture
def networks(adapter: Adapter, models: Any) -> tuple[Any, Any]:
    if not hasattr(models, "dense"):
        adapter.assert_missing("update_D")
        pytest.skip("D2L has no such chapter in this framework")
    return models.dense(W_D, B_D), models.dense(W_G, B_G)


def compute_weights(adapter: Adapter, net: Any, inputs: int) -> tuple[Any, Any]:
    probe = np.concatenate([np.eye(inputs, dtype="float32"), np.zeros((1, inputs), "float32")])
    outputs = adapter.to_numpy(net(adapter.tensor(probe))).astype("float64")
    return outputs[:-1] - outputs[-1], outputs[-1]


def step_factor(models: Any) -> float:
    """Return a factor for the learning rate, since Gluon's trainer divides by the batch size."""
    return 1 / len(REAL) if "mxnet" in models.__name__ else 1


def test_update_d_matches_gradient_step(adapter: Adapter, models: Any, networks: Any) -> None:
    net_D, net_G = networks
    batch = adapter.tensor(REAL), adapter.tensor(NOISE)
    got = adapter.d2l.update_D(*batch, net_D, net_G, models.loss, models.optimizer(net_D, 0.5))
    generated = NOISE.astype("float64") @ W_G + B_G
    real, fake = REAL @ W_D + B_D, generated @ W_D + B_D
    want = (np.log1p(np.exp(-real)).sum() + np.log1p(np.exp(fake)).sum()) / 2
    assert float(adapter.to_numpy(got)) == pytest.approx(want, rel=1e-5)
    slopes = (sigmoid(real) - 1) / 2, sigmoid(fake) / 2
    rate = 0.5 * step_factor(models)
    w, b = compute_weights(adapter, net_D, 3)
    assert_close(w, W_D - rate * (REAL.T @ slopes[0] + generated.T @ slopes[1]), 1e-4)
    assert_close(b, B_D - rate * (slopes[0] + slopes[1]).sum(), 1e-4)
    for after, before in zip(compute_weights(adapter, net_G, 2), (W_G, B_G), strict=True):
        assert_close(after, before, 1e-6)


def test_update_g_matches_gradient_step(adapter: Adapter, models: Any, networks: Any) -> None:
    net_D, net_G = networks
    optimizer = models.optimizer(net_G, 0.5)
    got = adapter.d2l.update_G(adapter.tensor(NOISE), net_D, net_G, models.loss, optimizer)
    fake = (NOISE.astype("float64") @ W_G + B_G) @ W_D + B_D
    assert float(adapter.to_numpy(got)) == pytest.approx(np.log1p(np.exp(-fake)).sum(), rel=1e-5)
    slope = (sigmoid(fake) - 1) @ W_D.T
    rate = 0.5 * step_factor(models)
    w, b = compute_weights(adapter, net_G, 2)
    assert_close(w, W_G - rate * NOISE.T @ slope, 1e-4)
    assert_close(b, B_G - rate * slope.sum(axis=0), 1e-4)
    for after, before in zip(compute_weights(adapter, net_D, 3), (W_D, B_D), strict=True):
        assert_close(after, before, 1e-6)
