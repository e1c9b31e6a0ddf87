"""Devices: the CPU, and Apple's or NVIDIA's GPUs, whichever MLX is built for.

In MLX a device is where an operation runs; arrays are in memory that all devices share.
"""

import mlx.core as mx

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> mx.Device:
    """Return the CPU."""
    return mx.Device(mx.cpu)


def gpu(i: int = 0) -> mx.Device:
    """Return the ``i``-th GPU, counted from 0, even if it does not exist.

    Raises ValueError if ``i`` is negative.
    """
    return mx.Device(mx.gpu, checks.gpu_index(i))


def num_gpus() -> int:
    """Return the number of available GPUs."""
    return mx.device_count(mx.gpu)


def try_gpu(i: int = 0) -> mx.Device:
    """Return the ``i``-th GPU if it exists, else the CPU. Raises ValueError if ``i`` is negative."""
    device = gpu(i)
    return device if i < num_gpus() else cpu()


def try_all_gpus() -> list[mx.Device]:
    """Return all GPUs, or the CPU if there are none."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
