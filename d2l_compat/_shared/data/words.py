"""The Penn Treebank (Marcus et al., 1993) as words and their contexts, for skip-gram with negative sampling.

The method is that of Mikolov et al. (2013). As in D2L, all random choices are made by Python's ``random``.
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
from d2l_compat._shared.checks import check_instance, format_value, integer, message, size
from d2l_compat._shared.data.files import rephrase_os_errors
from d2l_compat._shared.data.hub import download_extract
from d2l_compat._shared.data.text import Vocab, check_vocab, count_corpus

Numbers = NDArray[np.int64]
MIN_FREQ = 10  # words that occur less often are <unk>
_CHUNK_SIZE = 10_000  # noise words drawn at once, since single draws are slow


def read_ptb() -> list[list[str]]:
    """Return the training sentences, a list of words each. Raises what :func:`download_extract` raises."""
    file = Path(download_extract("ptb"), "ptb.train.txt")
    with rephrase_os_errors("ptb", file, "an archive with that file"):
        text = file.read_text(encoding="utf-8")
    return [line.split() for line in text.split("\n")]


def subsample(sentences: Any, vocab: Any) -> tuple[list[list[str]], Any]:
    """Remove unknown words and some frequent ones; return the sentences, and the count of each known word before that.

    A word whose share of all words is f stays with probability sqrt(1e-4 / f). Raises TypeError if ``sentences`` are
    not lists of words, or ``vocab`` is not a vocabulary.
    """
    lines = [*map(list, _check_lists("sentences", sentences, "words"))]
    check_vocab(vocab)
    known = {word for word in count_corpus(lines) if vocab[word] != vocab.unk}
    lines = [[word for word in line if word in known] for line in lines]
    counter = count_corpus(lines)
    total = counter.total()
    keep_prob = {word: math.sqrt(1e-4 / count * total) for word, count in counter.items()}
    return [[word for word in line if random.random() < keep_prob[word]] for line in lines], counter


def get_centers_and_contexts(corpus: Any, max_window_size: int) -> tuple[list[Any], list[Any]]:
    """Return each word, and the words around it in its sentence, within a random distance up to ``max_window_size``.

    Sentences of one word are left out. Raises TypeError or ValueError if ``corpus`` is not a list of lists, or the size
    is below 1.
    """
    size("max_window_size", max_window_size)
    centers, contexts = [], []
    for line in map(list, _check_lists("corpus", corpus, "words")):
        if len(line) > 1:
            for i, word in enumerate(line):
                width = random.randint(1, max_window_size)
                centers.append(word)
                contexts.append(line[max(0, i - width) : i] + line[i + 1 : i + 1 + width])
    return centers, contexts


class RandomGenerator:
    """A generator of random numbers from 1 to n, with probabilities proportional to their weights."""

    def __init__(self, sampling_weights: Any) -> None:
        """Store n weights. Raises TypeError or ValueError unless all are at least 0, and at least one is above 0."""
        weights = to_numpy("sampling_weights", sampling_weights).astype("float64")
        need = "a list of finite numbers of at least 0, at least one above 0"
        if weights.ndim != 1:
            raise ValueError(message("sampling_weights", f"shape {weights.shape}", need))
        for weight in weights[~((weights >= 0) & np.isfinite(weights))][:1]:
            raise ValueError(message("sampling_weights", f"a weight of {weight}", need))
        if not 0 < weights.sum() < math.inf:
            raise ValueError(message("sampling_weights", f"a sum of {weights.sum()}", need))
        self.population = list(range(1, len(weights) + 1))
        self.sampling_weights = sampling_weights
        self._draws = self._generate([*accumulate(weights.tolist())])

    def draw(self) -> int:
        """Return the next number."""
        return next(self._draws)

    def _generate(self, sums: list[float]) -> Iterator[int]:
        while True:
            yield from random.choices(self.population, cum_weights=sums, k=_CHUNK_SIZE)


def get_negatives(all_contexts: Any, vocab: Any, counter: Any, K: int) -> list[list[int]]:
    """Draw ``K`` noise words for each word of a context, none from the context itself; return a list for each context.

    All words but ``<unk>`` are drawn, with their counts to the power of 0.75 as weights. Raises TypeError or ValueError
    if the contexts are not lists, ``counter`` has no counts, ``K`` is below 0, or a context contains all words.
    """
    contexts = _check_lists("all_contexts", all_contexts, "word indices")
    check_vocab(vocab)
    check_instance(
        "counter", counter, Mapping, "how often each word occurs, as subsample returns it"
    )
    K = integer("K", K, 0)
    weights = [counter.get(word, 0) ** 0.75 for word in vocab.to_tokens([*range(len(vocab))])]
    generator = RandomGenerator(weights)
    words = {number for number, weight in enumerate(weights) if weight}
    return [_draw_noise(context, len(context) * K, words, generator) for context in contexts]


def _draw_noise(context: Any, count: int, words: set[int], generator: RandomGenerator) -> list[int]:
    if count and len(words) <= len(context) and words <= {*context}:
        need = "at least one word outside of it, for noise"
        raise ValueError(message("all_contexts", "a context with all words in it", need))
    noise: list[int] = []
    while len(noise) < count:
        number = generator.draw() - 1
        if number not in context:
            noise.append(number)
    return noise


def pad_examples(data: Any) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Convert examples (center, context, noise words) to arrays: centers, contexts and noise, masks, labels.

    Centers are (batch, 1), all others (batch, longest). Masks are 1 at words and 0 at padding, labels 1 at words of the
    context.
    """
    rows = [_parse_example(example) for example in _check_examples(data)]
    longest = max(len(words) for _, _, words in rows)
    centers = np.zeros((len(rows), 1), np.int64)
    numbers, masks, labels = np.zeros((3, len(rows), longest), np.int64)
    for i, (center, context_size, words) in enumerate(rows):
        centers[i] = center
        numbers[i, : len(words)] = words
        masks[i, : len(words)] = 1
        labels[i, :context_size] = 1
    return centers, numbers, masks, labels


