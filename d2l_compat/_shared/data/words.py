"""The Penn Treebank (Marcus et al., 1993) as words and what stands near them, for skip-gram with negative sampling.

What is drawn is drawn by Python's ``random``, as D2L draws it (Mikolov et al., 2013).
"""

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, fault, format_value, integer, size
from d2l_compat._shared.data.files import told
from d2l_compat._shared.data.hub import download_extract
from d2l_compat._shared.data.text import Vocab, check_vocab, count_corpus

Numbers = NDArray[np.int64]
RARE = 10  # a word that occurs less often is <unk>
_DRAWN = 10_000  # noise words at once: one by one would take long


def read_ptb() -> list[list[str]]:
    """The sentences for training, a list of words each. Raises what :func:`download_extract` does."""
    file = Path(download_extract("ptb"), "ptb.train.txt")
    with told("ptb", file, "an archive with that file"):
        text = file.read_text(encoding="utf-8")
    return [line.split() for line in text.split("\n")]


def subsample(sentences: Any, vocab: Any) -> tuple[list[list[str]], Any]:
    """The sentences without ``<unk>``, and with a part of the frequent words; and how often each word was there.

    A word whose share of all words is f stays with probability sqrt(1e-4 / f). Raises TypeError where ``sentences``
    are no lists of words, or ``vocab`` is no vocabulary.
    """
    lines = _lists("sentences", sentences, "words")
    check_vocab(vocab)
    known = {word for word in count_corpus(lines) if vocab[word] != vocab.unk}
    lines = [[word for word in line if word in known] for line in lines]
    counter = count_corpus(lines)
    total = counter.total()
    stays = {word: math.sqrt(1e-4 / count * total) for word, count in counter.items()}
    return [[word for word in line if random.random() < stays[word]] for line in lines], counter


def get_centers_and_contexts(corpus: Any, max_window_size: int) -> tuple[list[Any], list[Any]]:
    """Each word, and those around it in its sentence: 1 to ``max_window_size`` on either side, which is drawn.

    Sentences of one word are left out. Raises TypeError or ValueError where ``corpus`` is no list of lists, or the
    size below 1.
    """
    size("max_window_size", max_window_size)
    centers, contexts = [], []
    for line in map(list, _lists("corpus", corpus, "words")):
        if len(line) > 1:
            for i, word in enumerate(line):
                width = random.randint(1, max_window_size)
                centers.append(word)
                contexts.append(line[max(0, i - width) : i] + line[i + 1 : i + 1 + width])
    return centers, contexts


class RandomGenerator:
    """Draws numbers from 1 to n, as often as their weights say."""

    def __init__(self, sampling_weights: Any) -> None:
        """Raises TypeError or ValueError where these are no n numbers from 0 on, at least one above 0."""
        weights = to_numpy("sampling_weights", sampling_weights).astype("float64")
        need = "a list of finite numbers from 0 on, at least one above 0"
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(fault("sampling_weights", f"shape {weights.shape}", need))
        if not 0 < weights.sum() < math.inf:
            raise ValueError(fault("sampling_weights", f"a sum of {weights.sum()}", need))
        self.population = list(range(1, len(weights) + 1))
        self.sampling_weights = sampling_weights
        self._draws = self._drawn([*accumulate(weights.tolist())])

    def draw(self) -> int:
        """The next number."""
        return next(self._draws)

    def _drawn(self, sums: list[float]) -> Iterator[int]:
        while True:
            yield from random.choices(self.population, cum_weights=sums, k=_DRAWN)


def get_negatives(all_contexts: Any, vocab: Any, counter: Any, K: int) -> list[list[int]]:
    """For each word in a context ``K`` noise words, which are not in it: a list of numbers for each context.

    All words but ``<unk>`` are drawn, by their counts to the power of 0.75. Raises TypeError or ValueError where the
    contexts are no lists, ``counter`` has no counts, ``K`` is below 0, or a context has all words in it.
    """
    contexts = _lists("all_contexts", all_contexts, "numbers of words")
    check_vocab(vocab)
    check_instance("counter", counter, Mapping, "how often each word occurs, as subsample tells it")
    K = integer("K", K, 0)
    weights = [counter.get(word, 0) ** 0.75 for word in vocab.to_tokens([*range(len(vocab))])]
    generator = RandomGenerator(weights)
    words = {number for number, weight in enumerate(weights) if weight}
    return [_noise(context, len(context) * K, words, generator) for context in contexts]


def _noise(context: Any, count: int, words: set[int], generator: RandomGenerator) -> list[int]:
    if count and len(words) <= len(context) and words <= {*context}:
        need = "a word that is not in it, for noise"
        raise ValueError(fault("all_contexts", "a context with all words in it", need))
    found: list[int] = []
    while len(found) < count:
        number = generator.draw() - 1
        if number not in context:
            found.append(number)
    return found


def padded(data: Any) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Examples (center, context, noise words) as arrays: centers (batch, 1), context and noise (batch, longest),
    1 where there is a word and 0 where there is none, 1 where it is of the context."""
    rows = [_row(example) for example in _examples(data)]
    longest = max(len(words) for _, _, words in rows)
    numbers = np.zeros((len(rows), longest), np.int64)
    for place, (_, _, words) in zip(numbers, rows, strict=True):
        place[: len(words)] = words
    centers, in_context, there = (
        np.array(each, np.int64)[:, None]
        for each in zip(*((c, n, len(words)) for c, n, words in rows), strict=True)
    )
    steps = np.arange(longest)
    masks, labels = ((steps < count).astype(np.int64) for count in (there, in_context))
    return centers, numbers, masks, labels


def _examples(data: Any) -> list[Any]:
    need = "examples (center, context, noise words), at least one"
    if not isinstance(data, Iterable) or isinstance(data, (str, bytes)):
        raise TypeError(fault("data", format_value(data), need))
    examples = [*data]
    if not examples:
        raise ValueError(fault("data", "none", need))
    for example in examples:
        is_one = isinstance(example, (tuple, list)) and len(example) == 3
        if not is_one or not all(isinstance(words, (tuple, list)) for words in example[1:]):
            raise TypeError(fault("data", f"an example that is {format_value(example)}", need))
    return examples


def _row(example: Any) -> tuple[int, int, list[int]]:
    center, context, noise = example
    words = [integer("data", number) for number in (center, *context, *noise)]
    return words[0], len(context), words[1:]


def examples(
    batch_size: int, max_window_size: int, num_noise_words: int
) -> tuple[list[tuple[int, list[int], list[int]]], Vocab]:
    """Each word of the Penn Treebank, its context, and as many noise words for each word in that; and the vocabulary."""
    size("batch_size", batch_size)
    size("max_window_size", max_window_size)
    integer("num_noise_words", num_noise_words, 0)
    sentences = read_ptb()
    vocab = Vocab(sentences, RARE)
    fewer, counter = subsample(sentences, vocab)
    corpus = [vocab[line] for line in fewer]
    centers, contexts = get_centers_and_contexts(corpus, max_window_size)
    if not centers:
        raise ValueError(
            fault("ptb", "no two words in one sentence", "an archive with longer ones")
        )
    negatives = get_negatives(contexts, vocab, counter, num_noise_words)
    return [*zip(centers, contexts, negatives, strict=True)], vocab


def _lists(what: str, lines: Any, of: str) -> Any:
    need = f"a list of lists of {of}"
    check_instance(what, lines, (list, tuple), need)
    for line in lines:
        check_instance(what, line, (list, tuple), need)
    return lines
