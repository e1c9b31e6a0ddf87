"""Devices, by the names that ``paddle.set_device``, ``Layer.to`` and ``Tensor.to`` take."""

import paddle

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> str:
    """The CPU."""
    return "cpu"


def gpu(i: int = 0) -> str:
    """The ``i``-th GPU, from 0, whether or not it is there. Raises ValueError if negative."""
    return f"gpu:{checks.gpu_index(i)}"


def num_gpus() -> int:
    """How many GPUs can be used; 0 where Paddle is built without them."""
    return paddle.device.cuda.device_count()


def try_gpu(i: int = 0) -> str:
    """The ``i``-th GPU if it is there, else the CPU. Raises ValueError if negative."""
    device = gpu(i)
    return device if i < num_gpus() else cpu()


def try_all_gpus() -> list[str]:
    """Every GPU there is, or the CPU alone."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
