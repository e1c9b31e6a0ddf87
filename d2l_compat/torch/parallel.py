"""Training on one or several devices, as in D2L's chapters on computer vision and on multiple GPUs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from d2l_compat._shared import parallel as shared
from d2l_compat._shared.checks import check_callable, check_instance, check_methods
from d2l_compat._shared.classification import yield_test_batches
from d2l_compat.common import accuracy
from d2l_compat.torch._arrays import arrays
from d2l_compat.torch.classification import evaluate_accuracy_gpu
from d2l_compat.torch.devices import try_all_gpus

__all__ = ["split_batch", "train_batch_ch13", "train_ch13"]


def split_batch(
    X: Tensor, y: Tensor, devices: Sequence[Any]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Split inputs and labels into a part for each device, in order; the last parts may be smaller.

    Raises TypeError or ValueError if inputs and labels differ in number, or there are no devices.
    """
    devices = shared.check_split(arrays, X, y, devices)

    def split(x: Tensor) -> tuple[Tensor, ...]:
        chunks = x.chunk(len(devices))
        return tuple(part.to(device) for part, device in zip(chunks, devices, strict=False))

    return split(X), split(y)


def train_batch_ch13(
    net: nn.Module,
    X: Any,
    y: Tensor,
    loss: Callable[[Any, Tensor], Tensor],
    trainer: torch.optim.Optimizer,
    devices: Sequence[Any],
) -> tuple[Tensor, float]:
    """Train on one batch; return the sum of its losses and the number of correct predictions.

    ``X`` may be a list of tensors; it goes to the first of ``devices``, from which ``nn.DataParallel`` distributes
    it. ``loss(y_hat, y)`` is one number for each example; gradients are those of the sum. Raises TypeError or
    ValueError if ``net`` is not a layer, ``trainer`` is not an optimizer, or there is no device.
    """
    check_instance("net", net, nn.Module, "a layer")
    check_callable("loss", loss)
    check_methods("trainer", trainer, "an optimizer", "zero_grad", "step")
    device = shared.check_devices(devices)[0]
    X = [x.to(device) for x in X] if isinstance(X, (list, tuple)) else X.to(device)
    y = y.to(device)
    net.train()
    trainer.zero_grad()
    y_hat = net(X)
    total = loss(y_hat, y).sum()
    total.backward()
    trainer.step()
    return total.detach(), accuracy(y_hat, y)


def train_ch13(
    net: nn.Module,
    train_iter: Any,
    test_iter: Any,
    loss: Callable[[Any, Tensor], Tensor],
    trainer: torch.optim.Optimizer,
    num_epochs: int,
    devices: Sequence[Any] | None = None,
) -> None:
    """Train with :func:`train_batch_ch13` on ``devices``, by default all GPUs, or else the CPU.

    Loss and accuracy are plotted, and printed at the end. Raises TypeError or ValueError if ``net`` is not a layer,
    ``num_epochs`` is below 1, or there is no batch (X, y).
    """
    check_instance("net", net, nn.Module, "a layer")
    devices = shared.check_devices(try_all_gpus() if devices is None else devices)
    net.to(devices[0])
    if len(devices) > 1:
        net = nn.DataParallel(net, devices)
    shared.train_ch13(
        train_iter,
        num_epochs,
        lambda X, y: train_batch_ch13(net, X, y, loss, trainer, devices),
        lambda: evaluate_accuracy_gpu(net, yield_test_batches(test_iter)),
        devices,
    )
