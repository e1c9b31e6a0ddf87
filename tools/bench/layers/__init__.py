"""Multi-head attention of three makers in each framework, forward and backward.

Every module here has ``contenders(mask)``: name to a function that makes the layer, and gives a
function that runs one step and waits for it: self-attention of ``BATCH`` sequences of ``mask.n``
vectors of ``WIDTH`` numbers, in ``HEADS`` heads, without dropout, then the gradients of the output's
sum with respect to input and weights. The names are ``shim``, ``upstream`` (where it can be imported)
and ``own`` (where the framework has such a layer). Each is told of the mask in the fastest way that it
offers, by what is made before the steps; one that offers none is left out (upstream takes no bias).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Step = Callable[[], object]
BATCH, WIDTH, HEADS = 4, 512, 8


@dataclass(frozen=True)
class Mask:
    """What ``n`` queries see of as many keys: as the shim is told, and as others are."""

    n: int
    valid_lens: np.ndarray | None = None  # (BATCH,)
    causal: bool = False
    score_bias: np.ndarray | None = None  # (HEADS, n, n)

    @property
    def lens(self) -> np.ndarray | None:
        """For upstream, which takes lengths alone: where it is causal, each query has its own."""
        if self.causal:
            return np.tile(np.arange(1, self.n + 1, dtype="int32"), (BATCH, 1))
        return self.valid_lens

    @property
    def keys(self) -> np.ndarray | None:
        """True for the keys within ``valid_lens``; shape (BATCH, n)."""
        return None if self.valid_lens is None else np.arange(self.n) < self.valid_lens[:, None]

    @property
    def added(self) -> np.ndarray | None:
        """Whatever it is, as numbers added to the scores; broadcasts to (BATCH, HEADS, n, n)."""
        seen = np.tri(self.n, dtype=bool) if self.causal else self.keys
        if seen is None:
            return self.score_bias
        added = np.where(seen, 0, -np.inf).astype("float32")
        return added if self.causal else added[:, None, None]


def if_any(make: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray | None], Any]:
    """Makes the framework's own of an array, and nothing of None."""
    return lambda array: None if array is None else make(array)


def inputs(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(BATCH, n, WIDTH)).astype("float32")


def lengths(n: int) -> np.ndarray:
    """A quarter, a half, three quarters, and all."""
    return (np.arange(1, BATCH + 1) * n // BATCH).astype("int32")


def alibi(n: int) -> np.ndarray:
    """Less the farther away a key is, in each head at another rate."""
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype("float32")
    slopes = 2.0 ** -np.arange(1, HEADS + 1, dtype="float32")
    return -slopes[:, None, None] * distance


MASKS: dict[str, Callable[[int], Mask]] = {
    "no mask": Mask,
    "valid_lens": lambda n: Mask(n, valid_lens=lengths(n)),
    "causal": lambda n: Mask(n, causal=True),
    "bias": lambda n: Mask(n, score_bias=alibi(n)),
}
