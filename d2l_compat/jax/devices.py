"""Devices: the CPU and the GPUs that JAX can use."""

import jax

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> jax.Device:
    """Return the CPU."""
    return jax.devices("cpu")[0]


def gpu(i: int = 0) -> jax.Device:
    """Return the ``i``-th GPU, counted from 0.

    Raises ValueError if it does not exist: JAX has no object for a missing device.
    """
    i = checks.gpu_index(i)
    gpus = _list_gpus()
    if i >= len(gpus):
        need = f"one of the {len(gpus)} available GPUs, counted from 0"
        raise ValueError(checks.message("gpu", i, need))
    return gpus[i]


def num_gpus() -> int:
    """Return the number of available GPUs."""
    return len(_list_gpus())


def try_gpu(i: int = 0) -> jax.Device:
    """Return the ``i``-th GPU if it exists, else the CPU. Raises ValueError if ``i`` is negative."""
    return gpu(i) if checks.gpu_index(i) < num_gpus() else cpu()


def try_all_gpus() -> list[jax.Device]:
    """Return all GPUs, or the CPU if there are none."""
    return _list_gpus() or [cpu()]


def _list_gpus() -> list[jax.Device]:
    try:
        return jax.devices("gpu")
    except RuntimeError:  # no GPU
        return []
