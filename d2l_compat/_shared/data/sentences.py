"""Labelled sentences: IMDb's film reviews (Maas et al., 2011), and SNLI's inferences (Bowman et al., 2015)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, format_value, message, size
from d2l_compat._shared.data.files import rephrase_os_errors
from d2l_compat._shared.data.hub import download_extract
from d2l_compat._shared.data.text import Vocab, check_vocab, tokenize, truncate_pad

PAD = "<pad>"
MIN_FREQ = 5  # words that occur less often are <unk>
SENTIMENTS = "negative", "positive"
RELATIONS = "entailment", "contradiction", "neutral"
Numbers = NDArray[np.int64]
Examples = tuple[Numbers, Numbers]


def read_imdb(data_dir: str | Path, is_train: bool) -> tuple[list[str], list[int]]:
    """Read film reviews and their labels, for training or testing: first the positive ones (1), then the negative (0).

    Each kind is sorted by file names. Raises FileNotFoundError if there is no such folder.
    """
    folder = _check_folder(data_dir, is_train)
    part = folder / ("train" if is_train else "test")
    texts, labels = [], []
    for label, name in (1, "pos"), (0, "neg"):
        with rephrase_os_errors("data_dir", part / name, "a folder with the reviews"):
            files = sorted((part / name).iterdir(), key=str)  # paths ignore case on Windows
        texts += [file.read_bytes().decode("utf-8").replace("\n", "") for file in files]
        labels += [label] * len(files)
    return texts, labels


def load_imdb(batch_size: int, num_steps: int) -> tuple[Examples, Examples, Vocab]:
    """Load token indices (reviews, num_steps) and labels (reviews,), for training and testing, and the vocabulary.

    As in D2L, shorter reviews are padded with ``<unk>``.
    """
    size("batch_size", batch_size)
    size("num_steps", num_steps)
    data_dir = download_extract("aclImdb", "aclImdb")
    train_texts, train_labels = read_imdb(data_dir, True)
    test_texts, test_labels = read_imdb(data_dir, False)
    train_lines, test_lines = tokenize(train_texts), tokenize(test_texts)
    vocab = Vocab(train_lines, MIN_FREQ)
    train = encode_lines(train_lines, vocab, num_steps), np.array(train_labels, np.int64)
    test = encode_lines(test_lines, vocab, num_steps), np.array(test_labels, np.int64)
    return train, test, vocab


def read_snli(data_dir: str | Path, is_train: bool) -> tuple[list[str], list[str], list[int]]:
    """Read premises, hypotheses, and their labels: 0 entailment, 1 contradiction, 2 neutral.

    They are for training or testing; pairs without an agreed label are left out. Raises
    FileNotFoundError if there is no such file, ValueError if a line has too few columns.
    """
    folder = _check_folder(data_dir, is_train)
    path = folder / f"snli_1.0_{'train' if is_train else 'test'}.txt"
    with (
        rephrase_os_errors("data_dir", path, "a folder with that file"),
        path.open(encoding="utf-8") as file,
    ):
        rows = [line.split("\t") for line in file][1:]
    rows = [row for row in rows if row[0] in RELATIONS]
    if any(len(row) < 3 for row in rows):
        need = "a label, a premise and a hypothesis in each line"
        raise ValueError(message("data_dir", f"{path} with fewer columns", need))
    return (
        [_strip_brackets(row[1]) for row in rows],
        [_strip_brackets(row[2]) for row in rows],
        [RELATIONS.index(row[0]) for row in rows],
    )


def _strip_brackets(tree: str) -> str:
    """Remove the brackets of a parse tree from a sentence."""
    return re.sub(r"\s{2,}", " ", re.sub("[()]", "", tree)).strip()


def _check_folder(data_dir: str | Path, is_train: Any) -> Path:
    check_instance("data_dir", data_dir, (str, Path), "a folder's name")
    check_instance("is_train", is_train, (bool, int), "True or False")
    return Path(data_dir)


def encode_lines(lines: list[list[str]], vocab: Vocab, num_steps: int) -> Numbers:
    """Encode lines as token indices (lines, num_steps), cut off or padded."""
    rows = [truncate_pad(vocab[line], num_steps, vocab[PAD]) for line in lines]
    return np.array(rows, np.int64).reshape(len(rows), num_steps)


class SNLI:
    """Pairs of sentences as tensors: ``premises`` and ``hypotheses`` (pairs, num_steps), ``labels`` (pairs,)."""

    tensor: Callable[[Any], Any]  # the framework's

    def __init__(self, dataset: Any, num_steps: int, vocab: Any = None) -> None:
        """Encode ``dataset``, as from :func:`read_snli`; ``vocab`` defaults to its words that occur at least 5 times.

        Raises TypeError or ValueError for other arguments.
        """
        self.num_steps = size("num_steps", num_steps)
        premises, hypotheses, labels = _parse_dataset(dataset)
        if vocab is None:
            vocab = Vocab(premises + hypotheses, MIN_FREQ, [PAD])
        self.vocab = check_vocab(vocab)
        self.premises = self._encode(premises)
        self.hypotheses = self._encode(hypotheses)
        self.labels = self.tensor(labels)
        print(f"read {len(self)} examples")

    def _encode(self, lines: list[list[str]]) -> Any:
        return self.tensor(encode_lines(lines, self.vocab, self.num_steps))

    def __getitem__(self, idx: int) -> tuple[tuple[Any, Any], Any]:
        return (self.premises[idx], self.hypotheses[idx]), self.labels[idx]

    def __len__(self) -> int:
        return len(self.premises)


def _parse_dataset(dataset: Any) -> tuple[list[list[str]], list[list[str]], Numbers]:
    """Return tokenized premises and hypotheses, and labels; check their types and numbers."""
    need = "the same number of premises, hypotheses and labels, at least one"
    if not isinstance(dataset, (tuple, list)) or len(dataset) != 3:
        raise TypeError(message("dataset", format_value(dataset), need))
    premises, hypotheses = map(tokenize, dataset[:2])
    labels = np.array(dataset[2])
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        got = f"labels of dtype {labels.dtype} and shape {labels.shape}"
        raise TypeError(message("dataset", got, "a list of integers"))
    if not 0 < len(premises) == len(hypotheses) == len(labels):
        got = f"{len(premises)}, {len(hypotheses)} and {len(labels)}"
        raise ValueError(message("dataset", got, need))
    return premises, hypotheses, labels.astype(np.int64)


def load_snli(dataset: Callable[..., Any], batch_size: int, num_steps: int) -> tuple[Any, Any]:
    """Create the framework's ``SNLIDataset`` for training and testing, with the vocabulary of the training data."""
    size("batch_size", batch_size)
    size("num_steps", num_steps)
    data_dir = download_extract("SNLI")
    train = dataset(read_snli(data_dir, True), num_steps)
    return train, dataset(read_snli(data_dir, False), num_steps, train.vocab)


