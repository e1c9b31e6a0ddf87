"""Tokens, vocabularies, and the BLEU score of translations."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, overload

from d2l_compat._shared import version
from d2l_compat._shared.arrays import to_numpy
from d2l_compat._shared.checks import check_instance, format_value, integer, message, size

UNKNOWN = "<unk>"
NOT_HASHABLE = TypeError, NotImplementedError  # the latter from MXNet's arrays


class Vocab:
    """A vocabulary: the tokens in ``tokens`` that occur often enough, in alphabetical order.

    Tokens are strings or other hashable values, such as pairs of words, which come after the strings.
    ``vocab[token]`` is a token's index, and ``vocab[list]`` or ``vocab[tuple]`` has those of the parts; an unknown
    token has the index of ``<unk>``. ``len(vocab)`` is the number of tokens. If D2L_VERSION is 0.17, ``<unk>`` comes
    first, then ``reserved_tokens``, then the others, frequent ones before rare ones.
    """

    def __init__(
        self,
        tokens: Iterable[Any] | None = (),
        min_freq: int = 0,
        reserved_tokens: Sequence[str] | None = (),
    ) -> None:
        """Count ``tokens`` as :func:`count_corpus` does; ``reserved_tokens`` are always included.

        Raises TypeError or ValueError if ``min_freq`` is not an integer of at least 0, TypeError for a string instead
        of a list.
        """
        min_freq = integer("min_freq", min_freq, 0)
        reserved = _count("reserved_tokens", reserved_tokens)
        self.token_freqs = _count("tokens", tokens).most_common()
        frequent = [token for token, count in self.token_freqs if count >= min_freq]
        known = dict.fromkeys([UNKNOWN, *reserved, *frequent])  # without duplicates
        self.idx_to_token = [*known] if version.is_0_17() else sorted(known, key=_sort_key)
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
        try:
            return self.token_to_idx.get(tokens, self.unk)
        except NOT_HASHABLE:
            need = "a token, or a list of tokens"
            raise TypeError(message("tokens", type(tokens).__name__, need)) from None

    def to_tokens(self, indices: Any) -> Any:
        """Return the token of an index, or the list of tokens of a list or array of indices.

        Raises IndexError for an index without a token, ValueError for a number that is not an integer, and TypeError
        for anything else.
        """
        is_list = isinstance(indices, Sequence) and not isinstance(indices, (str, bytes))
        if is_list or getattr(indices, "ndim", 0) > 0:
            return [self.to_tokens(index) for index in indices]
        number = to_numpy("indices", indices)
        need = f"integers from 0 to {len(self) - 1}"
        if number.dtype.kind == "b":
            raise TypeError(message("indices", number, need))
        if number % 1 != 0:
            raise ValueError(message("indices", number, need))
        if not 0 <= number < len(self):
            raise IndexError(message("indices", number, need))
        return self.idx_to_token[int(number)]

    @property
    def unk(self) -> int:
        """Index of ``<unk>``."""
        return self.token_to_idx[UNKNOWN]


def check_vocab(vocab: Any) -> Any:
    """Return ``vocab`` if it has the methods of :class:`Vocab`, else raise TypeError."""
    if not all(hasattr(vocab, name) for name in ("__getitem__", "__len__", "to_tokens", "unk")):
        raise TypeError(message("vocab", type(vocab).__name__, "a vocabulary, such as a Vocab"))
    return vocab


def tokenize(lines: Iterable[str], token: str = "word") -> list[list[str]]:
    """Split each line at whitespace into words, or into characters if ``token`` is "char".

    Raises TypeError if ``lines`` is not a list of strings, ValueError for any other ``token``.
    """
    need = "a list of strings"
    if isinstance(lines, str) or not isinstance(lines, Iterable):
        raise TypeError(message("lines", format_value(lines), need))
    if not isinstance(token, str) or token not in ("word", "char"):
        raise ValueError(message("token", format_value(token), "'word' or 'char'"))
    lines = list(lines)
    for line in lines:
        check_instance("lines", line, str, need)
    return [line.split() if token == "word" else list(line) for line in lines]


def count_corpus(tokens: Iterable[Any]) -> Counter[Any]:
    """Count the tokens in a list of tokens or of lists of tokens; a tuple is one token.

    Raises TypeError for other arguments.
    """
    return _count("tokens", tokens)


def truncate_pad(line: list[Any], num_steps: int, padding_token: Any) -> list[Any]:
    """Cut ``line`` off at ``num_steps`` tokens, or pad it to this length with ``padding_token``.

    Raises TypeError if ``line`` is not a list, TypeError or ValueError if ``num_steps`` is below 1.
    """
    check_instance("line", line, list, "a list of tokens")
    return fit_length(line, size("num_steps", num_steps), padding_token)


def fit_length(line: list[Any], num_steps: int, padding: Any) -> list[Any]:
    return line[:num_steps] + [padding] * (num_steps - len(line))


def _count(what: str, tokens: Any) -> Counter[Any]:
    """Count the tokens in a list of tokens or of lists of tokens; None counts as an empty list."""
    if isinstance(tokens, str):
        raise TypeError(message(what, "a string", "a list of tokens"))
    check_instance(what, () if tokens is None else tokens, Iterable, "a list of tokens")
    rows = [] if tokens is None else [*tokens]
    has_lines = bool(rows) and isinstance(rows[0], list)
    if has_lines:
        for line in rows:
            check_instance(what, line, Iterable, "a list of lists of tokens")
    try:
        return Counter(chain.from_iterable(rows) if has_lines else rows)
    except NOT_HASHABLE:
        need = "tokens that are strings or tuples"
        raise TypeError(message(what, "a token that is not hashable", need)) from None


def _sort_key(token: Any) -> tuple[bool, str]:
    """Return the key that sorts strings alphabetically, before tokens of other types."""
    return not isinstance(token, str), str(token)


def bleu(pred_seq: str, label_seq: str, k: int) -> float:
    """Return the BLEU score of a predicted sentence, from 0 to 1, for n-grams up to length ``k``.

    It is that of Papineni et al. (2002) with D2L's weights: exp(min(0, 1 - len_label / len_pred)) times the product
    over n of p_n^(1 / 2^n), where p_n is the share of predicted n-grams that match the label, each at most as often as
    it occurs there. Tokens are separated by spaces. n-grams longer than the prediction do not count. An empty
    prediction scores 0.

    Raises TypeError if the sentences are not strings, TypeError or ValueError if ``k`` is not an
    integer of at least 1.
    """
    k = integer("k", k, 1)
    check_instance("pred_seq", pred_seq, str, "a sentence as a string")
    check_instance("label_seq", label_seq, str, "a sentence as a string")
    pred, label = pred_seq.split(" "), label_seq.split(" ")
    if not pred_seq:
        return 0.0
    score = math.exp(min(0, 1 - len(label) / len(pred)))
    for n in range(1, min(k, len(pred)) + 1):
        label_counts = Counter(map(tuple, _ngrams(label, n)))
        pred_counts = Counter(map(tuple, _ngrams(pred, n)))
        matches = sum((pred_counts & label_counts).values())
        score *= (matches / pred_counts.total()) ** (0.5**n)
    return score


def _ngrams(tokens: list[str], n: int) -> Iterable[list[str]]:
    return (tokens[i : i + n] for i in range(len(tokens) - n + 1))
