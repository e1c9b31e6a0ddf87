"""Multi-head attention of three makers in each framework, forward and backward.

Every module here has ``contenders(n, valid_lens)``: name to a function that makes the layer, and
gives a function that runs one step and waits for it: self-attention of ``BATCH`` sequences of ``n``
vectors of ``WIDTH`` numbers, in ``HEADS`` heads, without dropout, then the gradients of the output's
sum with respect to input and weights.
``valid_lens`` (BATCH,) or None; the framework's own layer is given the mask they stand for. The names are
``shim``, ``upstream`` (where it can be imported) and ``own`` (where the framework has such a layer).
"""

from collections.abc import Callable

import numpy as np

Step = Callable[[], object]
BATCH, WIDTH, HEADS = 4, 512, 8


def inputs(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(BATCH, n, WIDTH)).astype("float32")


def lengths(n: int) -> np.ndarray:
    """A quarter, a half, three quarters, and all."""
    return (np.arange(1, BATCH + 1) * n // BATCH).astype("int32")


def mask(lens: np.ndarray, n: int) -> np.ndarray:
    """True for the keys that count; shape (BATCH, n)."""
    return np.arange(n) < lens[:, None]
