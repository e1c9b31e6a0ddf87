"""Training of classifiers as in D2L 0.17: ``train_ch3`` from scratch, ``train_ch6`` for convolutional networks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from d2l_compat._shared import classification as shared
from d2l_compat._shared.checks import check_callable, check_instance, real
from d2l_compat._shared.data import images
from d2l_compat.common import accuracy, get_dataloader_workers
from d2l_compat.torch.datasets import FashionMNIST
from d2l_compat.torch.devices import try_gpu
from d2l_compat.torch.models import init_cnn

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
) -> tuple[DataLoader[Any], DataLoader[Any]]:
    """Return Fashion-MNIST in batches as :class:`FashionMNIST` makes them: training batches, shuffled, and test batches.

    Images are ``resize`` pixels wide and high, or (height, width); the default is 28. Raises TypeError or ValueError
    for sizes below 1, and what :func:`download` raises.
    """
    data = FashionMNIST(batch_size, images.image_size(resize))
    workers = get_dataloader_workers() if resize else 0  # resizing is slow

    def make_loader(dataset: Any, shuffle: bool) -> DataLoader[Any]:
        return DataLoader(dataset, batch_size, shuffle=shuffle, num_workers=workers)

    return make_loader(data.train, True), make_loader(data.val, False)


def evaluate_accuracy(net: Callable[[Any], Any], data_iter: Any) -> float:
    """Return the accuracy of ``net`` over all batches (X, y); a layer is put into evaluation mode.

    Raises TypeError or ValueError if ``net`` is not callable, or there is no batch.
    """
    if isinstance(net, nn.Module):
        net.eval()
    with torch.no_grad():
        return shared.mean_accuracy(net, data_iter)


def evaluate_accuracy_gpu(net: Callable[[Any], Any], data_iter: Any, device: Any = None) -> float:
    """Return the accuracy as :func:`evaluate_accuracy` does, on ``device``, by default that of ``net``.

    X may be a list of tensors.
    """
    if device is None and isinstance(net, nn.Module):
        device = next((parameter.device for parameter in net.parameters()), None)
    check_callable("net", net)

    def to_device(X: Any) -> Any:
        return [x.to(device) for x in X] if isinstance(X, list) else X.to(device)

    if isinstance(net, nn.Module):
        net.eval()
    with torch.no_grad():
        return shared.mean_accuracy(lambda X: net(to_device(X)), data_iter)


def train_epoch_ch3(
    net: Callable[[Any], Tensor],
    train_iter: Any,
    loss: Callable[[Tensor, Tensor], Tensor],
    updater: torch.optim.Optimizer | Callable[[int], Any],
) -> tuple[float, float]:
    """Train for one epoch; return the mean loss and the accuracy.

    ``loss(y_hat, y)`` returns one number per example; ``updater`` is an optimizer, or a function that takes the batch
    size and updates the parameters by the gradients of the summed losses. Raises TypeError or ValueError if ``net``,
    ``loss`` or ``updater`` has the wrong type, or there is no batch (X, y).
    """
    for name, function in ("net", net), ("loss", loss):
        check_callable(name, function)
    if not isinstance(updater, torch.optim.Optimizer):
        check_callable("updater", updater)
    if isinstance(net, nn.Module):
        net.train()

    def step(X: Tensor, y: Tensor) -> tuple[Tensor, float]:
        y_hat = net(X)
        losses = loss(y_hat, y)
        if isinstance(updater, torch.optim.Optimizer):
            updater.zero_grad()
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
    updater: torch.optim.Optimizer | Callable[[int], Any],
) -> None:
    """Train with :func:`train_epoch_ch3`, and draw loss and accuracy after every epoch."""
    shared.train_ch3(
        num_epochs,
        lambda: train_epoch_ch3(net, train_iter, loss, updater),
        lambda: evaluate_accuracy(net, shared.yield_test_batches(test_iter)),
    )


def train_ch6(
    net: nn.Module,
    train_iter: Any,
    test_iter: Any,
    num_epochs: int,
    lr: float,
    device: torch.device | None = None,
) -> None:
    """Train with stochastic gradient descent and cross-entropy on ``device``, after Xavier initialization.

    The default device is the first GPU, or the CPU if there is none. Loss and accuracy are plotted, and printed at the
    end. Raises TypeError or ValueError if ``net`` is not a layer, ``num_epochs`` is below 1, or there is no
    batch (X, y).
    """
    check_instance("net", net, nn.Module, "a layer")
    device = try_gpu() if device is None else device
    lr = real("lr", lr, "a number")
    net.apply(init_cnn)
    print("training on", device)
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    loss = nn.CrossEntropyLoss()

    def step(X: Tensor, y: Tensor) -> tuple[Tensor, float]:
        net.train()
        optimizer.zero_grad()
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