def encode_words(what: str, sentence: Any, vocab: Vocab) -> list[list[int]]:
    """Return the token indices, (1, words), of a list of at least one word."""
    check_vocab(vocab)
    need = "a list of words, at least one"
    check_instance(what, sentence, (list, tuple), need)
    if not sentence:
        raise ValueError(message(what, "none", need))
    return [vocab[[*sentence]]]


def encode_string(sequence: Any, vocab: Vocab) -> list[list[int]]:
    """Return the token indices, (1, words), of a string with at least one word."""
    check_instance("sequence", sequence, str, "a sentence as a string")
    return encode_words("sequence", sequence.split(), vocab)


def encode_pair(premise: Any, hypothesis: Any, vocab: Vocab) -> list[list[list[int]]]:
    """Return the token indices of both sentences, as :func:`encode_words` does."""
    return [
        encode_words("premise", premise, vocab),
        encode_words("hypothesis", hypothesis, vocab),
    ]


def best_name(names: tuple[str, ...], outputs: Any) -> str:
    """Return the name with the greatest output; there is one output for each name."""
    numbers = to_numpy("net", outputs)
    if numbers.size != len(names):
        got = f"an output of shape {numbers.shape}"
        raise ValueError(message("net", got, f"(1, {len(names)}), a number for each class"))
    return names[int(numbers.argmax())]
