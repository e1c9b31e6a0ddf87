"""Multi-head attention of the shim, of upstream's d2l and of the framework, forward and backward.

Every module here has a function ``list_layers(mask)``. It returns functions by name: ``shim``, ``upstream`` (if it can
be imported) and ``own`` (if the framework has such a layer). Each creates a layer and returns a function that runs one
step and waits for its result: self-attention of ``BATCH`` sequences of ``mask.n`` vectors of size ``WIDTH``, with
``HEADS`` heads and no dropout, and the gradients of the output's sum with respect to inputs and weights. Each layer
gets the mask, prepared before the steps, in the fastest form that it accepts. Layers that do not support a mask are
left out. In the row "linear", the shim's layer is ``LinearAttention``.

``list_token_steps(n)`` returns functions as well, for the next token of a text that has n tokens: ``cached`` and
``recomputed`` (causal self-attention of the shim with a cache, and for all n + 1 tokens), and ``own`` if the framework
offers something for a cache. Each step forgets its token, so that the text does not grow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Step = Callable[[], object]
BATCH, WIDTH, HEADS = 4, 512, 8


@dataclass(frozen=True)
class Mask:
    """Which of ``n`` keys each of ``n`` queries sees, as the shim's arguments and in other forms."""

    n: int
    valid_lens: np.ndarray | None = None  # (BATCH,)
    causal: bool = False
    score_bias: np.ndarray | None = None  # (HEADS, n, n)
    window: int | None = None
    is_linear: bool = False

    @property
    def all_lens(self) -> np.ndarray | None:
        """The mask as lengths, the only form that upstream accepts: per query if it is causal; None for a bias."""
        if self.causal:
            return np.tile(np.arange(1, self.n + 1, dtype="int32"), (BATCH, 1))
        return self.valid_lens

    @property
    def key_mask(self) -> np.ndarray | None:
        """True for the keys within ``valid_lens``; shape (BATCH, n)."""
        return None if self.valid_lens is None else np.arange(self.n) < self.valid_lens[:, None]

    @property
    def additive_mask(self) -> np.ndarray | None:
        """Any mask as numbers to add to the scores; broadcasts to (BATCH, HEADS, n, n)."""
        is_visible = self.query_mask if self.causal else self.key_mask
        if is_visible is None:
            return self.score_bias
        mask = np.where(is_visible, 0, -np.inf).astype("float32")
        return mask if self.causal else mask[:, None, None]

    @property
    def query_mask(self) -> np.ndarray:
        """True for the keys that a causal mask and the window let each query see; shape (n, n)."""
        is_visible = np.tri(self.n, dtype=bool)
        if self.window is not None:
            is_visible &= ~np.tri(self.n, k=-self.window, dtype=bool)
        return is_visible


def make_optional_converter(
    make: Callable[[np.ndarray], Any],
) -> Callable[[np.ndarray | None], Any]:
    """Return a converter to the framework's arrays that passes None through."""
    return lambda array: None if array is None else make(array)


def make_inputs(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(BATCH, n, WIDTH)).astype("float32")


def make_text(n: int) -> np.ndarray:
    """Return one sequence of n vectors."""
    return make_inputs(n)[:1]


def make_lengths(n: int) -> np.ndarray:
    """Return a quarter, a half, three quarters, and all of n."""
    return (np.arange(1, BATCH + 1) * n // BATCH).astype("int32")


def make_alibi(n: int) -> np.ndarray:
    """Return ALiBi's bias, which decreases with the distance, at a different rate in each head."""
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype("float32")
    slopes = 2.0 ** -np.arange(1, HEADS + 1, dtype="float32")
    return -slopes[:, None, None] * distance


MASKS: dict[str, Callable[[int], Mask]] = {
    "no mask": Mask,
    "valid_lens": lambda n: Mask(n, valid_lens=make_lengths(n)),
    "causal": lambda n: Mask(n, causal=True),
    "bias": lambda n: Mask(n, score_bias=make_alibi(n)),
    "window": lambda n: Mask(n, causal=True, window=256),
    "linear": lambda n: Mask(n, is_linear=True),
}
