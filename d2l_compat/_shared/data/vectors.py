"""Vectors of words that others have trained: GloVe (Pennington et al., 2014), fastText (Bojanowski et al., 2017)."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from d2l_compat._shared.checks import fault, format_value
from d2l_compat._shared.data.files import told
from d2l_compat._shared.data.hub import download_extract
from d2l_compat._shared.data.text import UNKNOWN

Vectors = NDArray[np.float32]


class TokenEmbedding:
    """Vectors of words, by a name in ``DATA_HUB``: glove.6b.50d, glove.6b.100d, glove.42b.300d, wiki.en.

    ``embedding[tokens]`` are those of a list of tokens, (tokens, length), float32; a token that is not there has that
    of ``<unk>``, zeros. ``idx_to_token`` are all tokens, ``token_to_idx`` their numbers, ``idx_to_vec`` all vectors.
    """

    tensor: Callable[[Any], Any]  # the face's

    def __init__(self, embedding_name: str) -> None:
        """Raises ValueError where the file has no vectors of one length, and what :func:`download_extract` does."""
        self.idx_to_token, vectors = read(embedding_name)
        self.idx_to_vec = self.tensor(vectors)
        self.unknown_idx = 0
        self.token_to_idx = {token: idx for idx, token in enumerate(self.idx_to_token)}

    def __getitem__(self, tokens: Iterable[str]) -> Any:
        if isinstance(tokens, str) or not isinstance(tokens, Iterable):
            raise TypeError(fault("tokens", format_value(tokens), "a list of tokens"))
        numbers = [self.token_to_idx.get(token, self.unknown_idx) for token in tokens]
        return self.idx_to_vec[self.tensor(np.array(numbers, np.int64))]

    def __len__(self) -> int:
        return len(self.idx_to_token)


def read(embedding_name: str) -> tuple[list[str], Vectors]:
    """The tokens, ``<unk>`` first, and the vectors; a line of the file is a token and its numbers."""
    file = Path(download_extract(embedding_name), "vec.txt")
    tokens, vectors = [UNKNOWN], []
    with (
        told("embedding_name", file, "an archive with that file"),
        file.open(encoding="utf-8") as f,
    ):
        for line in f:
            token, *numbers = line.rstrip().split(" ")
            if len(numbers) > 1:  # fastText's first line tells how many there are, and how long
                tokens.append(token)
                vectors.append(_vector(token, numbers))
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1:
        got = f"{file} with vectors of {' and '.join(map(str, sorted(lengths))) or 'no'} numbers"
        raise ValueError(fault("embedding_name", got, "vectors of one length"))
    return tokens, np.stack([np.zeros_like(vectors[0]), *vectors])


def _vector(token: str, numbers: list[str]) -> Vectors:
    try:
        return np.array(numbers, np.float32)
    except ValueError as error:
        raise ValueError(fault("embedding_name", f"{token} ({error})", "numbers")) from None
