"""Devices: the CPU and the GPUs that JAX can use."""

import jax

from d2l_compat._shared import checks

__all__ = ["cpu", "gpu", "num_gpus", "try_all_gpus", "try_gpu"]


def cpu() -> jax.Device:
    """The CPU."""
    return jax.devices("cpu")[0]


def gpu(i: int = 0) -> jax.Device:
    """The ``i``-th GPU, from 0. Raises ValueError if it is not there: JAX knows no other."""
    i, found = checks.gpu_index(i), _gpus()
    if i >= len(found):
        need = f"one of the {len(found)} there are, counted from 0"
        raise ValueError(checks.fault("gpu", i, need))
    return found[i]


def num_gpus() -> int:
    """How many GPUs can be used."""
    return len(_gpus())


def try_gpu(i: int = 0) -> jax.Device:
    """The ``i``-th GPU if it is there, else the CPU. Raises ValueError if negative."""
    return gpu(i) if checks.gpu_index(i) < num_gpus() else cpu()


def try_all_gpus() -> list[jax.Device]:
    """Every GPU there is, or the CPU alone."""
    return _gpus() or [cpu()]


def _gpus() -> list[jax.Device]:
    try:
        return jax.devices("gpu")
    except RuntimeError:  # there is none
        return []
