"""Training on one or several devices, as in D2L's chapters on computer vision and on multiple GPUs."""

from collections.abc import Callable, Sequence
from typing import Any

from mxnet import autograd, gluon, np

from d2l_compat._shared import classification
from d2l_compat._shared import parallel as shared
from d2l_compat._shared.checks import (
    check_callable,
    check_instance,
    check_methods,
    format_value,
    message,
)
from d2l_compat.common import accuracy
from d2l_compat.mxnet._arrays import arrays
from d2l_compat.mxnet.devices import try_all_gpus

__all__ = [
    "evaluate_accuracy_gpus",
    "split_batch",
    "split_batch_multi_inputs",
    "train_batch_ch13",
    "train_ch13",
]
Split = Callable[[Any, np.ndarray, Sequence[Any]], tuple[Sequence[Any], Sequence[np.ndarray]]]


def split_batch(
    X: np.ndarray, y: np.ndarray, devices: Sequence[Any]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Split inputs and labels into a part for each device, in order; sizes of parts may differ by one.

    Raises TypeError or ValueError if inputs and labels differ in number, or there are fewer examples than devices.
    """
    devices = shared.check_split(arrays, X, y, devices)
    return _split(X, devices), _split(y, devices)


def split_batch_multi_inputs(
    X: Sequence[np.ndarray], y: np.ndarray, devices: Sequence[Any]
) -> tuple[list[tuple[np.ndarray, ...]], list[np.ndarray]]:
    """Split several input arrays and the labels as :func:`split_batch` does; each device gets a part of every array."""
    if not isinstance(X, (list, tuple)) or not X:
        raise TypeError(message("X", format_value(X), "a list of arrays, at least one"))
    for x in X:
        devices = shared.check_split(arrays, x, y, devices)
    parts = [_split(x, devices) for x in X]
    return [*zip(*parts, strict=True)], _split(y, devices)


def _split(x: np.ndarray, devices: Sequence[Any]) -> list[np.ndarray]:
    if len(x) < len(devices):
        got = f"{len(x)} examples for {len(devices)} devices"
        raise ValueError(message("X and y", got, "an example for each device"))
    return gluon.utils.split_and_load(x, devices, even_split=False)


def evaluate_accuracy_gpus(net: gluon.Block, data_iter: Any, split_f: Split = split_batch) -> float:
    """Return the accuracy of ``net`` over all batches (X, y), computed on the devices of its parameters.

    Raises TypeError or ValueError if ``net`` is not a layer with parameters, or there is no batch (X, y).
    """
    check_instance("net", net, gluon.Block, "a layer")
    check_callable("split_f", split_f)
    parameters = [*net.collect_params().values()]
    if not parameters:
        raise ValueError(message("net", "no parameters", "a layer that has them on its devices"))
    devices = parameters[0].list_ctx()

    def count_hits(X: Any, y: np.ndarray) -> float:
        parts = zip(*split_f(X, y, devices), strict=True)
        return sum(accuracy(net(X_part), y_part) for X_part, y_part in parts)

    return classification.hit_rate(count_hits, data_iter)


def train_batch_ch13(
    net: gluon.Block,
    features: Any,
    labels: np.ndarray,
    loss: Callable[[Any, np.ndarray], np.ndarray],
    trainer: gluon.Trainer,
    devices: Sequence[Any],
    split_f: Split = split_batch,
) -> tuple[float, float]:
    """Train on one batch; return the sum of its losses and the number of correct predictions.

    ``split_f(features, labels, devices)`` splits the batch; ``loss(y_hat, y)`` is one number for each example.
    Parameters without new gradients do not change. Raises TypeError or ValueError if ``net`` is not a layer,
    ``trainer`` is not a Gluon trainer, or there is no device.
    """
    check_instance("net", net, gluon.Block, "a layer")
    check_callable("loss", loss)
    check_methods("trainer", trainer, "a Gluon trainer", "step")
    check_callable("split_f", split_f)
    X, y = split_f(features, labels, shared.check_devices(devices))
    with autograd.record():
        y_hat = [net(X_part) for X_part in X]
        losses = [loss(y_hat_part, y_part) for y_hat_part, y_part in zip(y_hat, y, strict=True)]
    for device_losses in losses:
        device_losses.backward()
    trainer.step(len(labels), ignore_stale_grad=True)
    total_loss = sum(float(device_losses.sum()) for device_losses in losses)
    return total_loss, sum(map(accuracy, y_hat, y))


def train_ch13(
    net: gluon.Block,
    train_iter: Any,
    test_iter: Any,
    loss: Callable[[Any, np.ndarray], np.ndarray],
    trainer: gluon.Trainer,
    num_epochs: int,
    devices: Sequence[Any] | None = None,
    split_f: Split = split_batch,
) -> None:
    """Train with :func:`train_batch_ch13` on ``devices``, by default all GPUs, or else the CPU.

    ``net`` must be initialized there. Loss and accuracy are plotted, and printed at the end. Raises TypeError or
    ValueError if ``net`` is not a layer, ``num_epochs`` is below 1, or there is no batch (X, y).
    """
    check_instance("net", net, gluon.Block, "a layer")
    devices = shared.check_devices(try_all_gpus() if devices is None else devices)
    shared.train_ch13(
        train_iter,
        num_epochs,
        lambda X, y: train_batch_ch13(net, X, y, loss, trainer, devices, split_f),
        lambda: evaluate_accuracy_gpus(net, classification.yield_test_batches(test_iter), split_f),
        devices,
    )
