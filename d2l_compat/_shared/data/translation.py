"""Pairs of English and French sentences, converted from text to NumPy arrays of token indices.

D2L 1.0 (``MTFraEng``) and 0.17 (``load_data_nmt``) prepare them a little differently.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared import checks
from d2l_compat._shared.data.hub import locate
from d2l_compat._shared.data.text import Vocab, check_vocab, fit_length
from d2l_compat._shared.training import DataModule, undefined_method_error

PAD = "<pad>"
BOS = "<bos>"
EOS = "<eos>"
Numbers = NDArray[np.int32]


def read(root: str | Path = "../data") -> str:
    """Return the corpus, a pair per line, with a tab between the two sentences."""
    import zipfile  # imported on first use

    with zipfile.ZipFile(locate("fra-eng", root)) as archive:
        return archive.read("fra-eng/fra.txt").decode("utf-8")


def read_data_nmt() -> str:
    """Return the pairs of English and French sentences, one per line, with a tab in the middle.

    Raises what :func:`download` raises.
    """
    return read()


def preprocess_nmt(text: str) -> str:
    """Convert to lower case and ordinary spaces, with a space before each comma, full stop, ``!`` and ``?``.

    Raises TypeError if ``text`` is not a string.
    """
    checks.check_instance("text", text, str, "a string")
    text = text.replace("\u202f", " ").replace("\xa0", " ").lower()
    return "".join(
        f" {char}" if char in ",.!?" and previous not in ("", " ") else char
        for previous, char in zip(["", *text], text, strict=False)
    )


def tokenize_nmt(
    text: str, num_examples: int | None = None
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the sentences of both languages as lists of tokens; skip lines that are not pairs.

    As in D2L, ``num_examples`` is the index of the last line read, so one more line is read than it says; all lines are
    read if it is None or 0. Raises TypeError if ``text`` is not a string, TypeError or ValueError if ``num_examples``
    is not an integer of at least 0.
    """
    checks.check_instance("text", text, str, "a string")
    if num_examples is not None:
        checks.integer("num_examples", num_examples, 0)
    lines = text.split("\n")
    pairs = [line.split("\t") for line in lines[: num_examples + 1 if num_examples else None]]
    pairs = [pair for pair in pairs if len(pair) == 2]
    return [pair[0].split(" ") for pair in pairs], [pair[1].split(" ") for pair in pairs]


def check_sizes(*sizes: int) -> None:
    """Check that ``batch_size``, ``num_steps`` and, if given, ``num_train`` and ``num_val`` are at least 1."""
    for what, size in zip(("batch_size", "num_steps", "num_train", "num_val"), sizes, strict=False):
        checks.size(what, size)


def build_array(lines: Any, vocab: Any, num_steps: int) -> tuple[Numbers, Numbers]:
    """Return sentences as token indices (sentences, num_steps), each with ``<eos>``, and their lengths (sentences,)."""
    check_vocab(vocab)
    need = "a list of lists of tokens"
    checks.check_instance("lines", lines, (list, tuple), need)
    for line in lines:
        checks.check_instance("lines", line, (list, tuple), need)
    num_steps = checks.size("num_steps", num_steps)
    numbers = [fit_length([*vocab[line], vocab[EOS]], num_steps, vocab[PAD]) for line in lines]
    return _array_and_lengths(numbers, vocab)


ToArray = Callable[[Numbers], Any]


def make_build_array_nmt(to_array: ToArray, to_lens: ToArray | None = None) -> Callable[..., Any]:
    """Return a framework's ``build_array_nmt``; the functions make its arrays of tokens, and of lengths."""

    def build_array_nmt(lines: list[list[str]], vocab: Vocab, num_steps: int) -> tuple[Any, Any]:
        """Return sentences, lists of tokens, as token indices (sentences, num_steps), and their lengths (sentences,).

        Each ends with ``<eos>``, and is padded or cut off. Both are integers; in MXNet the indices are float32, as
        in D2L. Raises TypeError if ``lines`` is not a list of lists or ``vocab`` no vocabulary, TypeError or
        ValueError if ``num_steps`` is below 1.
        """
        tokens, lens = build_array(lines, vocab, num_steps)
        return to_array(tokens), (to_lens or to_array)(lens)

    return build_array_nmt


@dataclass(frozen=True)
class Pairs:
    """The arrays and vocabularies for ``load_data_nmt``."""

    # Source (sentences, num_steps), its lengths (sentences,), target, its lengths.
    arrays: list[Numbers]
    src_vocab: Vocab
    tgt_vocab: Vocab


