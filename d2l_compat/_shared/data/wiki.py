"""BERT's input, pairs of sentences (Devlin et al., 2019), and its training data from WikiText-2 (Merity et al., 2017).

As in D2L, all random choices are made by Python's ``random``.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import check_instance, message, size
from d2l_compat._shared.data.files import rephrase_os_errors
from d2l_compat._shared.data.text import Vocab, fit_length, tokenize

PAD, MASK, CLS, SEP = "<pad>", "<mask>", "<cls>", "<sep>"
MIN_FREQ = 5  # words that occur less often are <unk>
MASKED_SHARE = 0.15  # the share of a pair's tokens that are to be predicted
Tokens = list[str]


def get_tokens_and_segments(
    tokens_a: Sequence[str], tokens_b: Sequence[str] | None = None
) -> tuple[Tokens, list[int]]:
    """Return BERT's tokens for one or two sentences, and their segments: 0 for the first sentence, 1 for the second.

    The tokens are ``<cls>``, the first sentence, ``<sep>``, the second, ``<sep>``. Raises TypeError if the sentences
    are not lists of tokens.
    """
    check_instance("tokens_a", tokens_a, (list, tuple), "a list of tokens")
    first = [CLS, *tokens_a, SEP]
    if tokens_b is None:
        return first, [0] * len(first)
    check_instance("tokens_b", tokens_b, (list, tuple), "a list of tokens, or None")
    second = [*tokens_b, SEP]
    return first + second, [0] * len(first) + [1] * len(second)


def read(data_dir: str | Path) -> list[list[str]]:
    """Return the paragraphs with more than one sentence, in random order, as lists of sentences in lower case."""
    check_instance("data_dir", data_dir, (str, Path), "a folder's name")
    path = Path(data_dir, "wiki.train.tokens")
    with (
        rephrase_os_errors("data_dir", path, "a folder with that file"),
        path.open(encoding="utf-8") as file,
    ):
        paragraphs = [line.strip().lower().split(" . ") for line in file if " . " in line]
    random.shuffle(paragraphs)
    return paragraphs


def make_examples(paragraphs: Any, max_len: int) -> tuple[Vocab, tuple[NDArray[Any], ...]]:
    """Return the vocabulary, and pairs of sentences with some tokens masked, half of them consecutive.

    The arrays are those of :func:`pad_inputs`. Pairs longer than ``max_len`` are left out.
    """
    size("max_len", max_len)
    check_instance("paragraphs", paragraphs, (list, tuple), "a list of lists of sentences")
    texts = [tokenize(paragraph) for paragraph in paragraphs]
    vocab = Vocab([line for text in texts for line in text], MIN_FREQ, [PAD, MASK, CLS, SEP])
    pairs = [pair for text in texts for pair in draw_pairs(text, texts, vocab, max_len)]
    if not pairs:
        raise ValueError(message("max_len", max_len, "a size that a pair of sentences fits in"))
    examples = [(*mask_tokens(tokens, vocab), *others) for tokens, *others in pairs]
    return vocab, pad_inputs(examples, max_len, vocab)


def draw_sentence(
    sentence: Tokens, next_sentence: Tokens, paragraphs: list[list[Tokens]]
) -> tuple[Tokens, Tokens, bool]:
    """Return a sentence with the next one or, in half of the calls, a random one, and whether it is the next."""
    is_next = random.random() < 0.5
    second = next_sentence if is_next else random.choice(random.choice(paragraphs))
    return sentence, second, is_next


def draw_pairs(
    paragraph: list[Tokens], paragraphs: list[list[Tokens]], vocab: Any, max_len: int
) -> list[tuple[Tokens, list[int], bool]]:
    """Return tokens, segments and whether the sentences are consecutive, for each sentence but the last.

    Pairs longer than ``max_len`` are left out. As in D2L, ``vocab`` is not used.
    """
    pairs = []
    for sentence, next_sentence in pairwise(paragraph):
        first, second, is_next = draw_sentence(sentence, next_sentence, paragraphs)
        tokens, segments = get_tokens_and_segments(first, second)
        if len(tokens) <= max_len:
            pairs.append((tokens, segments, is_next))
    return pairs


def replace_tokens(
    tokens: Tokens, candidate_pred_positions: list[int], num_mlm_preds: int, vocab: Vocab
) -> tuple[Tokens, list[tuple[int, str]]]:
    """Return the tokens with some replaced, and the position and the original of each of these.

    At most ``num_mlm_preds`` candidates are taken; their list is shuffled in place.
    """
    random.shuffle(candidate_pred_positions)
    chosen = candidate_pred_positions[:num_mlm_preds]
    replaced = [*tokens]
    for position in chosen:
        replaced[position] = _replace_token(tokens[position], vocab)
    return replaced, [(position, tokens[position]) for position in chosen]


def _replace_token(token: str, vocab: Vocab) -> str:
    """Return ``<mask>`` in 80 % of calls, a random token in 10 %, and the token itself in 10 %."""
    if random.random() < 0.8:
        return MASK
    return token if random.random() < 0.5 else random.choice(vocab.idx_to_token)


def mask_tokens(tokens: Tokens, vocab: Vocab) -> tuple[list[int], list[int], list[int]]:
    """Return token indices with some tokens replaced, the positions of these, and their original indices."""
    candidates = [i for i, token in enumerate(tokens) if token not in (CLS, SEP)]
    count = max(1, round(len(tokens) * MASKED_SHARE))
    inputs, predictions = replace_tokens(tokens, candidates, count, vocab)
    predictions.sort()
    positions = [position for position, _ in predictions]
    return vocab[inputs], positions, vocab[[token for _, token in predictions]]


def pad_inputs(examples: Sequence[Any], max_len: int, vocab: Any) -> tuple[NDArray[Any], ...]:
    """Return the arrays of examples, each of which is the result of :func:`mask_tokens`, segments, and ``is_next``.

    They are tokens and segments, (pairs, max_len); lengths, (pairs,); positions of masked tokens, their weights,
    1 or 0 for padding, and their labels, (pairs, predictions); and labels of pairs, 1 if the sentences are consecutive,
    (pairs,). Weights are float32, all others int64.
    """
    slots = max(1, round(max_len * MASKED_SHARE))

    def pad(lines: Iterable[list[int]], length: int, padding: int = 0) -> NDArray[np.int64]:
        return np.array([fit_length(line, length, padding) for line in lines], np.int64)

    tokens, positions, labels, segments, is_next = zip(*examples, strict=True)
    return (
        pad(tokens, max_len, vocab[PAD]),
        pad(segments, max_len),
        np.array([*map(len, tokens)], np.int64),
        pad(positions, slots),
        pad([[1] * len(line) for line in labels], slots).astype(np.float32),
        pad(labels, slots),
        np.array(is_next, np.int64),
    )


class WikiText:
    """The arrays of :func:`make_examples` as tensors, under D2L's names."""

    tensor: Callable[[Any], Any]  # the framework's

    def __init__(self, paragraphs: Any, max_len: int) -> None:
        """Create the tensors.

        Raises TypeError or ValueError if the paragraphs are not lists of sentences, or no pair fits into ``max_len``.
        """
        self.vocab, arrays = make_examples(paragraphs, max_len)
        self._columns = [*map(self.tensor, arrays)]
        self.all_token_ids, self.all_segments, self.valid_lens = self._columns[:3]
        self.all_pred_positions, self.all_mlm_weights, self.all_mlm_labels = self._columns[3:6]
        self.nsp_labels = self._columns[6]

    def __getitem__(self, idx: int) -> tuple[Any, ...]:
        return tuple(column[idx] for column in self._columns)

    def __len__(self) -> int:
        return len(self.all_token_ids)
