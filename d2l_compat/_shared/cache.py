"""A cache of keys and values, and the sizes and masks of causal attention that reads it.

A cache has a slot for each token that it can hold. Positions are counted from 0 for each example of a batch, so prompts
may have different lengths. The first ``num_sinks`` slots belong to the first positions for good; the others are used
in turn, so that the newest token replaces the oldest.

The functions take NumPy's module, or a framework's that has the same functions, as ``xp``, and integer arrays.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from d2l_compat._shared import checks
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import message

Integers = Any  # an array of integers: NumPy's, or a framework's


@dataclass(frozen=True)
class Slots:
    """How many tokens a cache holds; ``num_sinks`` of them, the first, are never replaced."""

    size: int
    num_sinks: int = 0
    is_rolling: bool = False  # whether new tokens may replace old ones

    def held_positions(self, lengths: Integers, xp: Any = np) -> Integers:
        """Return the position in each slot after ``lengths`` tokens, shape (batch, size); -1 where there is none."""
        position = slot = xp.arange(self.size)
        last = lengths[:, None] - 1
        if self.is_rolling:
            num_rolling = self.size - self.num_sinks
            rolling = slot + num_rolling * ((last - slot) // num_rolling)
            position = xp.where(slot < self.num_sinks, slot, rolling)
        return xp.where(slot <= last, position, -1)

    def targets(self, positions: Integers, new_lengths: Integers, xp: Any = np) -> Integers:
        """Return the slot of each new token, from its position; ``size``, which is no slot, if it is not kept.

        ``new_lengths`` counts the tokens of each text once all of them were appended.
        """
        slot = positions
        is_kept = (positions >= 0) & (positions < self.size)
        if self.is_rolling:
            num_rolling = self.size - self.num_sinks
            is_sink = positions < self.num_sinks
            is_recent = positions >= new_lengths[:, None] - num_rolling
            rolling = self.num_sinks + (positions - self.num_sinks) % num_rolling
            slot = xp.where(is_sink, positions, rolling)
            is_kept = (positions >= 0) & (is_sink | is_recent)
        return xp.where(is_kept, slot, self.size)

    def sources(self, lengths: Integers, new_lengths: Integers, xp: Any = np) -> Integers:
        """Return where each slot's token is, once tokens were appended: an index into old slots and new tokens."""
        held = self.held_positions(new_lengths, xp)
        is_new = held >= lengths[:, None]
        return xp.where(is_new, self.size + held - lengths[:, None], xp.arange(self.size))


def new_positions(
    lengths: Integers, valid_lens: Integers, num_steps: int, xp: Any = np
) -> Integers:
    """Return the positions of new tokens, shape (batch, num_steps); -1 for padding."""
    step = xp.arange(num_steps)
    return xp.where(step < valid_lens[:, None], lengths[:, None] + step, -1)


@dataclass(frozen=True)
class Sizes:
    """The sizes and masks of a causal attention layer, checked."""

    num_hiddens: int
    num_heads: int
    num_kv_heads: int
    window: int | None = None
    num_sinks: int = 0
    rope: bool = False

    @classmethod
    def check(
        cls,
        num_hiddens: int,
        num_heads: int,
        num_kv_heads: int | None,
        window: int | None,
        num_sinks: int,
        rope: bool,
    ) -> "Sizes":
        """Return the sizes; raise ValueError or TypeError unless they are integers that fit together."""
        num_hiddens = checks.size("num_hiddens", num_hiddens)
        num_heads = checks.size("num_heads", num_heads)
        checks.check_heads(num_hiddens, num_heads)
        kv_heads = checks.size("num_kv_heads", num_heads if num_kv_heads is None else num_kv_heads)
        if num_heads % kv_heads:
            got = f"{kv_heads} with num_heads {num_heads}"
            need = "a divisor of num_heads, so that each serves equally many heads of queries"
            raise ValueError(message("num_kv_heads", got, need))
        window = checks.optional_size("window", window)
        num_sinks = checks.integer("num_sinks", num_sinks, 0)
        if num_sinks and window is None:
            raise ValueError(message("num_sinks", f"{num_sinks} without a window", "a window"))
        checks.check_flag("rope", rope)
        if rope and num_hiddens // num_heads % 2:
            got = f"True with {num_hiddens // num_heads} features per head"
            raise ValueError(message("rope", got, "an even number of features per head"))
        return cls(num_hiddens, num_heads, kv_heads, window, num_sinks, rope)

    @property
    def head_size(self) -> int:
        return self.num_hiddens // self.num_heads

    @property
    def kv_size(self) -> int:
        return self.num_kv_heads * self.head_size

    def visible_keys(self, queries: Integers, keys: Integers) -> Integers:
        """Return which keys each query sees, from their positions; shape (batch, queries, keys).

        A query of padding, whose position is -1, sees every key: its result has no meaning, but has to be finite.
        """
        query, key = queries[:, :, None], keys[:, None]
        is_visible = (key >= 0) & (key <= query)
        if self.window is not None:
            is_visible &= (query - key < self.window) | (key < self.num_sinks)
        return is_visible | (query < 0)


