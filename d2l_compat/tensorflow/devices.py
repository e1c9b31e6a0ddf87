"""Devices, as TensorFlow takes them: ``with d2l.try_gpu(): ...`` places what is computed inside."""

from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> AbstractContextManager[Any]:
    """The CPU."""
    return tf.device("/CPU:0")


def gpu(i: int = 0) -> AbstractContextManager[Any]:
    """The ``i``-th GPU, from 0, whether or not it is there. Raises ValueError if negative."""
    return tf.device(f"/GPU:{checks.gpu_index(i)}")


def num_gpus() -> int:
    """How many GPUs can be used: those that have not been hidden from TensorFlow."""
    # Unlike the list of logical devices, this one does not start the runtime.
    return len(tf.config.get_visible_devices("GPU"))


def try_gpu(i: int = 0) -> AbstractContextManager[Any]:
    """The ``i``-th GPU if it is there, else the CPU. Raises ValueError if negative."""
    return gpu(i) if checks.gpu_index(i) < num_gpus() else cpu()


def try_all_gpus() -> list[AbstractContextManager[Any]]:
    """Every GPU there is, or the CPU alone."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