def _check_examples(data: Any) -> list[Any]:
    need = "examples (center, context, noise words), at least one"
    if not isinstance(data, Iterable) or isinstance(data, (str, bytes)):
        raise TypeError(message("data", format_value(data), need))
    examples = [*data]
    if not examples:
        raise ValueError(message("data", "none", need))
    for example in examples:
        is_triple = isinstance(example, (tuple, list)) and len(example) == 3
        if not is_triple or not all(isinstance(words, (tuple, list)) for words in example[1:]):
            raise TypeError(message("data", f"an example that is {format_value(example)}", need))
    return examples


def _parse_example(example: Any) -> tuple[int, int, list[int]]:
    """Return the center, the size of its context, and the words of the context and the noise."""
    center, context, noise = example
    words = [integer("data", number) for number in (center, *context, *noise)]
    return words[0], len(context), words[1:]


def draw_examples(
    batch_size: int, max_window_size: int, num_noise_words: int
) -> tuple[list[tuple[int, list[int], list[int]]], Vocab]:
    """Return examples (center, context, noise words) of the Penn Treebank, one per center, and the vocabulary."""
    size("batch_size", batch_size)
    size("max_window_size", max_window_size)
    integer("num_noise_words", num_noise_words, 0)
    sentences = read_ptb()
    vocab = Vocab(sentences, MIN_FREQ)
    subsampled, counter = subsample(sentences, vocab)
    corpus = [vocab[line] for line in subsampled]
    centers, contexts = get_centers_and_contexts(corpus, max_window_size)
    if not centers:
        raise ValueError(message("ptb", "sentences of one word only", "longer sentences"))
    negatives = get_negatives(contexts, vocab, counter, num_noise_words)
    return [*zip(centers, contexts, negatives, strict=True)], vocab


def _check_lists(what: str, lines: Any, content: str) -> Any:
    need = f"a list of lists of {content}"
    check_instance(what, lines, (list, tuple), need)
    for line in lines:
        check_instance(what, line, (list, tuple), need)
    return lines