def make_slots(max_len: int, window: int | None, num_sinks: int) -> Slots:
    """Return the slots for ``max_len`` tokens, or for a window and the sinks before it."""
    window = checks.optional_size("window", window)
    num_sinks = checks.integer("num_sinks", num_sinks, 0)
    max_len = checks.size("max_len", max_len)
    if window is None:
        return Slots(max_len)
    return Slots(num_sinks + window, num_sinks, is_rolling=True)


def check_append(cache: Any, keys: Any, values: Any, valid_lens: Any, arrays: checks.Arrays) -> Any:
    """Check keys and values for a cache, and a length for each text; return the lengths in a form to be read.

    Whether there is room for them is checked by :func:`check_room`.
    """
    for what, x in (("keys", keys), ("values", values)):
        arrays.check_rank(what, x, ("batch", "kv heads", "steps", "features"))
    batch, num_heads, _, head_size = map(int, cache.keys.shape)
    num_steps = int(keys.shape[2])
    checks.check_steps("keys", keys.shape, num_steps)
    for what, x, steps in (("keys", keys, "steps"), ("values", values, num_steps)):
        shape = tuple(map(int, x.shape))
        if shape != (batch, num_heads, num_steps, head_size):
            need = f"shape ({batch}, {num_heads}, {steps}, {head_size}), to fit the cache"
            raise ValueError(message(what, f"shape {shape}", need))
    arrays.check_floating("cache, keys and values", cache.keys, keys, values)
    return arrays.check_text_lens(valid_lens, batch, num_steps)


def check_room(slots: Slots, new_lengths: Integers) -> None:
    """Check that a cache has room for texts of these lengths."""
    longest = int(new_lengths.max())
    if not slots.is_rolling and longest > slots.size:
        got = f"{longest} tokens"
        raise ValueError(message("cache", got, f"at most {slots.size}; make it larger"))


