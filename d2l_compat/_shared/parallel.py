"""The parts of training on several devices that are the same in every framework."""

from collections.abc import Callable, Sequence
from typing import Any

from d2l_compat._shared import classification
from d2l_compat._shared.checks import Arrays, format_value, message
from d2l_compat._shared.classification import Step


def check_devices(devices: Any) -> list[Any]:
    """Return the devices as a list of at least one."""
    need = "a list of devices, at least one"
    if not isinstance(devices, Sequence) or isinstance(devices, (str, bytes)):
        raise TypeError(message("devices", format_value(devices), need))
    if not devices:
        raise ValueError(message("devices", "none", need))
    return list(devices)


def check_split(arrays: Arrays, X: Any, y: Any, devices: Any) -> list[Any]:
    """Check arrays of equally many examples, and return the devices to split them among."""
    for what, array in ("X", X), ("y", y):
        arrays.check_instance(what, array)
        if not len(array.shape):
            raise ValueError(message(what, "shape ()", "shape (examples, ...)"))
    check_lengths(len(X), len(y))
    return check_devices(devices)


def check_lengths(inputs: int, labels: int) -> None:
    if inputs != labels:
        got = f"{labels} labels for {inputs} inputs"
        raise ValueError(message("y", got, "a label for each input"))


def train_ch13(
    train_iter: Any,
    num_epochs: int,
    step: Step,
    evaluate: Callable[[], float],
    devices: list[Any],
) -> None:
    """Train as ``train_ch6`` does, with a y axis from 0 to 1."""
    classification.train_ch6(train_iter, num_epochs, step, evaluate, devices, [0, 1])
