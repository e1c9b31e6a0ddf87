"""Training of classifiers as in D2L 0.17: ``train_ch3`` from scratch, ``train_ch6`` for convolutional networks."""

from collections.abc import Callable
from typing import Any

from mxnet import Context, autograd, gluon, init, np
from mxnet.gluon import nn

from d2l_compat._shared import classification as shared
from d2l_compat._shared.checks import check_callable, check_instance, real
from d2l_compat._shared.data import images
from d2l_compat.common import accuracy, get_dataloader_workers
from d2l_compat.mxnet.datasets import FashionMNIST
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
    """Return Fashion-MNIST in batches as :class:`FashionMNIST` makes them: training batches, shuffled, and test batches.

    Images are ``resize`` pixels wide and high, or (height, width); the default is 28. Raises TypeError or ValueError
    for sizes below 1, and what :func:`download` raises.
    """
    data = FashionMNIST(batch_size, images.image_size(resize))
    workers = get_dataloader_workers() if resize else 0  # only resizing is slow

    def make_loader(dataset: Any, shuffle: bool) -> gluon.data.DataLoader:
        return gluon.data.DataLoader(dataset, batch_size, shuffle=shuffle, num_workers=workers)

    return make_loader(data.train, True), make_loader(data.val, False)


def evaluate_accuracy(net: Callable[[Any], Any], data_iter: Any) -> float:
    """Return the accuracy of ``net`` over all batches (X, y).

    Raises TypeError or ValueError if ``net`` is not callable, or there is no batch.
    """
    return shared.mean_accuracy(net, data_iter)


def evaluate_accuracy_gpu(net: Callable[[Any], Any], data_iter: Any, device: Any = None) -> float:
    """Return the accuracy as :func:`evaluate_accuracy` does, computed on ``device``, by default that of ``net``.

    X may be a list of arrays.
    """
    check_callable("net", net)
    if device is None and isinstance(net, gluon.Block):
        device = next((param.list_ctx()[0] for param in net.collect_params().values()), None)

    def to_device(X: Any) -> Any:
        if device is None:
            return X
        return [x.as_in_ctx(device) for x in X] if isinstance(X, list) else X.as_in_ctx(device)

    return shared.mean_accuracy(lambda X: net(to_device(X)), data_iter)


def train_epoch_ch3(
    net: Callable[[Any], np.ndarray],
    train_iter: Any,
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    updater: gluon.Trainer | Callable[[int], Any],
) -> tuple[float, float]:
    """Train for one epoch; return the mean loss and the accuracy.

    ``loss(y_hat, y)`` returns one number per example. ``updater`` is a Gluon trainer, or a function that takes the
    batch size and updates the parameters by the gradients of the summed losses. Raises TypeError or ValueError if
    ``net``, ``loss`` or ``updater`` has the wrong type, or there is no batch (X, y).
    """
    update = updater.step if isinstance(updater, gluon.Trainer) else updater
    for what, function in ("net", net), ("loss", loss), ("updater", update):
        check_callable(what, function)

    def step(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
        with autograd.record():
            y_hat = net(X)
            losses = loss(y_hat, y)
        losses.backward()
        update(len(X))
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
    """Train with :func:`train_epoch_ch3`, and draw loss and accuracy after every epoch."""
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
    """Train with stochastic gradient descent and cross-entropy on ``device``, after Xavier initialization.

    The default device is the first GPU, or the CPU if there is none. Loss and accuracy are plotted, and printed at the
    end. Raises TypeError or ValueError if ``net`` is not a layer, ``num_epochs`` is below 1, or there is no
    batch (X, y).
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
