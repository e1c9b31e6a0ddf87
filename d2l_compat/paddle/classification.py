"""Classification as D2L 0.17 trains it: ``train_ch3`` from scratch, ``train_ch6`` for convolutional networks."""

from collections.abc import Callable
from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.io import DataLoader

from d2l_compat._shared import classification as shared
from d2l_compat._shared.checks import check_callable, check_instance, real
from d2l_compat._shared.data import images
from d2l_compat.common import accuracy
from d2l_compat.paddle.data import FashionMNIST
from d2l_compat.paddle.devices import try_gpu
from d2l_compat.paddle.training import empty_buffers_aside

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
) -> tuple[DataLoader, DataLoader]:
    """Batches of Fashion-MNIST for training, shuffled, and for the test: the pictures of :class:`FashionMNIST`,
    and int64 labels (batch, 1).

    Pictures are ``resize`` pixels wide and high, or (height, width), by default 28. Raises TypeError or ValueError
    for sizes below 1, and what :func:`download` does.
    """
    data = FashionMNIST(batch_size, images.size_of(resize))
    for pictures in (data.train, data.val):
        pictures.labels = pictures.labels[:, None].astype("int64")
    return data.train_dataloader(), data.val_dataloader()


def evaluate_accuracy(net: Callable[[Any], Any], data_iter: Any) -> float:
    """The share of examples in all batches (X, y) that ``net`` predicts right, a layer in evaluation mode.

    Raises TypeError or ValueError where it cannot be called, or there is no batch.
    """
    if isinstance(net, nn.Layer):
        net.eval()
    with paddle.no_grad():
        return shared.mean_accuracy(net, data_iter)


def evaluate_accuracy_gpu(net: Callable[[Any], Any], data_iter: Any, device: Any = None) -> float:
    """The same, on ``device``, by default the layer's; X may be a list of tensors."""
    if device is None and isinstance(net, nn.Layer):
        device = next((parameter.place for parameter in net.parameters()), None)
    check_callable("net", net)

    def there(X: Any) -> Any:
        if device is None:
            return X
        return [x.to(device) for x in X] if isinstance(X, list) else X.to(device)

    if isinstance(net, nn.Layer):
        net.eval()
    with paddle.no_grad():
        return shared.mean_accuracy(lambda X: net(there(X)), data_iter)


def train_epoch_ch3(
    net: Callable[[Any], Tensor],
    train_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    updater: paddle.optimizer.Optimizer | Callable[[int], Any],
) -> tuple[float, float]:
    """Train for one epoch: gives the mean loss, and the share of right predictions.

    ``loss(y_hat, y)`` is one number for each example; ``updater`` an optimizer, or a function that does a step
    for a batch of this size, along the gradients of the losses' sum. Raises TypeError or ValueError where these
    cannot be called, or there is no batch (X, y).
    """
    for what, function in ("net", net), ("loss", loss):
        check_callable(what, function)
    if not isinstance(updater, paddle.optimizer.Optimizer):
        check_callable("updater", updater)
    if isinstance(net, nn.Layer):
        net.train()

    def step(X: Tensor, y: Tensor) -> tuple[Tensor, float]:
        y_hat = net(X)
        losses = loss(y_hat, y)
        if isinstance(updater, paddle.optimizer.Optimizer):
            updater.clear_grad()
            losses.mean().backward()
            updater.step()
        else:
            losses.sum().backward()
            updater(len(X))
        return losses.sum(), accuracy(y_hat, y)

    return shared.train_epoch(train_iter, step)


def train_ch3(
    net: Callable[[Any], Tensor],
    train_iter: Any,
    test_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    num_epochs: int,
    updater: paddle.optimizer.Optimizer | Callable[[int], Any],
) -> None:
    """Train by :func:`train_epoch_ch3`, and draw how loss and accuracy go on, epoch by epoch."""
    shared.train_ch3(
        num_epochs,
        lambda: train_epoch_ch3(net, train_iter, loss, updater),
        lambda: evaluate_accuracy(net, shared.yield_test_batches(test_iter)),
    )


def train_ch6(
    net: nn.Layer,
    train_iter: Any,
    test_iter: Any,
    num_epochs: int,
    lr: float,
    device: str | None = None,
) -> None:
    """Train by stochastic gradient descent and cross-entropy, from Xavier's weights, on ``device``.

    That is by default the first GPU, or the CPU. Loss and accuracy are drawn, and printed in the end. Raises
    TypeError or ValueError where ``net`` is no layer, ``num_epochs`` below 1, or there is no batch (X, y).
    """
    check_instance("net", net, nn.Layer, "a layer")
    device = try_gpu() if device is None else device

    xavier = nn.initializer.XavierUniform()

    def init_weights(layer: nn.Layer) -> None:
        if type(layer) in (nn.Linear, nn.Conv2D):
            xavier(layer.weight)

    lr = real("lr", lr, "a number")
    net.apply(init_weights)
    print("training on", device)
    with empty_buffers_aside(net):
        net.to(device)
    optimizer, loss = paddle.optimizer.SGD(lr, net.parameters()), nn.CrossEntropyLoss()

    def step(X: Tensor, y: Tensor) -> tuple[Tensor, float]:
        net.train()
        optimizer.clear_grad()
        X, y = X.to(device), y.to(device)
        y_hat = net(X)
        mean = loss(y_hat, y)
        mean.backward()
        optimizer.step()
        return mean.detach() * len(X), accuracy(y_hat, y)

    shared.train_ch6(
        train_iter,
        num_epochs,
        step,
        lambda: evaluate_accuracy_gpu(net, shared.yield_test_batches(test_iter)),
        device,
    )
