"""Classification as D2L 0.17 trains it: ``train_ch3`` from scratch, ``train_ch6`` for convolutional networks."""

from collections.abc import Callable
from typing import Any

from mxnet import Context, autograd, gluon, init, np
from mxnet.gluon import nn

from d2l_compat._shared import classification as shared
from d2l_compat._shared.checks import check_callable, check_instance, real
from d2l_compat._shared.data import images
from d2l_compat.common import accuracy, get_dataloader_workers
from d2l_compat.mxnet.data import FashionMNIST
from d2l_compat.mxnet.devices import try_gpu

__all__ = [
    "evaluate_accuracy",
    "evaluate_accuracy_gpu",
    "load_data_fashion_mnist",
    "train_ch3",
    "train_ch6",
    "train_epoch_ch3",
]


def load_data_fashion_mnist(
    batch_size: int, resize: int | tuple[int, int] | None = None
) -> tuple[gluon.data.DataLoader, gluon.data.DataLoader]:
    """Batches of Fashion-MNIST for training, shuffled, and for the test, as :class:`FashionMNIST` has them.

    Pictures are ``resize`` pixels wide and high, or (height, width), by default 28. Raises TypeError or ValueError
    for sizes below 1, and what :func:`download` does.
    """
    data = FashionMNIST(batch_size, images.size_of(resize))
    workers = get_dataloader_workers() if resize else 0  # resizing takes the time

    def loader(pictures: Any, shuffle: bool) -> gluon.data.DataLoader:
        return gluon.data.DataLoader(pictures, batch_size, shuffle=shuffle, num_workers=workers)

    return loader(data.train, True), loader(data.val, False)


def evaluate_accuracy(net: Callable[[Any], Any], data_iter: Any) -> float:
    """The share of examples in all batches (X, y) that ``net`` predicts right.

    Raises TypeError or ValueError where it cannot be called, or there is no batch.
    """
    return shared.mean_accuracy(net, data_iter)


def evaluate_accuracy_gpu(net: Callable[[Any], Any], data_iter: Any, device: Any = None) -> float:
    """The same, on ``device``, by default the block's; X may be a list of arrays."""
    check_callable("net", net)
    if device is None and isinstance(net, gluon.Block):
        device = next((each.list_ctx()[0] for each in net.collect_params().values()), None)

    def there(X: Any) -> Any:
        if device is None:
            return X
        return [x.as_in_ctx(device) for x in X] if isinstance(X, list) else X.as_in_ctx(device)

    return shared.mean_accuracy(lambda X: net(there(X)), data_iter)


def train_epoch_ch3(
    net: Callable[[Any], np.ndarray],
    train_iter: Any,
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    updater: gluon.Trainer | Callable[[int], Any],
) -> tuple[float, float]:
    """Train for one epoch: gives the mean loss, and the share of right predictions.

    ``loss(y_hat, y)`` is one number for each example; ``updater`` a Gluon trainer, or a function that does a step
    for a batch of this size, along the gradients of the losses' sum. Raises TypeError or ValueError where these
    cannot be called, or there is no batch (X, y).
    """
    step_of = updater.step if isinstance(updater, gluon.Trainer) else updater
    for what, function in ("net", net), ("loss", loss), ("updater", step_of):
        check_callable(what, function)

    def step(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
        with autograd.record():
            y_hat = net(X)
            losses = loss(y_hat, y)
        losses.backward()
        step_of(len(X))
        return losses.sum(), accuracy(y_hat, y)

    return shared.train_epoch(train_iter, step)


def train_ch3(
    net: Callable[[Any], np.ndarray],
    train_iter: Any,
    test_iter: Any,
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    num_epochs: int,
    updater: gluon.Trainer | Callable[[int], Any],
) -> None:
    """Train by :func:`train_epoch_ch3`, and draw how loss and accuracy go on, epoch by epoch."""
    shared.train_ch3(
        num_epochs,
        lambda: train_epoch_ch3(net, train_iter, loss, updater),
        lambda: evaluate_accuracy(net, shared.yield_test_batches(test_iter)),
    )


def train_ch6(
    net: nn.Block,
    train_iter: Any,
    test_iter: Any,
    num_epochs: int,
    lr: float,
    device: Context | None = None,
) -> None:
    """Train by stochastic gradient descent and cross-entropy, from Xavier's weights, on ``device``.

    That is by default the first GPU, or the CPU. Loss and accuracy are drawn, and printed in the end. Raises
    TypeError or ValueError where ``net`` is no layer, ``num_epochs`` below 1, or there is no batch (X, y).
    """
    check_instance("net", net, gluon.Block, "a layer")
    device = try_gpu() if device is None else device
    lr = real("lr", lr, "a number")
    net.initialize(init.Xavier(), device, force_reinit=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def step(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
        X, y = X.as_in_ctx(device), y.as_in_ctx(device)
        with autograd.record():
            y_hat = net(X)
            losses = loss(y_hat, y)
        losses.backward()
        trainer.step(len(X))
        return losses.sum(), accuracy(y_hat, y)

    shared.train_ch6(
        train_iter,
        num_epochs,
        step,
        lambda: evaluate_accuracy_gpu(net, shared.yield_test_batches(test_iter)),
        device,
    )
