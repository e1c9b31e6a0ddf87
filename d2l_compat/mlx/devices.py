"""Devices: the CPU, and GPUs, Apple's or NVIDIA's, whichever MLX is built for.

To MLX a device is where something is computed: arrays lie in memory that all devices share.
"""

import mlx.core as mx

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> mx.Device:
    """The CPU."""
    return mx.Device(mx.cpu)


def gpu(i: int = 0) -> mx.Device:
    """The ``i``-th GPU, from 0, whether or not it is there. Raises ValueError if negative."""
    return mx.Device(mx.gpu, checks.gpu_index(i))


def num_gpus() -> int:
    """How many GPUs can be used."""
    return mx.device_count(mx.gpu)


def try_gpu(i: int = 0) -> mx.Device:
    """The ``i``-th GPU if it is there, else the CPU. Raises ValueError if negative."""
    device = gpu(i)
    return device if i < num_gpus() else cpu()


def try_all_gpus() -> list[mx.Device]:
    """Every GPU there is, or the CPU alone."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
