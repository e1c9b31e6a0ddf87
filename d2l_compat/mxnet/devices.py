"""Devices: the CPU and NVIDIA's GPUs. MXNet calls a device a context."""

from mxnet import Context, npx

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> Context:
    """The CPU."""
    return npx.cpu()


def gpu(i: int = 0) -> Context:
    """The ``i``-th GPU, from 0, whether or not it is there. Raises ValueError if negative."""
    i = checks.gpu_index(i)
    return npx.gpu(i)


def num_gpus() -> int:
    """How many GPUs can be used."""
    return npx.num_gpus()


def try_gpu(i: int = 0) -> Context:
    """The ``i``-th GPU if it is there, else the CPU. Raises ValueError if negative."""
    device = gpu(i)
    return device if i < num_gpus() else cpu()


def try_all_gpus() -> list[Context]:
    """Every GPU there is, or the CPU alone."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
