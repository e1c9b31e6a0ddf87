"""Pairs of sentences as BERT reads them (Devlin et al., 2019), and those of WikiText-2 (Merity et al., 2017) for its training.

What is drawn is drawn by Python's ``random``, as D2L draws it.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance, fault, size
from d2l_compat._shared.data.files import told
from d2l_compat._shared.data.text import Vocab, fit_length, tokenize

PAD, MASK, CLS, SEP = "<pad>", "<mask>", "<cls>", "<sep>"
RARE = 5  # a word that occurs less often is <unk>
SHARE = 0.15  # of a pair's tokens are to be told
Tokens = list[str]


def get_tokens_and_segments(
    tokens_a: Sequence[str], tokens_b: Sequence[str] | None = None
) -> tuple[Tokens, list[int]]:
    """One sentence or two as BERT reads them: ``<cls>``, the first, ``<sep>``, the second, ``<sep>``; and of each
    token 0 for the first sentence, 1 for the second. Raises TypeError where these are no lists of tokens."""
    check_instance("tokens_a", tokens_a, (list, tuple), "a list of tokens")
    first = [CLS, *tokens_a, SEP]
    if tokens_b is None:
        return first, [0] * len(first)
    check_instance("tokens_b", tokens_b, (list, tuple), "a list of tokens, or None")
    second = [*tokens_b, SEP]
    return first + second, [0] * len(first) + [1] * len(second)


def read(data_dir: str | Path) -> list[list[str]]:
    """The paragraphs of more than one sentence, in an order that is drawn: strings in lower case."""
    check_instance("data_dir", data_dir, (str, Path), "a folder's name")
    path = Path(data_dir, "wiki.train.tokens")
    with told("data_dir", path, "a folder with that file"), path.open(encoding="utf-8") as file:
        paragraphs = [line.strip().lower().split(" . ") for line in file if " . " in line]
    random.shuffle(paragraphs)
    return paragraphs


def examples(paragraphs: Any, max_len: int) -> tuple[Vocab, tuple[NDArray[Any], ...]]:
    """Pairs of sentences, half of which follow each other, with some tokens masked; and their vocabulary.

    They are tokens (pairs, max_len), segments (pairs, max_len), lengths (pairs,), positions of what is to be told
    (pairs, predictions), 1 for each of these and 0 for padding, float32, the tokens that are there, and 1 where the second
    sentence follows the first (pairs,): all others int64. Longer pairs are left out.
    """
    size("max_len", max_len)
    check_instance("paragraphs", paragraphs, (list, tuple), "a list of lists of sentences")
    texts = [tokenize(paragraph) for paragraph in paragraphs]
    vocab = Vocab([line for text in texts for line in text], RARE, [PAD, MASK, CLS, SEP])
    pairs = [pair for text in texts for pair in _pairs(text, texts, max_len)]
    if not pairs:
        raise ValueError(fault("max_len", max_len, "a size that a pair of sentences fits in"))
    masked = [_mask(tokens, vocab) for tokens, _, _ in pairs]
    slots = max(1, round(max_len * SHARE))

    def rows(lines: Iterator[list[int]], length: int, padding: int = 0) -> NDArray[np.int64]:
        return np.array([fit_length(line, length, padding) for line in lines], np.int64)

    return vocab, (
        rows((inputs for inputs, _, _ in masked), max_len, vocab[PAD]),
        rows((segments for _, segments, _ in pairs), max_len),
        np.array([len(tokens) for tokens, _, _ in pairs], np.int64),
        rows((positions for _, positions, _ in masked), slots),
        rows(([1] * len(labels) for _, _, labels in masked), slots).astype(np.float32),
        rows((labels for _, _, labels in masked), slots),
        np.array([is_next for _, _, is_next in pairs], np.int64),
    )


def _pairs(
    text: list[Tokens], texts: list[list[Tokens]], max_len: int
) -> Iterator[tuple[Tokens, list[int], bool]]:
    """Each sentence of a paragraph with the next, or with any other; and which of both it is."""
    for first, second in pairwise(text):
        is_next = random.random() < 0.5
        if not is_next:
            second = random.choice(random.choice(texts))
        tokens, segments = get_tokens_and_segments(first, second)
        if len(tokens) <= max_len:
            yield tokens, segments, is_next


def _mask(tokens: Tokens, vocab: Vocab) -> tuple[list[int], list[int], list[int]]:
    """The numbers of tokens, some of them in disguise; where these are, and what they were."""
    places = [i for i, token in enumerate(tokens) if token not in (CLS, SEP)]
    random.shuffle(places)
    chosen = places[: max(1, round(len(tokens) * SHARE))]
    disguised = {i: _disguise(tokens[i], vocab) for i in chosen}
    inputs = [disguised.get(i, token) for i, token in enumerate(tokens)]
    chosen.sort()
    return vocab[inputs], chosen, vocab[[tokens[i] for i in chosen]]


def _disguise(token: str, vocab: Vocab) -> str:
    """Of ten tokens eight are masked, one is any other, and one stays as it is."""
    if random.random() < 0.8:
        return MASK
    return token if random.random() < 0.5 else random.choice(vocab.idx_to_token)


class WikiText:
    """The pairs as tensors: what :func:`examples` gives, under D2L's names."""

    tensor: Callable[[Any], Any]  # the face's

    def __init__(self, paragraphs: Any, max_len: int) -> None:
        """Raises TypeError or ValueError where the paragraphs are no lists of sentences, or no pair fits in."""
        self.vocab, arrays = examples(paragraphs, max_len)
        self._columns = [*map(self.tensor, arrays)]
        self.all_token_ids, self.all_segments, self.valid_lens = self._columns[:3]
        self.all_pred_positions, self.all_mlm_weights, self.all_mlm_labels = self._columns[3:6]
        self.nsp_labels = self._columns[6]

    def __getitem__(self, idx: int) -> tuple[Any, ...]:
        return tuple(column[idx] for column in self._columns)

    def __len__(self) -> int:
        return len(self.all_token_ids)