class KVCache(ABC):
    """Keys and values of the tokens that an attention layer has read, for a batch of texts.

    ``keys`` and ``values``, shape (batch, kv heads, slots, features), are allocated once. ``lengths``, integers of
    shape (batch,), counts the tokens that each text has so far. With a ``window`` there are ``num_sinks`` + ``window``
    slots: the first ``num_sinks`` tokens stay, and each new one replaces the oldest of the others. A layer makes a
    cache that fits with its ``make_cache``. A cache is for generating, not for training: no gradient flows
    through it into earlier calls.
    """

    keys: Any
    values: Any
    arrays: ClassVar[checks.Arrays]  # access to the framework's arrays

    def __init__(
        self,
        batch_size: int,
        num_kv_heads: int,
        head_size: int,
        max_len: int,
        *,
        window: int | None = None,
        num_sinks: int = 0,
        **options: Any,
    ) -> None:
        """Allocate slots for texts of up to ``max_len`` tokens; with a ``window``, texts may have any length.

        ``options``: the arrays' dtype and, if the framework has them, their device. Raises ValueError or TypeError
        for sizes that are not integers of at least 1 (``num_sinks``: of at least 0).
        """
        self.slots = make_slots(max_len, window, num_sinks)
        batch_size = checks.size("batch_size", batch_size)
        num_kv_heads = checks.size("num_kv_heads", num_kv_heads)
        head_size = checks.size("head_size", head_size)
        shape = batch_size, num_kv_heads, self.slots.size, head_size
        self.keys, self.values = (self._zeros(shape, **options) for _ in range(2))
        self.lengths = np.zeros(batch_size, np.int64)

    def reset(self) -> None:
        """Forget all tokens; the arrays are kept."""
        self.lengths = np.zeros_like(self.lengths)

    @property
    def nbytes(self) -> int:
        """The size of keys and values, in bytes."""
        batch, num_heads, size, head_size = map(int, self.keys.shape)
        return 2 * batch * num_heads * size * head_size * self._itemsize()

    def append(self, keys: Any, values: Any, valid_lens: Any = None) -> tuple[Any, Any, np.ndarray]:
        """Add the keys and values of new tokens, shape (batch, kv heads, steps, features).

        Of each text only the first ``valid_lens``, integers of shape (batch,), are real; the others are padding.
        Returns keys, values and their positions, shape (batch, keys), of old and new tokens together: a query finds
        even those that later tokens of its own chunk replace. A position of -1 means that there is no token. Raises
        ValueError or TypeError, and changes nothing, if they do not fit.
        """
        lens = check_append(self, keys, values, valid_lens, self.arrays)
        batch, num_steps = len(self.lengths), int(keys.shape[2])
        lens = np.full(batch, num_steps) if lens is None else to_numpy("valid_lens", lens)
        new_lengths = self.lengths + lens
        check_room(self.slots, new_lengths)
        start, end = int(self.lengths[0]), int(new_lengths[0])
        is_uniform = (self.lengths == start).all() and (lens == num_steps).all()
        if is_uniform and end <= self.slots.size:
            self._write(keys, values, start, end)
            both = self.keys[:, :, :end], self.values[:, :, :end]
            positions = np.broadcast_to(np.arange(end), (batch, end))
        else:
            both = self._concat(self.keys, keys), self._concat(self.values, values)
            held = self.slots.held_positions(self.lengths)
            added = new_positions(self.lengths, lens, num_steps)
            positions = np.concatenate([held, added], axis=1)
            sources = self.slots.sources(self.lengths, new_lengths)
            self.keys, self.values = self._take(both[0], sources), self._take(both[1], sources)
        self.lengths = new_lengths
        return *both, positions

    @abstractmethod
    def _zeros(self, shape: tuple[int, ...], **options: Any) -> Any: ...

    @abstractmethod
    def _itemsize(self) -> int:
        """Return the bytes of a number."""

    @abstractmethod
    def _write(self, keys: Any, values: Any, start: int, end: int) -> None:
        """Write into the slots from ``start`` to ``end``, without gradients."""

    @abstractmethod
    def _concat(self, old: Any, new: Any) -> Any:
        """Join along the axis of slots, without gradients."""

    @abstractmethod
    def _take(self, both: Any, sources: np.ndarray) -> Any:
        """Select along the axis of slots, in each example its own."""


def start_lengths(cache: Any, batch_size: int, sizes: Sizes, kind: type = KVCache) -> Integers:
    """Return how many tokens each text has in a cache, or zeros without one; check that the cache fits the layer.

    A cache without a window has all that a layer with a window needs, since the layer masks the keys that it hides.
    """
    if cache is None:
        return np.zeros(batch_size, np.int64)
    checks.check_instance("cache", cache, kind, "a KVCache")
    batch, num_heads, _, head_size = map(int, cache.keys.shape)
    if batch != batch_size:
        need = f"one for the batch of {batch_size}"
        raise ValueError(message("cache", f"a cache for a batch of {batch}", need))
    if (num_heads, head_size) != (sizes.num_kv_heads, sizes.head_size):
        got = f"a cache for {num_heads} heads of width {head_size}"
        need = f"one for {sizes.num_kv_heads} heads of width {sizes.head_size}"
        raise ValueError(message("cache", got, need))
    slots = cache.slots
    window = slots.size - slots.num_sinks
    if slots.is_rolling and (window, slots.num_sinks) != (sizes.window, sizes.num_sinks):
        got = f"a cache with window {window} and num_sinks {slots.num_sinks}"
        need = f"one with window {sizes.window} and num_sinks {sizes.num_sinks}"
        raise ValueError(message("cache", got, need))
    return cache.lengths
