"""*The Time Machine* by H. G. Wells (1895), a short novel, as sequences of characters for a language model.

D2L 1.0 (``TimeMachine``) and 0.17 (``load_data_time_machine``) prepare it a little differently.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance, format_value, integer, message, size
from d2l_compat._shared.data.hub import locate
from d2l_compat._shared.data.text import Vocab, tokenize
from d2l_compat._shared.training import DataModule

Numbers = NDArray[np.int64]
Pair = tuple[Any, Any]  # tokens (batch, steps), and the next token for each


def read(root: str | Path = "../data") -> str:
    """Return the novel's text."""
    return Path(locate("time_machine", root)).read_text(encoding="utf-8")


def keep_letters(text: str) -> str:
    """Convert letters to lower case, and replace each run of other characters by one space."""
    return re.sub("[^A-Za-z]+", " ", text).lower()


def read_time_machine() -> list[str]:
    """Return the novel's lines in lower-case letters and spaces. Raises what :func:`download` raises."""
    return [keep_letters(line).strip() for line in read().splitlines()]


def load_corpus_time_machine(max_tokens: int = -1) -> tuple[list[int], Any]:
    """Return the novel as a list of character indices, the first ``max_tokens`` or all, and their vocabulary.

    Raises TypeError if ``max_tokens`` is not an integer, and what :func:`download` raises.
    """
    max_tokens = integer("max_tokens", max_tokens)
    lines = tokenize(read_time_machine(), "char")
    vocab = Vocab(lines)
    corpus = [index for line in lines for index in vocab[line]]
    return corpus[:max_tokens] if max_tokens > 0 else corpus, vocab


def random_batches(
    corpus: Sequence[int], batch_size: int, num_steps: int, tensor: Callable[[Any], Any]
) -> Iterator[Pair]:
    """Return batches of non-overlapping sequences in random order."""
    tokens = _check_corpus(corpus, batch_size, num_steps)
    tokens = tokens[random.randint(0, num_steps - 1) :]
    starts = list(range(0, (len(tokens) - 1) // num_steps * num_steps, num_steps))
    random.shuffle(starts)
    num_used = len(starts) // batch_size * batch_size  # only full batches
    indices = np.reshape(starts[:num_used], (-1, batch_size, 1)).astype(int) + np.arange(num_steps)
    return ((tensor(tokens[batch]), tensor(tokens[batch + 1])) for batch in indices)


def sequential_batches(
    corpus: Sequence[int], batch_size: int, num_steps: int, tensor: Callable[[Any], Any]
) -> Iterator[Pair]:
    """Return batches whose sequences continue in the next batch."""
    tokens = _check_corpus(corpus, batch_size, num_steps)
    tokens = tokens[random.randint(0, num_steps) :]
    length = max(0, len(tokens) - 1) // batch_size
    num_tokens = batch_size * length
    X = tokens[:num_tokens].reshape(batch_size, length)
    Y = tokens[1 : num_tokens + 1].reshape(batch_size, length)
    starts = range(0, length // num_steps * num_steps, num_steps)
    return ((tensor(X[:, i : i + num_steps]), tensor(Y[:, i : i + num_steps])) for i in starts)


def _check_corpus(corpus: Sequence[int], batch_size: int, num_steps: int) -> Numbers:
    need = "a list of token indices"
    for what, value in ("batch_size", batch_size), ("num_steps", num_steps):
        size(what, value)
    check_instance("corpus", corpus, (list, tuple, range, np.ndarray), need)
    tokens = np.asarray(corpus)
    if tokens.ndim != 1 or (tokens.size and tokens.dtype.kind not in "iu"):
        raise TypeError(message("corpus", f"shape {tokens.shape}, dtype {tokens.dtype}", need))
    return tokens.astype(np.int64)


class SeqDataLoader:
    """A reusable iterable of batches of the novel: see :func:`load_data_time_machine`."""

    tensor: Callable[[Any], Any]  # the framework's

    def __init__(
        self, batch_size: int, num_steps: int, use_random_iter: bool, max_tokens: int
    ) -> None:
        """Load the novel. Raises TypeError or ValueError for sizes below 1, and what :func:`download` raises."""
        self.batch_size = size("batch_size", batch_size)
        self.num_steps = size("num_steps", num_steps)
        check_instance("use_random_iter", use_random_iter, (bool, int), "True or False")
        self.use_random_iter = use_random_iter
        self.corpus, self.vocab = load_corpus_time_machine(max_tokens)

    def __iter__(self) -> Iterator[Pair]:
        batches = random_batches if self.use_random_iter else sequential_batches
        return batches(self.corpus, self.batch_size, self.num_steps, self.tensor)


class TimeMachine(DataModule):
    """The shared part of D2L 1.0's data module; each framework creates the tensors and the batches."""

    num_steps: int
    num_train: int
    num_val: int
    X: Any
    Y: Any

    def build(self, raw_text: str, vocab: Any = None) -> tuple[list[int], Any]:
        """Return a text as a list of character indices, and the vocabulary: ``vocab``, or its own."""
        check_instance("raw_text", raw_text, str, "a text as a string")
        tokens = self._tokenize(self._preprocess(raw_text))
        vocab = Vocab(tokens) if vocab is None else vocab
        return vocab[tokens], vocab

    def get_dataloader(self, train: bool) -> Any:
        """Return batches of the first ``num_train`` sequences, or of the next ``num_val``."""
        start, count = (0, self.num_train) if train else (self.num_train, self.num_val)
        return self.get_tensorloader([self.X, self.Y], train, slice(start, start + count))

    def _download(self) -> str:
        return read(self.root)

    def _preprocess(self, text: str) -> str:
        return keep_letters(text)

    def _tokenize(self, text: str) -> list[str]:
        return list(text)

    def _sequences(self) -> tuple[Numbers, Numbers]:
        """Return every sequence of ``num_steps`` tokens, one per starting position, and the next token for each."""
        for what in "batch_size", "num_steps", "num_train", "num_val":
            size(what, getattr(self, what))
        corpus, self.vocab = self.build(self._download())
        if len(corpus) <= self.num_steps:
            need = f"a size below {len(corpus)}, the number of tokens"
            raise ValueError(message("num_steps", format_value(self.num_steps), need))
        windows = np.lib.stride_tricks.sliding_window_view(
            np.array(corpus, np.int64), self.num_steps + 1
        )
        return windows[:, :-1], windows[:, 1:]
