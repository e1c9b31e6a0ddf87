"""Attention within a window, in blocks, so that its cost grows with the length and not with its square.

Query i of n stands at the key m - n + i, of m keys, and sees the ``window`` keys that end with its own. Queries and keys
are padded in front, to whole blocks. A block is at least as long as the window, so a block of queries needs its own block
of keys and the one before.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_BLOCK_SIZE = 64  # smaller blocks are not faster


@dataclass(frozen=True)
class Blocks:
    """The blocks of queries and keys for a window; ``num_sinks`` keys, the first, are seen by all later queries, too."""

    num_queries: int
    num_keys: int
    window: int
    num_sinks: int = 0

    @property
    def size(self) -> int:
        """Queries in a block."""
        return max(self.window, MIN_BLOCK_SIZE)

    @property
    def count(self) -> int:
        """Blocks of queries; there is one block of keys more."""
        return -(-self.num_queries // self.size)

    @property
    def query_padding(self) -> int:
        """Rows to add before the queries."""
        return self.count * self.size - self.num_queries

    @property
    def key_padding(self) -> int:
        """Rows to add before the keys; if negative, the number of keys in front that no window reaches."""
        return (self.count + 1) * self.size - self.num_keys

    @property
    def query_positions(self) -> NDArray[np.integer]:
        """The key at which each query stands, shape (count, size, 1); negative in the padding of some."""
        index = np.arange(self.count * self.size).reshape(self.count, self.size, 1)
        return index + (self.num_keys - self.count * self.size)

    @property
    def key_positions(self) -> NDArray[np.integer]:
        """The keys of each block, shape (count, 1, num_sinks + 2 * size); negative in the padding."""
        index = np.arange(self.count)[:, None] * self.size + np.arange(2 * self.size)
        sinks = np.broadcast_to(np.arange(self.num_sinks), (self.count, self.num_sinks))
        return np.concatenate([sinks, index - self.key_padding], axis=1)[:, None]

    @property
    def is_visible(self) -> NDArray[np.bool_]:
        """Which keys each query sees, shape (count, size, num_sinks + 2 * size)."""
        keys = self.key_positions
        distances = self.query_positions - keys
        in_window = (distances >= 0) & (distances < self.window) & (keys >= 0)
        in_window[..., : self.num_sinks] = distances[..., : self.num_sinks] >= self.window
        return in_window


def visible_keys(num_queries: int, num_keys: int, window: int) -> NDArray[np.bool_]:
    """Return which keys each query sees, shape (queries, keys)."""
    query = np.arange(num_keys - num_queries, num_keys)[:, None]
    distances = query - np.arange(num_keys)
    return (distances >= 0) & (distances < window)


def choose_blocks(
    num_queries: int, num_keys: int, window: int | None, num_sinks: int = 0
) -> Blocks | None:
    """Return the blocks, or None without a window, or if all keys are hardly more than two blocks of them."""
    if window is None:
        return None
    blocks = Blocks(num_queries, num_keys, window, min(num_sinks, num_keys))
    return None if num_keys <= 2 * blocks.size else blocks


def causal_blocks(num_steps: int, window: int | None, num_sinks: int) -> Blocks | None:
    """Return the blocks of a text, or None if each token sees all that came before it."""
    if window is None or num_steps <= window + num_sinks:
        return None
    return Blocks(num_steps, num_steps, window, num_sinks)
