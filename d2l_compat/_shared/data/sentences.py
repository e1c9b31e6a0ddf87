"""Sentences and what is said of them: reviews of films (Maas et al., 2011), and what follows from what (Bowman et al., 2015)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, fault, format_value, size
from d2l_compat._shared.data.files import told
from d2l_compat._shared.data.hub import download_extract
from d2l_compat._shared.data.text import Vocab, check_vocab, tokenize, truncate_pad

PAD = "<pad>"
RARE = 5  # a word that occurs less often is <unk>
SENTIMENTS = "negative", "positive"
RELATIONS = "entailment", "contradiction", "neutral"
Numbers = NDArray[np.int64]
Examples = tuple[Numbers, Numbers]


def read_imdb(data_dir: str | Path, is_train: bool) -> tuple[list[str], list[int]]:
    """Reviews of films, for training or for the test, in the order of their files' names: positive ones, 1, then
    negative ones, 0. Raises FileNotFoundError where there is no such folder."""
    folder = _folder(data_dir, is_train)
    part = folder / ("train" if is_train else "test")
    texts, labels = [], []
    for label, name in (1, "pos"), (0, "neg"):
        with told("data_dir", part / name, "a folder with the reviews"):
            files = sorted((part / name).iterdir())
        texts += [file.read_bytes().decode("utf-8").replace("\n", "") for file in files]
        labels += [label] * len(files)
    return texts, labels


def imdb(batch_size: int, num_steps: int) -> tuple[Examples, Examples, Vocab]:
    """Numbers of words (reviews, num_steps) and labels (reviews,), for training and for the test; and the vocabulary.

    As D2L has it, what is shorter is filled up with ``<unk>``.
    """
    size("batch_size", batch_size)
    size("num_steps", num_steps)
    data_dir = download_extract("aclImdb", "aclImdb")
    read = [read_imdb(data_dir, is_train) for is_train in (True, False)]
    lines = [tokenize(texts) for texts, _ in read]
    vocab = Vocab(lines[0], RARE)
    train, test = (
        (fitted(each, vocab, num_steps), np.array(labels, np.int64))
        for each, (_, labels) in zip(lines, read, strict=True)
    )
    return train, test, vocab


def read_snli(data_dir: str | Path, is_train: bool) -> tuple[list[str], list[str], list[int]]:
    """Premises, hypotheses, and what the first say of the second: 0 entailment, 1 contradiction, 2 neutral.

    They are for training, or for the test; those that people did not agree on are left out. Raises FileNotFoundError
    where there is no such file, ValueError where it has other lines.
    """
    folder = _folder(data_dir, is_train)
    path = folder / f"snli_1.0_{'train' if is_train else 'test'}.txt"
    with told("data_dir", path, "a folder with that file"), path.open(encoding="utf-8") as file:
        rows = [line.split("\t") for line in file][1:]
    rows = [row for row in rows if row[0] in RELATIONS]
    if any(len(row) < 3 for row in rows):
        need = "a label, a premise and a hypothesis in each line"
        raise ValueError(fault("data_dir", f"{path} with fewer columns", need))
    return (
        [_words(row[1]) for row in rows],
        [_words(row[2]) for row in rows],
        [RELATIONS.index(row[0]) for row in rows],
    )


def _words(tree: str) -> str:
    """A sentence without the brackets that tell how it is built."""
    return re.sub(r"\s{2,}", " ", re.sub("[()]", "", tree)).strip()


def _folder(data_dir: str | Path, is_train: Any) -> Path:
    check_instance("data_dir", data_dir, (str, Path), "a folder's name")
    check_instance("is_train", is_train, (bool, int), "True or False")
    return Path(data_dir)


def fitted(lines: list[list[str]], vocab: Vocab, num_steps: int) -> Numbers:
    """(lines, num_steps)"""
    rows = [truncate_pad(vocab[line], num_steps, vocab[PAD]) for line in lines]
    return np.array(rows, np.int64).reshape(len(rows), num_steps)


class SNLI:
    """Pairs of sentences as tensors: ``premises`` and ``hypotheses`` (pairs, num_steps), ``labels`` (pairs,)."""

    tensor: Callable[[Any], Any]  # the face's

    def __init__(self, dataset: Any, num_steps: int, vocab: Any = None) -> None:
        """``dataset`` is what :func:`read_snli` gives; ``vocab`` by default that of its words that occur 5 times.

        Raises TypeError or ValueError for others.
        """
        self.num_steps = size("num_steps", num_steps)
        premises, hypotheses, labels = _three(dataset)
        if vocab is None:
            vocab = Vocab(premises + hypotheses, RARE, [PAD])
        self.vocab = check_vocab(vocab)
        self.premises, self.hypotheses = map(self._pad, (premises, hypotheses))
        self.labels = self.tensor(labels)
        print(f"read {len(self)} examples")

    def _pad(self, lines: list[list[str]]) -> Any:
        return self.tensor(fitted(lines, self.vocab, self.num_steps))

    def __getitem__(self, idx: int) -> tuple[tuple[Any, Any], Any]:
        return (self.premises[idx], self.hypotheses[idx]), self.labels[idx]

    def __len__(self) -> int:
        return len(self.premises)


def _three(dataset: Any) -> tuple[list[list[str]], list[list[str]], Numbers]:
    need = "premises, hypotheses and labels, as many of each, at least one"
    if not isinstance(dataset, (tuple, list)) or len(dataset) != 3:
        raise TypeError(fault("dataset", format_value(dataset), need))
    premises, hypotheses = map(tokenize, dataset[:2])
    labels = np.array(dataset[2])
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise TypeError(fault("dataset", "labels of another kind", "integers"))
    if not 0 < len(premises) == len(hypotheses) == len(labels):
        got = f"{len(premises)}, {len(hypotheses)} and {len(labels)}"
        raise ValueError(fault("dataset", got, need))
    return premises, hypotheses, labels.astype(np.int64)


def snli(dataset: Callable[..., Any], batch_size: int, num_steps: int) -> tuple[Any, Any]:
    """The face's ``SNLIDataset``, for training and for the test, with the vocabulary of the first."""
    size("batch_size", batch_size)
    size("num_steps", num_steps)
    data_dir = download_extract("SNLI")
    train, test = (read_snli(data_dir, is_train) for is_train in (True, False))
    for_training = dataset(train, num_steps)
    return for_training, dataset(test, num_steps, for_training.vocab)


def words_of(what: str, sentence: Any, vocab: Vocab) -> list[list[int]]:
    """(1, words): the numbers of a list of words, at least one."""
    check_vocab(vocab)
    need = "a list of words, at least one"
    check_instance(what, sentence, (list, tuple), need)
    if not sentence:
        raise ValueError(fault(what, "none", need))
    return [vocab[[*sentence]]]


def words_in(sequence: Any, vocab: Vocab) -> list[list[int]]:
    """The same, of a string."""
    check_instance("sequence", sequence, str, "a sentence, a string")
    return words_of("sequence", sequence.split(), vocab)


def pair_of(premise: Any, hypothesis: Any, vocab: Vocab) -> list[list[list[int]]]:
    """Both as :func:`words_of` gives them."""
    given = {"premise": premise, "hypothesis": hypothesis}
    return [words_of(what, words, vocab) for what, words in given.items()]


def named(names: tuple[str, ...], outputs: Any) -> str:
    """Of outputs, one for each name, the name of the greatest."""
    numbers = to_numpy("net", outputs)
    if numbers.size != len(names):
        got = f"shape {numbers.shape} from it"
        raise ValueError(fault("net", got, f"(1, {len(names)}), a number for each class"))
    return names[int(numbers.argmax())]
