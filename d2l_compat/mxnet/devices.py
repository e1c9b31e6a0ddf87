"""Devices: the CPU and NVIDIA's GPUs. MXNet calls a device a context."""

from mxnet import Context, npx

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> Context:
    """Return the CPU."""
    return npx.cpu()


def gpu(i: int = 0) -> Context:
    """Return the ``i``-th GPU, counted from 0, even if it does not exist. Raises ValueError if ``i`` is negative."""
    i = checks.gpu_index(i)
    return npx.gpu(i)


def num_gpus() -> int:
    """Count the GPUs that can be used."""
    return npx.num_gpus()


def try_gpu(i: int = 0) -> Context:
    """Return the ``i``-th GPU if it exists, else the CPU. Raises ValueError if ``i`` is negative."""
    device = gpu(i)
    return device if i < num_gpus() else cpu()


def try_all_gpus() -> list[Context]:
    """Return all GPUs, or the CPU if there are none."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
