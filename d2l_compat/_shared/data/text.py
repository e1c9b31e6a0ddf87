"""Text in tokens, and numbers for them; and how good a translation is."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, overload

from d2l_compat._shared import version
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, fault, format_value, integer, size

UNKNOWN = "<unk>"


class Vocab:
    """Numbers for tokens: those in ``tokens`` that occur often enough, in alphabetical order.

    ``vocab[token]`` is a token's number and ``vocab[list]`` a (nested) list's; a token that is not
    there has that of ``<unk>``. ``len(vocab)`` counts the tokens. Where D2L_VERSION is 0.17, ``<unk>`` comes
    first, then ``reserved_tokens``, then the others, frequent ones before rare ones.
    """

    def __init__(
        self,
        tokens: Iterable[Any] | None = (),
        min_freq: int = 0,
        reserved_tokens: Sequence[str] | None = (),
    ) -> None:
        """``tokens`` is a list of them, or of lists of them; those in ``reserved_tokens`` are in,
        whether they occur or not. Raises TypeError or ValueError where ``min_freq`` is not an
        integer from 0 on, TypeError for a string in place of a list."""
        min_freq = integer("min_freq", min_freq, 0)
        reserved = _count("reserved_tokens", reserved_tokens)
        self.token_freqs = _count("tokens", tokens).most_common()
        often = [token for token, count in self.token_freqs if count >= min_freq]
        known = dict.fromkeys([UNKNOWN, *reserved, *often])  # each once
        self.idx_to_token = [*known] if version.is_0_17() else sorted(known)
        self.token_to_idx = {token: idx for idx, token in enumerate(self.idx_to_token)}

    def __len__(self) -> int:
        return len(self.idx_to_token)

    @overload
    def __getitem__(self, tokens: str) -> int: ...
    @overload
    def __getitem__(self, tokens: Sequence[Any]) -> list[Any]: ...
    def __getitem__(self, tokens: Any) -> Any:
        if isinstance(tokens, (list, tuple)):
            return [self[token] for token in tokens]
        check_instance("tokens", tokens, str, "a token, a string, or a list of them")
        return self.token_to_idx.get(tokens, self.unk)

    def to_tokens(self, indices: Any) -> Any:
        """The token of a number, or the list of tokens of numbers, which may be an array.

        Raises IndexError for a number that is no token's, ValueError for one that is not whole, and
        TypeError for what is no number.
        """
        is_list = isinstance(indices, Sequence) and not isinstance(indices, (str, bytes))
        if is_list or getattr(indices, "ndim", 0) > 0:
            return [self.to_tokens(index) for index in indices]
        number, need = (
            to_numpy("indices", indices),
            f"numbers from 0 to {len(self) - 1}, whole ones",
        )
        if number.dtype.kind == "b":
            raise TypeError(fault("indices", number, need))
        if number % 1 != 0:
            raise ValueError(fault("indices", number, need))
        if not 0 <= number < len(self):
            raise IndexError(fault("indices", number, need))
        return self.idx_to_token[int(number)]

    @property
    def unk(self) -> int:
        """The number of ``<unk>``."""
        return self.token_to_idx[UNKNOWN]


def check_vocab(vocab: Any) -> Any:
    """A vocabulary: :class:`Vocab`, or what has its methods."""
    if not all(hasattr(vocab, name) for name in ("__getitem__", "__len__", "to_tokens", "unk")):
        raise TypeError(fault("vocab", type(vocab).__name__, "a vocabulary, as Vocab is"))
    return vocab


def tokenize(lines: Iterable[str], token: str = "word") -> list[list[str]]:
    """Each line as a list of tokens: its words, which blanks separate, or with ``token="char"`` its characters.

    Raises TypeError where ``lines`` are not strings in a list, ValueError for another ``token``.
    """
    need = "a list of lines, strings"
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        raise TypeError(fault("lines", format_value(lines), need))
    if not isinstance(token, str) or token not in ("word", "char"):
        raise ValueError(fault("token", format_value(token), "'word' or 'char'"))
    lines = list(lines)
    for line in lines:
        check_instance("lines", line, str, need)
    return [line.split() if token == "word" else list(line) for line in lines]


def count_corpus(tokens: Iterable[Any]) -> Counter[str]:
    """How often each token occurs in a list of them, or of lists of them. Raises TypeError for others."""
    return _count("tokens", tokens)


def truncate_pad(line: list[Any], num_steps: int, padding_token: Any) -> list[Any]:
    """``num_steps`` tokens: the first ones, or all and then ``padding_token`` as often as it takes.

    Raises TypeError where ``line`` is no list, TypeError or ValueError where ``num_steps`` is below 1.
    """
    check_instance("line", line, list, "a list of tokens")
    return fit_length(line, size("num_steps", num_steps), padding_token)


def fit_length(line: list[Any], num_steps: int, padding: Any) -> list[Any]:
    return line[:num_steps] + [padding] * (num_steps - len(line))


def _count(what: str, tokens: Any) -> Counter[str]:
    """How often each token stands in a list, or in lists of a list; None is an empty one."""
    if isinstance(tokens, str):
        raise TypeError(fault(what, "a string", "a list of tokens"))
    check_instance(what, () if tokens is None else tokens, Iterable, "a list of tokens")
    flat = list(_flat(() if tokens is None else tokens))
    for kind in {*map(type, flat)}:
        if not issubclass(kind, str):
            raise TypeError(
                fault(what, f"a token of type {kind.__name__}", "tokens that are strings")
            )
    return Counter(flat)


def _flat(tokens: Iterable[Any]) -> Iterable[Any]:
    for token in tokens:
        if isinstance(token, (list, tuple)):
            yield from token
        else:
            yield token


def bleu(pred_seq: str, label_seq: str, k: int) -> float:
    """BLEU of a predicted sentence, from 0 to 1, for n-grams up to length ``k``.

    Papineni et al. (2002), as D2L weighs it: exp(min(0, 1 - len_label / len_pred)) times the product over n
    of p_n^(1 / 2^n), where p_n is the share of predicted n-grams that are in the label, each as
    often as it is there. Tokens are separated by blanks. ``k`` is at most the length of the shorter sentence;
    there are no longer n-grams, and none count. An empty prediction scores 0.

    Raises TypeError if the sentences are not strings, TypeError or ValueError where ``k`` is not an
    integer of at least 1.
    """
    k = integer("k", k, 1)
    check_instance("pred_seq", pred_seq, str, "a sentence, a string")
    check_instance("label_seq", label_seq, str, "a sentence, a string")
    pred, label = pred_seq.split(" "), label_seq.split(" ")
    if not pred_seq:
        return 0.0
    score = math.exp(min(0, 1 - len(label) / len(pred)))
    for n in range(1, min(k, len(pred)) + 1):
        there = Counter(map(tuple, _grams(label, n)))
        found = Counter(map(tuple, _grams(pred, n)))
        matches = sum((found & there).values())
        score *= (matches / found.total()) ** (0.5**n)
    return score


def _grams(tokens: list[str], n: int) -> Iterable[list[str]]:
    return (tokens[i : i + n] for i in range(len(tokens) - n + 1))