def load_pairs(batch_size: int, num_steps: int, num_examples: int | None) -> Pairs:
    """Load the corpus as D2L 0.17 prepares it; words that occur once are ``<unk>``."""
    check_sizes(batch_size, num_steps)
    if num_examples is not None:
        checks.size("num_examples", num_examples)
    arrays: list[Numbers] = []
    vocabs = []
    for lines in tokenize_nmt(preprocess_nmt(read()), num_examples):
        vocab = Vocab(lines, min_freq=2, reserved_tokens=[PAD, BOS, EOS])
        arrays += build_array(lines, vocab, num_steps)
        vocabs.append(vocab)
    return Pairs(arrays, *vocabs)


class MTFraEng(DataModule):
    """The shared part of D2L 1.0's data module; each framework creates the tensors and the batches."""

    num_steps: int
    num_train: int
    num_val: int

    def __init__(
        self, batch_size: int, num_steps: int = 9, num_train: int = 512, num_val: int = 128
    ) -> None:
        """Load the corpus; sentences are padded or truncated to ``num_steps`` tokens.

        Raises TypeError or ValueError for sizes below 1.
        """
        super().__init__()
        check_sizes(batch_size, num_steps, num_train, num_val)
        self.save_hyperparameters()
        self.arrays, self.src_vocab, self.tgt_vocab = self._build_arrays(self._download())

    def build(self, src_sentences: list[str], tgt_sentences: list[str]) -> tuple[Any, ...]:
        """Return the arrays of other sentences, encoded by these vocabularies."""
        text = self._join_pairs(src_sentences, tgt_sentences)
        return self._build_arrays(text, self.src_vocab, self.tgt_vocab)[0]

    def get_dataloader(self, train: bool) -> Any:
        """Return batches of the first ``num_train`` pairs, or of the others."""
        rows = slice(0, self.num_train) if train else slice(self.num_train, None)
        return self.get_tensorloader(self.arrays, train, rows)

    def _tensor(self, array: Numbers) -> Any:
        """Convert ``array`` to the framework's tensor."""
        raise undefined_method_error(self, "_tensor")

    def _build_arrays(
        self, raw_text: str, src_vocab: Vocab | None = None, tgt_vocab: Vocab | None = None
    ) -> tuple[tuple[Any, ...], Vocab, Vocab]:
        arrays, src_vocab, tgt_vocab = self._encode(raw_text, src_vocab, tgt_vocab)
        return tuple(map(self._tensor, arrays)), src_vocab, tgt_vocab

    def _download(self) -> str:
        return read(self.root)

    def _preprocess(self, text: str) -> str:
        return preprocess_nmt(text)

    def _tokenize(
        self, text: str, max_examples: int | None = None
    ) -> tuple[list[list[str]], list[list[str]]]:
        source, target = tokenize_nmt(text, max_examples)
        return _append_eos(source), _append_eos(target)

    def _join_pairs(self, src_sentences: list[str], tgt_sentences: list[str]) -> str:
        """Return the pairs as text in the form of the corpus."""
        for what, sentences in ("src_sentences", src_sentences), ("tgt_sentences", tgt_sentences):
            checks.check_instance(what, sentences, (list, tuple), "a list of sentences")
            for sentence in sentences:
                checks.check_instance(what, sentence, str, "a list of sentences, strings")
        if len(src_sentences) != len(tgt_sentences):
            got = f"{len(src_sentences)} and {len(tgt_sentences)}"
            raise ValueError(checks.message("sentences", got, "the same number in both languages"))
        return "\n".join(map("\t".join, zip(src_sentences, tgt_sentences, strict=True)))

    def _encode(
        self, text: str, src_vocab: Vocab | None, tgt_vocab: Vocab | None
    ) -> tuple[list[Numbers], Vocab, Vocab]:
        """Return source, target without its last token, source lengths, and target without its first token."""
        source, target = self._tokenize(self._preprocess(text), self.num_train + self.num_val)
        source = [fit_length(line, self.num_steps, PAD) for line in source]
        target = [[BOS, *fit_length(line, self.num_steps, PAD)] for line in target]
        src_vocab = src_vocab or Vocab(source, min_freq=2)
        tgt_vocab = tgt_vocab or Vocab(target, min_freq=2)
        src, src_lens = _array_and_lengths([src_vocab[line] for line in source], src_vocab)
        tgt, _ = _array_and_lengths([tgt_vocab[line] for line in target], tgt_vocab)
        return [src, tgt[:, :-1], src_lens, tgt[:, 1:]], src_vocab, tgt_vocab


def _append_eos(lines: list[list[str]]) -> list[list[str]]:
    return [[*filter(None, line), EOS] for line in lines]


def _array_and_lengths(numbers: list[list[int]], vocab: Vocab) -> tuple[Numbers, Numbers]:
    array = np.array(numbers, np.int32)
    return array, (array != vocab[PAD]).sum(axis=1, dtype=np.int32)
