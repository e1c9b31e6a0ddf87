"""Devices: the CPU, NVIDIA's GPUs (``cuda``) and Apple's (``mps``)."""

import torch

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> torch.device:
    """Return the CPU."""
    return torch.device("cpu")


def gpu(i: int = 0) -> torch.device:
    """Return the ``i``-th GPU, counted from 0, even if it does not exist. Raises ValueError if ``i`` is negative."""
    i = checks.gpu_index(i)
    # An Apple machine has one GPU.
    is_apple = torch.backends.mps.is_available() and not torch.cuda.is_available()
    return torch.device("mps", i) if is_apple else torch.device("cuda", i)


def num_gpus() -> int:
    """Return the number of usable GPUs: NVIDIA's, else 1 on an Apple machine with ``mps``, else 0."""
    return torch.cuda.device_count() or int(torch.backends.mps.is_available())


def try_gpu(i: int = 0) -> torch.device:
    """Return the ``i``-th GPU if it exists, else the CPU. Raises ValueError if ``i`` is negative."""
    device = gpu(i)
    return device if i < num_gpus() else cpu()


def try_all_gpus() -> list[torch.device]:
    """Return all GPUs, or the CPU if there are none."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
