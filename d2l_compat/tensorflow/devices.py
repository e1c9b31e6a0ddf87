"""Devices as TensorFlow's context managers: ``with d2l.try_gpu(): ...`` runs its body on that device."""

from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> AbstractContextManager[Any]:
    """Return the CPU."""
    return tf.device("/CPU:0")


def gpu(i: int = 0) -> AbstractContextManager[Any]:
    """Return the ``i``-th GPU, counted from 0, even if it does not exist. Raises ValueError if ``i`` is negative."""
    return tf.device(f"/GPU:{checks.gpu_index(i)}")


def num_gpus() -> int:
    """Count the GPUs that can be used: those not hidden from TensorFlow."""
    # Unlike the list of logical devices, this list does not initialize the runtime.
    return len(tf.config.get_visible_devices("GPU"))


def try_gpu(i: int = 0) -> AbstractContextManager[Any]:
    """Return the ``i``-th GPU if it exists, else the CPU. Raises ValueError if ``i`` is negative."""
    return gpu(i) if checks.gpu_index(i) < num_gpus() else cpu()


def try_all_gpus() -> list[AbstractContextManager[Any]]:
    """Return all GPUs, or the CPU if there are none."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
