"""Training on one or several devices, as in D2L's chapters on computer vision and on multiple GPUs."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import paddle
from paddle import Tensor, nn

from d2l_compat._shared import parallel as shared
from d2l_compat._shared.checks import check_callable, check_instance, check_methods
from d2l_compat._shared.classification import yield_test_batches
from d2l_compat.common import accuracy
from d2l_compat.paddle._arrays import arrays
from d2l_compat.paddle.classification import evaluate_accuracy_gpu
from d2l_compat.paddle.devices import try_all_gpus
from d2l_compat.paddle.training import remove_empty_buffers

__all__ = ["split_batch", "train_batch_ch13", "train_ch13"]


def split_batch(
    X: Tensor, y: Tensor, devices: Sequence[Any]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Split inputs and labels into a part for each device, in order; the last parts may be smaller.

    Raises TypeError or ValueError if inputs and labels differ in number, or there are no devices.
    """
    devices = shared.check_split(arrays, X, y, devices)

    def split(x: Tensor) -> tuple[Tensor, ...]:
        size = max(1, math.ceil(len(x) / len(devices)))
        starts = range(0, len(x), size)
        return tuple(
            x[start : start + size].to(device)
            for start, device in zip(starts, devices, strict=False)
        )

    return split(X), split(y)


def train_batch_ch13(
    net: nn.Layer,
    X: Any,
    y: Tensor,
    loss: Callable[[Any, Tensor], Tensor],
    trainer: paddle.optimizer.Optimizer,
    devices: Sequence[Any],
) -> tuple[Tensor, float]:
    """Train on one batch; return the sum of its losses and the number of correct predictions.

    ``X`` may be a list of tensors. Only the first of ``devices`` is used, since Paddle needs a process for each.
    ``loss(y_hat, y)`` is one number for each example; gradients are those of the sum. Raises TypeError or ValueError if
    ``net`` is not a layer, ``trainer`` is not an optimizer, or there is no device.
    """
    check_instance("net", net, nn.Layer, "a layer")
    check_callable("loss", loss)
    check_methods("trainer", trainer, "an optimizer", "clear_grad", "step")
    device = shared.check_devices(devices)[0]
    X = [x.to(device) for x in X] if isinstance(X, (list, tuple)) else X.to(device)
    y = y.to(device)
    net.train()
    trainer.clear_grad()
    y_hat = net(X)
    total = loss(y_hat, y).sum()
    total.backward()
    trainer.step()
    return total.detach(), accuracy(y_hat, y)


def train_ch13(
    net: nn.Layer,
    train_iter: Any,
    test_iter: Any,
    loss: Callable[[Any, Tensor], Tensor],
    trainer: paddle.optimizer.Optimizer,
    num_epochs: int,
    devices: Sequence[Any] | None = None,
) -> None:
    """Train with :func:`train_batch_ch13` on the first of ``devices``, by default the first GPU, or else the CPU.

    Loss and accuracy are plotted, and printed at the end. Raises TypeError or ValueError if ``net`` is not a layer,
    ``num_epochs`` is below 1, or there is no batch (X, y).
    """
    check_instance("net", net, nn.Layer, "a layer")
    devices = shared.check_devices(try_all_gpus() if devices is None else devices)
    with remove_empty_buffers(net):
        net.to(devices[0])
    shared.train_ch13(
        train_iter,
        num_epochs,
        lambda X, y: train_batch_ch13(net, X, y, loss, trainer, devices),
        lambda: evaluate_accuracy_gpu(net, yield_test_batches(test_iter)),
        devices,
    )
