"""Devices, under the names that ``paddle.set_device``, ``Layer.to`` and ``Tensor.to`` take."""

import paddle

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> str:
    """Return the CPU."""
    return "cpu"


def gpu(i: int = 0) -> str:
    """Return the ``i``-th GPU, counted from 0, even if it does not exist. Raises ValueError if ``i`` is negative."""
    return f"gpu:{checks.gpu_index(i)}"


def num_gpus() -> int:
    """Return the number of usable GPUs; 0 if Paddle is built without GPU support."""
    return paddle.device.cuda.device_count()


def try_gpu(i: int = 0) -> str:
    """Return the ``i``-th GPU if it exists, else the CPU. Raises ValueError if ``i`` is negative."""
    device = gpu(i)
    return device if i < num_gpus() else cpu()


def try_all_gpus() -> list[str]:
    """Return all GPUs, or the CPU if there are none."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
