"""Sizes, decay and state of causal linear attention, which is the same in every framework.

The formulas are those of Katharopoulos et al. (2020), "Transformers are RNNs"; the decay is that of Sun et al. (2023),
"Retentive Network".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks
from d2l_compat._shared.checks import message

Decay = float | Sequence[float]
CHUNK_SIZE = 128


@dataclass(frozen=True)
class LinearSizes:
    """The sizes of a linear attention layer and the decay of each head, checked."""

    num_hiddens: int
    num_heads: int
    decay: tuple[float, ...]

    @classmethod
    def check(cls, num_hiddens: int, num_heads: int, decay: Decay) -> "LinearSizes":
        """Return the sizes; raise ValueError or TypeError unless they fit together."""
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        num_heads = checks.size("num_heads", num_heads)
        checks.check_heads(num_hiddens, num_heads)
        need = "a number above 0 and at most 1"
        numbers: list[Any] = [*decay] if isinstance(decay, (list, tuple)) else [decay] * num_heads
        if len(numbers) != num_heads:
            got = f"{len(numbers)} numbers"
            raise ValueError(message("decay", got, f"one number, or {num_heads}, one per head"))
        for number in numbers:
            if not 0 < checks.real("decay", number, need) <= 1:
                raise ValueError(message("decay", number, need))
        return cls(num_hiddens, num_heads, tuple(map(float, numbers)))

    @property
    def head_size(self) -> int:
        return self.num_hiddens // self.num_heads

    def chunk_lengths(self, num_steps: int, chunk_size: Any) -> list[int]:
        """Return how many steps each chunk has; raise ValueError or TypeError unless the size is one, or None."""
        size = checks.optional_size("chunk_size", chunk_size) or num_steps
        return [min(size, num_steps - start) for start in range(0, num_steps, size)]

    def powers(self, num_steps: int) -> "DecayPowers":
        """Return the powers of each head's decay that a chunk of this many steps needs."""
        decay = np.array(self.decay)[:, None]
        step = np.arange(num_steps)
        distance = step[:, None] - step
        within = np.where(distance >= 0, decay[..., None] ** distance.clip(0), 0)
        return DecayPowers(within, decay ** (step + 1), decay ** step[::-1], decay**num_steps)


@dataclass(frozen=True)
class DecayPowers:
    """Powers of the decay, by the number of steps between; float64."""

    within: NDArray[
        np.float64
    ]  # from key to query in the chunk, 0 for later keys; (heads, steps, steps)
    from_state: NDArray[np.float64]  # from the state before the chunk to each query; (heads, steps)
    to_state: NDArray[np.float64]  # from each key to the state after the chunk; (heads, steps)
    whole: NDArray[np.float64]  # over the whole chunk; (heads, 1)


def smallest_total(tiny: float) -> float:
    """Return the sum below which weights count as zero; ``tiny`` is the smallest normal number of the dtype.

    The gradient divides by the sum: the root keeps it finite, but in float16 ordinary sums are below the root.
    """
    return max(float(tiny), min(float(tiny) ** 0.5, 1e-15))


class LinearState:
    """What a linear attention layer keeps of the tokens that it has read; its size does not depend on their number.

    ``kv``, shape (batch, heads, features, features), is the sum of the products of keys and values, and ``k``, shape
    (batch, heads, features), the sum of the keys, both with decay. A layer makes a state with its ``make_state``. It
    is for generating, not for training: no gradient flows through it into earlier calls.
    """

    def __init__(self, kv: Any, k: Any) -> None:
        """Start from zeros of these shapes."""
        self._zeros = self.kv, self.k = kv, k

    def reset(self) -> None:
        """Forget all tokens."""
        self.kv, self.k = self._zeros

    @property
    def nbytes(self) -> int:
        """The size of both sums, in bytes."""
        return int(self.kv.nbytes + self.k.nbytes)


def check_state(state: Any, batch_size: int, sizes: LinearSizes, kind: type = LinearState) -> None:
    """Check that a state fits the layer and the batch."""
    checks.check_instance("state", state, kind, "a LinearState")
    batch, num_heads, _, head_size = map(int, state.kv.shape)
    if batch != batch_size:
        need = f"one for the batch of {batch_size}"
        raise ValueError(message("state", f"a state for a batch of {batch}", need))
    if (num_heads, head_size) != (sizes.num_heads, sizes.head_size):
        got = f"a state for {num_heads} heads of width {head_size}"
        need = f"one for {sizes.num_heads} heads of width {sizes.head_size}"
        raise ValueError(message("state", got, need))
