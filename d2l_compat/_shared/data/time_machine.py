"""*The Time Machine* by H. G. Wells (1895), a short novel, as sequences of characters for a language model.

Two generations of D2L prepare it a little differently: ``TimeMachine`` (1.0) and ``load_data_time_machine`` (0.17).
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance, fault, format_value, integer, size
from d2l_compat._shared.data.hub import locate
from d2l_compat._shared.data.text import Vocab, tokenize
from d2l_compat._shared.training import DataModule

Numbers = NDArray[np.int64]
Pair = tuple[Any, Any]  # tokens (batch, steps), and at each place the token that comes next


def read(root: str | Path = "../data") -> str:
    """The novel's text."""
    return Path(locate("time_machine", root)).read_text(encoding="utf-8")


def letters(text: str) -> str:
    """Its letters in lower case; whatever stands between two of them is one blank."""
    return re.sub("[^A-Za-z]+", " ", text).lower()


def read_time_machine() -> list[str]:
    """The novel's lines: letters in lower case, and blanks. Raises what :func:`download` does."""
    return [letters(line).strip() for line in read().splitlines()]


def load_corpus_time_machine(max_tokens: int = -1) -> tuple[list[int], Any]:
    """The novel as a list of numbers of characters, the first ``max_tokens`` or all; and their vocabulary.

    Raises TypeError where ``max_tokens`` is no integer, and what :func:`download` does.
    """
    max_tokens = integer("max_tokens", max_tokens)
    lines = tokenize(read_time_machine(), "char")
    vocab = Vocab(lines)
    corpus = [number for line in lines for number in vocab[line]]
    return corpus[:max_tokens] if max_tokens > 0 else corpus, vocab


def random_batches(
    corpus: Sequence[int], batch_size: int, num_steps: int, tensor: Callable[[Any], Any]
) -> Iterator[Pair]:
    """Sequences that do not overlap, in any order."""
    tokens = _checked(corpus, batch_size, num_steps)
    tokens = tokens[random.randint(0, num_steps - 1) :]
    starts = list(range(0, (len(tokens) - 1) // num_steps * num_steps, num_steps))
    random.shuffle(starts)
    full = len(starts) // batch_size * batch_size  # batches that are not full are left out
    rows = np.reshape(starts[:full], (-1, batch_size, 1)).astype(int) + np.arange(num_steps)
    return ((tensor(tokens[each]), tensor(tokens[each + 1])) for each in rows)


def sequential_batches(
    corpus: Sequence[int], batch_size: int, num_steps: int, tensor: Callable[[Any], Any]
) -> Iterator[Pair]:
    """Each example goes on in the next batch where it stopped in this one."""
    tokens = _checked(corpus, batch_size, num_steps)
    tokens = tokens[random.randint(0, num_steps) :]
    length = max(0, len(tokens) - 1) // batch_size
    X, Y = (tokens[i : i + batch_size * length].reshape(batch_size, length) for i in (0, 1))
    starts = range(0, length // num_steps * num_steps, num_steps)
    return ((tensor(X[:, i : i + num_steps]), tensor(Y[:, i : i + num_steps])) for i in starts)


def _checked(corpus: Sequence[int], batch_size: int, num_steps: int) -> Numbers:
    need = "a list of numbers of tokens"
    for what, value in ("batch_size", batch_size), ("num_steps", num_steps):
        size(what, value)
    check_instance("corpus", corpus, (list, tuple, range, np.ndarray), need)
    tokens = np.asarray(corpus)
    if tokens.ndim != 1 or (tokens.size and tokens.dtype.kind not in "iu"):
        raise TypeError(fault("corpus", f"shape {tokens.shape}, dtype {tokens.dtype}", need))
    return tokens.astype(np.int64)


class SeqDataLoader:
    """Gives batches of the novel, again and again: see :func:`load_data_time_machine`."""

    tensor: Callable[[Any], Any]  # the face's

    def __init__(
        self, batch_size: int, num_steps: int, use_random_iter: bool, max_tokens: int
    ) -> None:
        """Raises TypeError or ValueError for sizes below 1, and what :func:`download` does."""
        self.batch_size, self.num_steps = (
            size("batch_size", batch_size),
            size("num_steps", num_steps),
        )
        check_instance("use_random_iter", use_random_iter, (bool, int), "True or False")
        self.use_random_iter = use_random_iter
        self.corpus, self.vocab = load_corpus_time_machine(max_tokens)

    def __iter__(self) -> Iterator[Pair]:
        batches = random_batches if self.use_random_iter else sequential_batches
        return batches(self.corpus, self.batch_size, self.num_steps, self.tensor)


class TimeMachine(DataModule):
    """D2L 1.0's data module of this name; each face makes the tensors and the batches."""

    num_steps: int
    num_train: int
    num_val: int
    X: Any
    Y: Any

    def build(self, raw_text: str, vocab: Any = None) -> tuple[list[int], Any]:
        """A text as a list of numbers of characters, and the vocabulary: ``vocab``, or its own."""
        check_instance("raw_text", raw_text, str, "a text, a string")
        tokens = self._tokenize(self._preprocess(raw_text))
        vocab = Vocab(tokens) if vocab is None else vocab
        return vocab[tokens], vocab

    def get_dataloader(self, train: bool) -> Any:
        """Batches of the first ``num_train`` sequences, or of the next ``num_val``."""
        start, count = (0, self.num_train) if train else (self.num_train, self.num_val)
        return self.get_tensorloader([self.X, self.Y], train, slice(start, start + count))

    def _download(self) -> str:
        return read(self.root)

    def _preprocess(self, text: str) -> str:
        return letters(text)

    def _tokenize(self, text: str) -> list[str]:
        return list(text)

    def _sequences(self) -> tuple[Numbers, Numbers]:
        """All sequences of ``num_steps`` tokens, one from each place on; and for each token the next."""
        for what in "batch_size", "num_steps", "num_train", "num_val":
            size(what, getattr(self, what))
        corpus, self.vocab = self.build(self._download())
        if len(corpus) <= self.num_steps:
            need = f"a size below {len(corpus)}, the number of tokens that there are"
            raise ValueError(fault("num_steps", format_value(self.num_steps), need))
        windows = np.lib.stride_tricks.sliding_window_view(
            np.array(corpus, np.int64), self.num_steps + 1
        )
        return windows[:, :-1], windows[:, 1:]
