"""Pairs of sentences, English and French, as numbers for a model: text goes in, NumPy comes out.

Two generations of D2L prepare them a little differently: ``MTFraEng`` (1.0) and ``load_data_nmt`` (0.17).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks
from d2l_compat._shared.data.hub import locate
from d2l_compat._shared.data.text import Vocab, fit_length
from d2l_compat._shared.training import DataModule, undefined_method_error

PAD = "<pad>"
BOS = "<bos>"
EOS = "<eos>"
Numbers = NDArray[np.int32]


def read(root: str | Path = "../data") -> str:
    """The corpus: a line a pair, with a tabulator between the two sentences."""
    import zipfile  # when it is needed

    with zipfile.ZipFile(locate("fra-eng", root)) as archive:
        return archive.read("fra-eng/fra.txt").decode("utf-8")


def preprocess(text: str) -> str:
    """Lower case, blanks of one kind only, and one before each of the signs , . ! and ?"""
    text = text.replace("\u202f", " ").replace("\xa0", " ").lower()
    return "".join(
        f" {sign}" if sign in ",.!?" and before not in ("", " ") else sign
        for before, sign in zip(["", *text], text, strict=False)
    )


def tokenize(text: str, num_examples: int | None) -> tuple[list[list[str]], list[list[str]]]:
    """Both languages' sentences, each a list of tokens; lines of another form are skipped.

    As in D2L, ``num_examples`` is the number of the last line read, counted from 0: one more is taken.
    """
    lines = text.split("\n")
    pairs = [line.split("\t") for line in lines[: num_examples + 1 if num_examples else None]]
    pairs = [pair for pair in pairs if len(pair) == 2]
    return [pair[0].split(" ") for pair in pairs], [pair[1].split(" ") for pair in pairs]


def check_sizes(*sizes: int) -> None:
    """``batch_size``, ``num_steps`` and, perhaps, how many pairs: integers of at least 1."""
    for what, size in zip(("batch_size", "num_steps", "num_train", "num_val"), sizes, strict=False):
        checks.size(what, size)


@dataclass(frozen=True)
class Pairs:
    """What ``load_data_nmt`` needs."""

    arrays: list[Numbers]  # source (sentences, num_steps), lengths (sentences,); so the target
    src_vocab: Vocab
    tgt_vocab: Vocab


def pairs(batch_size: int, num_steps: int, num_examples: int | None) -> Pairs:
    """The corpus as D2L 0.17 prepares it: rare words, those that occur once, are ``<unk>``."""
    check_sizes(batch_size, num_steps)
    if num_examples is not None:
        checks.size("num_examples", num_examples)
    arrays: list[Numbers] = []
    vocabs = []
    for lines in tokenize(preprocess(read()), num_examples):
        vocab = Vocab(lines, min_freq=2, reserved_tokens=[PAD, BOS, EOS])
        numbers = [fit_length([*vocab[line], vocab[EOS]], num_steps, vocab[PAD]) for line in lines]
        arrays += _with_lengths(numbers, vocab)
        vocabs.append(vocab)
    return Pairs(arrays, *vocabs)


class MTFraEng(DataModule):
    """D2L 1.0's data module of this name; each face makes the tensors and the batches."""

    num_steps: int
    num_train: int
    num_val: int

    def __init__(
        self, batch_size: int, num_steps: int = 9, num_train: int = 512, num_val: int = 128
    ) -> None:
        """``num_steps`` tokens a sentence, padded or cut off.

        Raises TypeError or ValueError for sizes below 1.
        """
        super().__init__()
        check_sizes(batch_size, num_steps, num_train, num_val)
        self.save_hyperparameters()
        self.arrays, self.src_vocab, self.tgt_vocab = self._build_arrays(self._download())

    def build(self, src_sentences: list[str], tgt_sentences: list[str]) -> tuple[Any, ...]:
        """The arrays of other sentences, in these vocabularies."""
        text = self._text(src_sentences, tgt_sentences)
        return self._build_arrays(text, self.src_vocab, self.tgt_vocab)[0]

    def get_dataloader(self, train: bool) -> Any:
        """Batches of the first ``num_train`` pairs, or of the others."""
        rows = slice(0, self.num_train) if train else slice(self.num_train, None)
        return self.get_tensorloader(self.arrays, train, rows)

    def _tensor(self, array: Numbers) -> Any:
        """``array`` as the face's tensor."""
        raise undefined_method_error(self, "_tensor")

    def _build_arrays(
        self, raw_text: str, src_vocab: Vocab | None = None, tgt_vocab: Vocab | None = None
    ) -> tuple[tuple[Any, ...], Vocab, Vocab]:
        arrays, source, target = self._numbers(raw_text, src_vocab, tgt_vocab)
        return tuple(map(self._tensor, arrays)), source, target

    def _download(self) -> str:
        return read(self.root)

    def _preprocess(self, text: str) -> str:
        return preprocess(text)

    def _tokenize(
        self, text: str, max_examples: int | None = None
    ) -> tuple[list[list[str]], list[list[str]]]:
        source, target = tokenize(text, max_examples)
        return _ended(source), _ended(target)

    def _text(self, src_sentences: list[str], tgt_sentences: list[str]) -> str:
        """Pairs in the corpus's form."""
        for what, given in (("src_sentences", src_sentences), ("tgt_sentences", tgt_sentences)):
            checks.check_instance(what, given, (list, tuple), "a list of sentences")
            for sentence in given:
                checks.check_instance(what, sentence, str, "a list of sentences, strings")
        if len(src_sentences) != len(tgt_sentences):
            got = f"{len(src_sentences)} and {len(tgt_sentences)}"
            raise ValueError(
                checks.fault("sentences", got, "as many in one language as in the other")
            )
        return "\n".join(map("\t".join, zip(src_sentences, tgt_sentences, strict=True)))

    def _numbers(
        self, text: str, src_vocab: Vocab | None, tgt_vocab: Vocab | None
    ) -> tuple[list[Numbers], Vocab, Vocab]:
        """Source, target without its last token, source lengths, target without its first."""
        lines = self._tokenize(self._preprocess(text), self.num_train + self.num_val)
        source, target = ([fit_length(x, self.num_steps, PAD) for x in side] for side in lines)
        target = [[BOS, *line] for line in target]
        src_vocab = src_vocab or Vocab(source, min_freq=2)
        tgt_vocab = tgt_vocab or Vocab(target, min_freq=2)
        numbers, lengths = _with_lengths([src_vocab[line] for line in source], src_vocab)
        answer, _ = _with_lengths([tgt_vocab[line] for line in target], tgt_vocab)
        return [numbers, answer[:, :-1], lengths, answer[:, 1:]], src_vocab, tgt_vocab


def _ended(lines: list[list[str]]) -> list[list[str]]:
    return [[*filter(None, line), EOS] for line in lines]


def _with_lengths(numbers: list[list[int]], vocab: Vocab) -> tuple[Numbers, Numbers]:
    array = np.array(numbers, np.int32)
    return array, (array != vocab[PAD]).sum(axis=1, dtype=np.int32)
